"""Volcano 1.14.1 (scheduler, controllers, webhooks), and gangs of the MPI and Paddle operators on it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from operator_stack import OperatorStack, Program, wait_for
from persia_components.operators import mpi, paddle, volcano

from persia_infra.operators import MpiOperatorSpec, PaddleOperatorSpec, QueueSpec, VolcanoSpec
from persia_infra.rehearsal.stages import KEEPS_RUNNING

TRAINING = "gang-training"
SYSTEM = "volcano-system"
GPU_NODES = [f"gang-probe-{index}" for index in range(8)]


def program(certificate: str = "1") -> Program:
    def declare() -> None:
        queues = {"research": QueueSpec(weight=2, capability={"nvidia.com/gpu": "640"})}
        volcano.Volcano("volcano", VolcanoSpec(queues=queues, webhook_certificate=certificate))
        mpi.MpiOperator("mpi", MpiOperatorSpec(), gangs=True)
        paddle.PaddleOperator("paddle", PaddleOperatorSpec(), gangs=True)

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
    wait_for("it says why", lambda: reasons(stack) & {"NotEnoughResources", "Unschedulable"})
    assert stack.running(TRAINING) == set()
    stack.kubectl("delete", kind, "--namespace", TRAINING, "gang")
    wait_for("it goes", lambda: stack.names("pods,podgroups", TRAINING), until=lambda seen: not seen)


def reasons(stack: OperatorStack) -> set[str]:
    """Why the gang waits, as its PodGroup or the events about it say."""
    groups = json.loads(stack.kubectl("get", "podgroups", "--namespace", TRAINING, "-o", "json"))["items"]
    events = json.loads(stack.kubectl("get", "events", "--namespace", TRAINING, "-o", "json"))["items"]
    uids = {group["metadata"]["uid"] for group in groups}
    said = [one for group in groups for one in group.get("status", {}).get("conditions", [])]
    return {one.get("reason", "") for one in [*said, *(e for e in events if e["involvedObject"].get("uid") in uids)]}


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


def test_the_webhooks_answer_with_the_certificate_that_the_program_made(stack: OperatorStack) -> None:
    closed = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    with pytest.raises(AssertionError, match=r"validatepodgroup\.volcano\.sh"):
        stack.apply({**closed, "metadata": {"name": "lost", "namespace": TRAINING}, "spec": {"queue": "nowhere"}})


def test_a_second_update_changes_nothing_and_the_private_key_is_nowhere_in_the_state(stack: OperatorStack) -> None:
    assert stack.up(program()) == {}
    assert stack.refresh() == {}
    key = next(name for name in stack.names("secrets", SYSTEM) if name.startswith("volcano-admission"))
    assert stack.get("secret", SYSTEM, key)["data"]["tls.key"] not in stack.state_on_disk()


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
