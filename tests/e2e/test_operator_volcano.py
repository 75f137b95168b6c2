"""Volcano 1.14.1 (scheduler, controllers, webhooks), and gangs of the MPI and Paddle operators on it."""

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from persia_components import Operator

from persia_infra.jobs.status import JobStatus
from persia_infra.operators import MpiOperatorSpec, PaddleOperatorSpec, VolcanoSpec, mpi, paddle
from persia_infra.operators.volcano import rights as volcano
from persia_infra.operators.volcano.queue import QueueSpec
from persia_infra.rehearsal.stages import KEEPS_RUNNING
from tests.support.job_status import job_status
from tests.support.operator_stack import OperatorStack, Program, wait_for

TRAINING = "gang-training"
SYSTEM = "volcano-system"
GPU_NODES = [f"gang-probe-{index}" for index in range(8)]


def program(certificate: str = "1") -> Program:
    def declare() -> None:
        queues = {"research": QueueSpec(weight=2, capability={"nvidia.com/gpu": "640"})}
        Operator("volcano", VolcanoSpec(queues=queues, webhook_certificate=certificate))
        Operator("mpi", MpiOperatorSpec(), volcano_installed=True)
        Operator("paddle", PaddleOperatorSpec(), volcano_installed=True)

    return declare


@pytest.fixture(scope="module")
def gpu_nodes(operator_stack: OperatorStack) -> Iterator[None]:
    size = {"cpu": "90", "memory": "600Gi", "pods": "50", "nvidia.com/gpu": "8"}
    for name in GPU_NODES:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        operator_stack.kubectl(
            "create", "-f", "-", stdin=json.dumps(node | {"status": {"allocatable": size, "capacity": size}})
        )
    yield
    operator_stack.kubectl("delete", "node", *GPU_NODES)


@pytest.fixture(scope="module")
def stack(operator_stack: OperatorStack, gpu_nodes: None) -> OperatorStack:  # noqa: ARG001
    operator_stack.kubectl("create", "namespace", TRAINING)
    operator_stack.up(program())
    started = operator_stack.processes.start_all(lambda _: None)
    assert {"volcano-admission", "volcano-controllers", "volcano-scheduler"} < set(started)
    wait_for("the queue opens", lambda: queue_state(operator_stack, "research"), until=lambda seen: seen == "Open")
    return operator_stack


def queue_state(stack: OperatorStack, queue: str) -> str:
    return stack.get("queue", "default", queue).get("status", {}).get("state", "")


def template(gpus: int = 0, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {"requests": {"cpu": "1"}}
    container = {"name": "main", "image": "registry.example/train:1", "resources": resources}
    return {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [container]}}


def mpi_job(workers: int) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "gang", "namespace": TRAINING},
        "spec": {
            "runPolicy": {"schedulingPolicy": {"queue": "research", "minAvailable": workers + 1}},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": template(annotations={KEEPS_RUNNING: "yes"})},
                "Worker": {"replicas": workers, "template": template(8)},
            },
        },
    }


def paddle_job(workers: int) -> dict[str, Any]:
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "gang", "namespace": TRAINING},
        "spec": {
            "schedulingPolicy": {"queue": "research", "minAvailable": workers},
            "worker": {"replicas": workers, "template": template(8)},
        },
    }


JOBS = {"mpijob": (mpi_job, 1), "paddlejob": (paddle_job, 0)}


@pytest.mark.parametrize("kind", JOBS)
def test_a_gang_starts_whole_or_not_at_all(stack: OperatorStack, kind: str) -> None:
    make, others = JOBS[kind]
    stack.apply(make(8))
    wait_for("the whole gang runs", lambda: stack.running(TRAINING), until=lambda seen: len(seen) == 8 + others)
    assert stack.get("podgroup", TRAINING, "gang")["spec"]["queue"] == "research"
    stack.kubectl("delete", kind, "--namespace", TRAINING, "gang")
    wait_for("it goes", lambda: stack.names("pods,podgroups", TRAINING), until=lambda seen: not seen)

    stack.apply(make(9))
    held = wait_for(
        "status says what the gang lacks",
        lambda: status(stack, make(9)),
        until=lambda seen: all("nvidia.com/gpu" in role.reason for role in seen.roles),
    )
    assert held.phase == "Pending"
    assert [role.pending for role in held.roles] == [role.wanted for role in held.roles]
    assert all(role.reason.startswith("Volcano holds back the gang: ") for role in held.roles)
    assert stack.running(TRAINING) == set()
    stack.kubectl("delete", kind, "--namespace", TRAINING, "gang")
    wait_for("it goes", lambda: stack.names("pods,podgroups", TRAINING), until=lambda seen: not seen)


