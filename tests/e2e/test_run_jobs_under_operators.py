"""MPI, Paddle and single-node jobs under their real operators, in namespaces as strict as they allow, and `status`."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from persia_components import Job, Operator
from pulumi_kubernetes import core, meta

from persia_infra.operators import MpiOperatorSpec, PaddleOperatorSpec
from persia_infra.rehearsal.stages import KEEPS_RUNNING
from persia_infra.stack import parse_environment
from tests.support.operator_stack import OperatorStack, wait_for

STRICT, PADDLE = "strict-jobs", "paddle-jobs"
MISSING = "missing"


def template(**pod: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"annotations": {KEEPS_RUNNING: "yes"}}, "spec": {"containers": [container], **pod}}


USER = {"run_as_user": 1000, "run_as_group": 1000, "fs_group": 1000}
ENVIRONMENT: dict[str, Any] = {
    "project": "persia-example",
    "region": "us-central1",
    "cluster": {"zones": ["us-central1-a"], "authorizedNetworks": [{"cidr": "203.0.113.0/24"}]},
    "pools": {"cpu": {"machineType": "n2-standard-8", "count": 1, "labels": {"tier": "gold"}}},
    "namespaces": [STRICT, PADDLE],
    "operators": {"mpi": {}, "paddle": {}},
    "jobs": {
        "running": {
            "kind": "MPIJob",
            "namespace": STRICT,
            "sshAuthMountPath": "/home/mpiuser/.ssh",
            "settings": {
                **USER,
                "volumes": [
                    {
                        "volume_type": "nfs",
                        "name": "data",
                        "mount_path": "/data",
                        "read_only": True,
                        "spec": {"server": "10.0.0.2", "path": "/data"},
                    }
                ],
            },
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": template()},
                "Worker": {"replicas": 2, "template": template()},
            },
        },
        "waiting": {
            "kind": "Job",
            "namespace": STRICT,
            "settings": {**USER, "node_selector": [{"key": "tier", "value": "gold"}]},
            "template": template(),
        },
        "broken": {"kind": "Job", "namespace": STRICT, "backoffLimit": 0, "settings": USER, "template": template()},
        "servers": {
            "kind": "PaddleJob",
            "namespace": PADDLE,
            "cleanPodPolicy": "Never",
            "settings": USER,
            "ps": {"replicas": 1, "template": template()},
            "worker": {"replicas": 2, "template": template()},
        },
        MISSING: {"kind": "Job", "namespace": STRICT, "settings": USER, "template": template()},
    },
}


def declare() -> None:
    spec = parse_environment(ENVIRONMENT)
    operators = [Operator("mpi", MpiOperatorSpec()), Operator("paddle", PaddleOperatorSpec())]
    namespaces = {
        name: core.v1.Namespace(
            name,
            metadata=meta.v1.ObjectMetaArgs(
                name=name, labels={"pod-security.kubernetes.io/enforce": spec.pod_security(name)}
            ),
        )
        for name in spec.namespaces
    }
    for name, job in spec.jobs.items():
        if name != MISSING:
            namespace = namespaces[spec.namespace_of(job)].metadata.name
            Job(name, job, namespace=namespace, opts=pulumi.ResourceOptions(depends_on=operators))


@pytest.fixture(scope="module")
def stack(operator_stack: OperatorStack) -> OperatorStack:
    operator_stack.up(declare)
    operator_stack.processes.start("mpi-operator", "mpi-operator")
    operator_stack.processes.start("paddle-system", "paddle-operator")
    return operator_stack


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: jobs\nruntime: python\n")
    described = {"config": {"persia-infra:environment": ENVIRONMENT}}
    (tmp_path / "Pulumi.jobs.yaml").write_text(yaml.safe_dump(described))
    return tmp_path


def status(stack: OperatorStack, project: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [Path(sys.executable).with_name("persia-infra"), "status", "jobs", *options]
    return subprocess.run(
        command, cwd=project, env=variables(stack, project), check=False, capture_output=True, text=True
    )


def variables(stack: OperatorStack, project: Path) -> dict[str, str]:
    kubeconfig = str(stack.control_plane.kubeconfig)
    return {"PATH": "/usr/bin:/bin", "HOME": str(project), "COLUMNS": "200", "KUBECONFIG": kubeconfig}


def jobs(stack: OperatorStack, project: Path) -> dict[str, Any]:
    return {job["name"]: job for job in json.loads(status(stack, project, "--json").stdout)["jobs"]}


def test_namespaces_are_as_strict_as_their_jobs_allow(stack: OperatorStack) -> None:
    levels = {
        name: stack.get("namespace", "", name)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        for name in (STRICT, PADDLE)
    }

    assert levels == {STRICT: "restricted", PADDLE: "baseline"}


def test_status_tells_running_pending_failed_and_missing_jobs_apart(stack: OperatorStack, project: Path) -> None:
    wait_for(
        "the broken job's pod",
        lambda: stack.running(STRICT, "batch.kubernetes.io/job-name=broken"),
    )
    (pod,) = stack.names("pods", STRICT, "batch.kubernetes.io/job-name=broken")
    failed = '{"status":{"phase":"Failed","message":"the node was low on memory"}}'
    stack.kubectl("patch", "pod", "--namespace", STRICT, pod, "--subresource=status", "--type=merge", "-p", failed)

    wanted = {
        "running": "Running",
        "waiting": "Pending",
        "broken": "Failed",
        "servers": "Running",
        MISSING: "Missing",
    }
    seen = wait_for(
        "all jobs as they should be",
        lambda: jobs(stack, project),
        until=lambda found: {name: job["phase"] for name, job in found.items()} == wanted,
    )

    roles = {
        name: {role["role"]: (role["wanted"], role["ready"], role["pending"], role["failed"]) for role in job["roles"]}
        for name, job in seen.items()
    }
    assert roles == {
        "running": {"launcher": (1, 1, 0, 0), "worker": (2, 2, 0, 0)},
        "waiting": {"training": (1, 0, 1, 0)},
        "broken": {"training": (1, 0, 0, 1)},
        "servers": {"ps": (1, 1, 0, 0), "worker": (2, 2, 0, 0)},
        MISSING: {"training": (1, 0, 1, 0)},
    }
    assert "didn't match Pod's node affinity/selector" in seen["waiting"]["roles"][0]["reason"]
    assert "the node was low on memory" in seen["broken"]["roles"][0]["reason"]


def test_the_table_fits_and_says_how_to_read_the_logs(stack: OperatorStack, project: Path) -> None:
    shown = status(stack, project)

    assert shown.returncode == 1, shown.stderr
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert f"kubectl logs --namespace {STRICT} --follow job/running-launcher" in lines
    assert f"kubectl logs --namespace {PADDLE} --follow servers-worker-0" in lines


def test_watching_looks_again_until_it_is_interrupted(stack: OperatorStack, project: Path) -> None:
    command = [Path(sys.executable).with_name("persia-infra"), "status", "jobs", "--watch", "--json"]
    with subprocess.Popen(
        command, cwd=project, env=variables(stack, project), stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        first, second = json.loads(run.stdout.readline()), json.loads(run.stdout.readline())
        run.send_signal(signal.SIGINT)
        assert run.wait() == 0

    assert (
        [job["name"] for job in first["jobs"]] == [job["name"] for job in second["jobs"]] == sorted(ENVIRONMENT["jobs"])
    )


def test_pods_run_as_described(stack: OperatorStack) -> None:
    worker = stack.get("pod", STRICT, "running-worker-0")["spec"]

    assert worker["securityContext"]["runAsUser"] == 1000
    assert "/home/mpiuser/.ssh" in {mount["mountPath"] for mount in worker["containers"][0]["volumeMounts"]}
    assert stack.get("pvc", STRICT, "running-data")["status"]["phase"] == "Bound"


def test_a_second_update_changes_nothing(stack: OperatorStack) -> None:
    assert stack.preview(declare) == {}


def test_without_a_cluster_it_says_so(project: Path) -> None:
    command = [Path(sys.executable).with_name("persia-infra"), "status", "jobs"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(project)}
    done = subprocess.run(command, cwd=project, env=environment, check=False, capture_output=True, text=True)

    assert done.returncode == 2
    assert done.stderr.startswith("--kubeconfig: no kubeconfig names a cluster")
