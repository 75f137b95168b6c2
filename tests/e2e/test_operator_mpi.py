"""The MPI operator 0.8.2 with the rights that its component declares: a job's whole life, and an upgrade under it."""

from collections.abc import Callable
from typing import Any

import pytest
from persia_components import Operator

from persia_infra.operators import MpiOperatorSpec, mpi
from persia_infra.rehearsal.stages import KEEPS_RUNNING
from tests.support.operator_stack import OperatorStack, Program, wait_for

TRAINING = "mpi-training"
SYSTEM = "mpi-operator"


def template(**annotations: str) -> dict[str, Any]:
    container = {"name": "mpi", "image": "registry.example/mpi:1", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}


def mpi_job(name: str, *, workers: int = 2, ends: bool = True, **policy: Any) -> dict[str, Any]:
    launcher = template() if ends else template(**{KEEPS_RUNNING: "yes"})
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": TRAINING},
        "spec": {
            "slotsPerWorker": 8,
            "runPolicy": policy,
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": launcher},
                "Worker": {"replicas": workers, "template": template()},
            },
        },
    }


def operator(version: str) -> Program:
    return lambda: Operator("mpi", MpiOperatorSpec(version=version))


@pytest.fixture(scope="module")
def stack(operator_stack: OperatorStack) -> OperatorStack:
    operator_stack.kubectl("create", "namespace", TRAINING)
    operator_stack.up(operator("0.7.0"))
    return operator_stack


@pytest.fixture
def run(stack: OperatorStack) -> Callable[[dict[str, Any]], str]:
    def applied(job: dict[str, Any]) -> str:
        stack.apply(job)
        return job["metadata"]["name"]

    return applied


def workers(stack: OperatorStack, job: str) -> set[str]:
    return stack.running(TRAINING, f"training.kubeflow.org/job-name={job},training.kubeflow.org/job-role=worker")


def conditions(stack: OperatorStack, job: str) -> set[str]:
    found = stack.get("mpijob", TRAINING, job).get("status", {}).get("conditions", [])
    return {condition["type"] for condition in found if condition["status"] == "True"}


def launcher_started(stack: OperatorStack, job: str) -> str | None:
    return stack.get("job", TRAINING, f"{job}-launcher")["status"].get("startTime")


def test_an_upgrade_leaves_a_running_job_alone(stack: OperatorStack, run: Callable[[dict[str, Any]], str]) -> None:
    stack.processes.start(SYSTEM, "mpi-operator", program="mpi-operator-0.7")
    job = run(mpi_job("lasting", ends=False))
    wait_for("the job runs", lambda: conditions(stack, job), until=lambda seen: "Running" in seen)
    kinds = "pods,jobs,services,configmaps,secrets,mpijobs"
    before = stack.uids(kinds, TRAINING)
    assert len(before) > 6
    stack.processes.stop("mpi-operator")
    assert stack.up(operator("0.8.2")) == {"update": 1}
    stack.processes.start(SYSTEM, "mpi-operator")
    second = run(mpi_job("after-upgrade"))
    wait_for(
        "a job of the new operator ends", lambda: conditions(stack, second), until=lambda seen: "Succeeded" in seen
    )
    after = stack.uids(kinds, TRAINING)
    assert {name: after.get(name) for name in before} == before
    assert "Running" in conditions(stack, job)
    stack.kubectl("delete", "mpijob", "--namespace", TRAINING, job, second)


def test_a_suspended_job_has_everything_but_workers_until_it_is_resumed(
    stack: OperatorStack, run: Callable[[dict[str, Any]], str]
) -> None:
    job = run(mpi_job("paused", ends=False, suspend=True, cleanPodPolicy="None"))
    wait_for("the job is suspended", lambda: conditions(stack, job), until=lambda seen: "Suspended" in seen)
    assert stack.get("job", TRAINING, f"{job}-launcher")["spec"]["suspend"] is True
    assert stack.get("service", TRAINING, job)["spec"]["clusterIP"] == "None"
    assert set(stack.get("secret", TRAINING, f"{job}-ssh")["data"]) == {"ssh-privatekey", "ssh-publickey"}
    assert workers(stack, job) == set()

    run(mpi_job("paused", ends=False, suspend=False, cleanPodPolicy="None"))
    wait_for("two workers", lambda: workers(stack, job), until=lambda seen: len(seen) == 2)
    hostfile = stack.get("configmap", TRAINING, f"{job}-config")["data"]["hostfile"]
    assert hostfile.splitlines() == [f"{job}-worker-{i}.{job}.{TRAINING}.svc slots=8" for i in range(2)]
    wait_for("the job runs", lambda: conditions(stack, job), until=lambda seen: "Running" in seen)

    run(mpi_job("paused", ends=False, suspend=True, cleanPodPolicy="None"))
    wait_for("no workers", lambda: workers(stack, job), until=lambda seen: not seen)
    wait_for("its launcher is over", lambda: launcher_started(stack, job), until=lambda seen: seen is None)
    run(mpi_job("paused", ends=False, suspend=False, cleanPodPolicy="None"))
    wait_for("two workers again", lambda: workers(stack, job), until=lambda seen: len(seen) == 2)
    stack.kubectl("delete", "mpijob", "--namespace", TRAINING, job)


@pytest.mark.parametrize(
    ("policy", "left"), [("Running", set()), ("None", {"ends-none-worker-0", "ends-none-worker-1"})]
)
def test_when_the_launcher_ends_the_workers_go_as_the_policy_says(
    stack: OperatorStack, run: Callable[[dict[str, Any]], str], policy: str, left: set[str]
) -> None:
    job = run(mpi_job(f"ends-{policy.lower()}", cleanPodPolicy=policy))
    wait_for("the job succeeds", lambda: conditions(stack, job), until=lambda seen: "Succeeded" in seen)
    wait_for("its workers", lambda: workers(stack, job), until=lambda seen: seen == left)
    stack.kubectl("delete", "mpijob", "--namespace", TRAINING, job)


def test_the_schema_refuses_what_the_operator_would_only_grumble_about(stack: OperatorStack) -> None:
    wrong = mpi_job("wrong", cleanPodPolicy="Sometimes")
    with pytest.raises(AssertionError, match="Unsupported value"):
        stack.apply(wrong)


def test_it_has_the_rights_that_it_uses_and_no_others(stack: OperatorStack) -> None:
    stack.check_rights(SYSTEM, "mpi-operator", mpi.RIGHTS)