def status(stack: OperatorStack, job: dict[str, Any]) -> JobStatus:
    operators = {"mpi": {}, "paddle": {}, "volcano": {"queues": {"research": {}}}}
    return job_status(stack.control_plane, TRAINING, operators, "gang", {"kind": job["kind"], **job["spec"]})


def test_pods_of_nobody_and_jobs_of_volcano_itself_run_too(stack: OperatorStack) -> None:
    single = template()
    single["spec"]["schedulerName"] = "volcano"
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "own", "namespace": TRAINING},
        "spec": {
            "schedulerName": "volcano",
            "queue": "research",
            "minAvailable": 2,
            "plugins": {"svc": [], "env": [], "ssh": []},
            "tasks": [{"name": "task", "replicas": 2, "template": template()}],
        },
    }
    stack.apply(
        job,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "single", "namespace": TRAINING},
            "spec": single["spec"],
        },
    )
    wait_for(
        "all run", lambda: stack.running(TRAINING), until=lambda seen: {"single", "own-task-0", "own-task-1"} <= seen
    )
    stack.kubectl("delete", "--namespace", TRAINING, "vcjob/own", "pod/single")
    wait_for("they go", lambda: stack.names("pods,podgroups", TRAINING), until=lambda seen: not seen)


def test_an_mpi_gang_without_a_queue_waits_in_the_default_one_and_can_grow(stack: OperatorStack) -> None:
    for workers in (2, 4):
        job = mpi_job(workers)
        job["spec"]["runPolicy"] = {}
        stack.apply(job)
        wait_for(
            "the whole gang runs",
            lambda: stack.running(TRAINING),
            until=lambda seen, size=workers + 1: len(seen) == size,
        )
        group = wait_for(
            "the gang has its size",
            lambda: stack.get("podgroup", TRAINING, "gang")["spec"],
            until=lambda seen, size=workers + 1: seen["minMember"] == size,
        )
        assert group["queue"] == "default"
    stack.kubectl("delete", "mpijob", "--namespace", TRAINING, "gang")
    wait_for("it goes", lambda: stack.names("pods,podgroups", TRAINING), until=lambda seen: not seen)


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"])
def test_annotations_of_the_owner_decide_how_volcano_treats_its_pods(stack: OperatorStack, kind: str) -> None:
    labels = {"app": "owned"}
    pod = template()
    pod["metadata"]["labels"] = labels
    pod["spec"] |= {"schedulerName": "volcano", "restartPolicy": "Never" if kind == "Job" else "Always"}
    spec: dict[str, Any] = {"template": pod} | ({} if kind == "Job" else {"selector": {"matchLabels": labels}})
    said = {"scheduling.volcano.sh/group-min-member": "1", "volcano.sh/owner": "ads"}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    metadata = {"name": "owned", "namespace": TRAINING, "annotations": said}
    stack.apply({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
    uid = stack.get(kind, TRAINING, "owned")["metadata"]["uid"]
    wait_for("its gang", lambda: stack.names("podgroups", TRAINING), until=lambda seen: seen == {f"podgroup-{uid}"})

    assert stack.get("podgroup", TRAINING, f"podgroup-{uid}")["metadata"]["annotations"]["volcano.sh/owner"] == "ads"
    if kind == "ReplicaSet":
        stack.kubectl("scale", "--namespace", TRAINING, "replicaset/owned", "--replicas=0")
        wait_for("no gang", lambda: stack.names("podgroups", TRAINING), until=lambda seen: not seen)
    stack.kubectl("delete", kind, "--namespace", TRAINING, "owned")
    wait_for("it goes", lambda: stack.names("pods,podgroups", TRAINING), until=lambda seen: not seen)


def test_a_job_of_volcano_can_be_told_to_stop(stack: OperatorStack) -> None:
    # Otherwise they would succeed after a second, perhaps before the job is told to stop.
    lasting = template(annotations={KEEPS_RUNNING: "yes"})
    tasks = [{"name": "task", "replicas": 2, "template": lasting}]
    kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    metadata = {"name": "told", "namespace": TRAINING}
    stack.apply({**kind, "metadata": metadata, "spec": {"schedulerName": "volcano", "minAvailable": 2, "tasks": tasks}})
    wait_for("it runs", lambda: stack.running(TRAINING), until=lambda seen: seen == {"told-task-0", "told-task-1"})
    target = {**kind, "name": "told", "uid": stack.get("vcjob", TRAINING, "told")["metadata"]["uid"]}
    command = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": metadata}
    stack.apply({**command, "action": "AbortJob", "target": target})

    wait_for("it stops", lambda: stack.running(TRAINING), until=lambda seen: not seen)
    asked = ("get", "events", "--namespace", TRAINING, "--field-selector", "involvedObject.name=told", "-o", "name")
    wait_for("its event", lambda: stack.kubectl(*asked))
    stack.kubectl("delete", "--namespace", TRAINING, "vcjob/told")
    wait_for("it goes", lambda: stack.names("pods,podgroups,commands", TRAINING), until=lambda seen: not seen)


def pod_group(name: str, queue: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": TRAINING}
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    return {**kind, "metadata": metadata, "spec": {"queue": queue}}


def test_the_webhooks_answer_with_the_certificate_that_the_program_made(stack: OperatorStack) -> None:
    with pytest.raises(AssertionError, match=r"validatepodgroup\.volcano\.sh"):
        stack.apply(pod_group("lost", "nowhere"))


def test_the_webhooks_program_answers_its_liveness_probe(stack: OperatorStack) -> None:
    arguments = Path(f"/proc/{stack.processes.running['volcano-admission']}/cmdline").read_text().split("\0")
    (address,) = (text.removeprefix("--healthz-address=") for text in arguments if text.startswith("--healthz-address"))
    container = stack.get("deployment", SYSTEM, "volcano-admission")["spec"]["template"]["spec"]["containers"][0]
    asked = container["livenessProbe"]["httpGet"]
    kubelet = ssl._create_unverified_context()  # noqa: S323

    with urlopen(f"{asked['scheme'].lower()}://{address}{asked['path']}", context=kubelet) as answer:  # noqa: S310
        assert answer.status == 200


def test_a_second_update_changes_nothing_and_the_private_key_is_nowhere_in_the_state(stack: OperatorStack) -> None:
    assert stack.up(program()) == {}
    assert stack.refresh() == {}
    key = next(name for name in stack.names("secrets", SYSTEM) if name.startswith("volcano-admission"))
    assert stack.get("secret", SYSTEM, key)["data"]["tls.key"] not in stack.state_on_disk()


def test_another_text_for_the_certificate_makes_a_new_one_that_the_webhooks_answer_with(stack: OperatorStack) -> None:
    def secrets() -> set[str]:
        return {name for name in stack.names("secrets", SYSTEM) if name.startswith("volcano-admission")}

    def trusted() -> str:
        found = stack.get("validatingwebhookconfiguration", "default", "volcano-admission-service-podgroups-validate")
        return found["webhooks"][0]["clientConfig"]["caBundle"]

    (before,), authority = secrets(), trusted()
    stack.up(program("2"))
    stack.processes.stop("volcano-admission")
    stack.processes.start(SYSTEM, "volcano-admission")

    (after,) = secrets()
    assert after != before
    assert trusted() != authority
    with pytest.raises(AssertionError, match="denied the request: unable to find queue"):
        stack.apply(pod_group("lost", "nowhere"))
    stack.apply(pod_group("found", "research"))
    stack.kubectl("delete", "podgroup", "--namespace", TRAINING, "found")
    assert stack.up(program("2")) == {}


def test_it_has_the_rights_that_it_uses_and_no_others(stack: OperatorStack) -> None:
    stack.check_rights(SYSTEM, "volcano-scheduler", volcano.SCHEDULER_RIGHTS)
    stack.check_rights(SYSTEM, "volcano-controllers", volcano.CONTROLLERS_RIGHTS)
    stack.check_rights(SYSTEM, "volcano-admission", volcano.ADMISSION_RIGHTS)


def test_gangs_need_podgroups_and_nothing_more(stack: OperatorStack) -> None:
    for system, account, rights in (
        ("mpi-operator", "mpi-operator", mpi.GANG_RIGHTS),
        ("paddle-system", "paddle-operator", paddle.GANG_RIGHTS),
    ):
        stack.check_rights(system, account, rights, group="scheduling.volcano.sh")
