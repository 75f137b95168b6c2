"""PERSIA's own operator (0.1.dev251) with the rights that its component declares."""

from typing import Any

import pulumi
import pytest
from persia_components import Operator
from pulumi_kubernetes import apiextensions

from persia_infra.jobs.status import JobStatus
from persia_infra.operators import PersiaOperatorSpec, persia
from tests.support.job_status import counts, job_status
from tests.support.operator_stack import OperatorStack, Program, wait_for

TRAINING = "persia-training"
SYSTEM = "persia-system"
JOB: dict[str, Any] = {
    "persiaEnv": {
        "PERSIA_GLOBAL_CONFIG": "/config/global.yaml",
        "PERSIA_EMBEDDING_CONFIG": "/config/embedding.yaml",
        "PERSIA_NN_WORKER_ENTRY": "/code/train.py",
        "PERSIA_DATALOADER_ENTRY": "/code/data.py",
    },
    "env": [{"name": "PERSIA_NATS_URL", "value": "nats://nats:4222"}],
    "embeddingParameterServer": {"replicas": 2, "resources": {"limits": {"memory": "1Gi", "cpu": "1"}}},
    "embeddingWorker": {"replicas": 1},
    "nnWorker": {"replicas": 1, "nprocPerNode": 1},
    "dataloader": {"replicas": 1},
}
MADE = {
    "adult-dataloader-0",
    "adult-embedding-ps-0",
    "adult-embedding-ps-1",
    "adult-embedding-worker-0",
    "adult-metrics-gateway",
    "adult-nn-worker-0",
}


def program(*, job: bool) -> Program:
    def declare() -> None:
        operator = Operator("persia", PersiaOperatorSpec())
        if job:
            apiextensions.CustomResource(
                "adult",
                api_version="persia.com/v1",
                kind="PersiaJob",
                metadata={"name": "adult", "namespace": TRAINING},
                spec=JOB,
                opts=pulumi.ResourceOptions(depends_on=[operator]),
            )

    return declare


@pytest.fixture(scope="module")
def stack(operator_stack: OperatorStack) -> OperatorStack:
    operator_stack.kubectl("create", "namespace", TRAINING)
    operator_stack.up(program(job=True))
    operator_stack.processes.start(SYSTEM, "persia-operator")
    return operator_stack


def test_a_job_becomes_its_pods_and_the_metrics_service(stack: OperatorStack) -> None:
    wait_for("its pods run", lambda: stack.running(TRAINING), until=lambda seen: seen == MADE)
    assert stack.names("services", TRAINING) == {"adult-metrics-gateway-service"}


def status(stack: OperatorStack) -> JobStatus:
    job = {"kind": "PersiaJob", "mode": "operator", **JOB}
    return job_status(stack.control_plane, TRAINING, {"persia": {}}, "adult", job)


def test_status_tells_how_the_job_is_doing(stack: OperatorStack) -> None:
    running = status(stack)

    assert running.phase == "Running"
    assert counts(running) == {
        "embeddingParameterServer": (2, 2, 0, 0),
        "embeddingWorker": (1, 1, 0, 0),
        "nnWorker": (1, 1, 0, 0),
        "dataloader": (1, 1, 0, 0),
        "metricsGateway": (1, 1, 0, 0),
    }
    assert running.log == f"kubectl logs --namespace {TRAINING} --follow adult-nn-worker-0"


def test_status_knows_that_a_lost_pod_stays_lost_and_when_training_is_over(stack: OperatorStack) -> None:
    stack.kubectl("delete", "pod", "--namespace", TRAINING, "adult-embedding-worker-0")

    lost = status(stack)

    assert (lost.phase, counts(lost)["embeddingWorker"]) == ("Pending", (1, 0, 1, 0))
    (reason,) = (role.reason for role in lost.roles if role.reason)
    assert reason.startswith("the PERSIA operator creates each pod only once")

    ended = '{"status":{"phase":"Succeeded"}}'
    patch = ("--subresource=status", "--type=merge", "--patch", ended)
    stack.kubectl("patch", "pod", "--namespace", TRAINING, "adult-nn-worker-0", *patch)

    assert status(stack).phase == "Succeeded"


def test_the_schema_demands_what_the_operator_needs(stack: OperatorStack) -> None:
    manifest = {
        "apiVersion": "persia.com/v1",
        "kind": "PersiaJob",
        "metadata": {"name": "wrong", "namespace": TRAINING},
    }
    for broken, said in (
        ({}, 'missing required field "persiaEnv"'),
        ({**JOB, "nnWorker": {"replicas": 1}}, 'missing required field "nprocPerNode"'),
        (
            {**JOB, "dataloader": {"replicas": 1, "resources": {"limits": {"nvidia.com/gpu": 8}}}},
            "must be of type string",
        ),
    ):
        with pytest.raises(AssertionError, match=said):
            stack.apply({**manifest, "spec": broken})


def test_a_job_that_is_removed_leaves_nothing_behind(stack: OperatorStack) -> None:
    stack.up(program(job=False))
    assert stack.names("persiajobs", TRAINING) == set()
    wait_for("all of it goes", lambda: stack.names("pods,services", TRAINING), until=lambda seen: not seen)


def test_it_has_the_rights_that_it_uses_and_no_others(stack: OperatorStack) -> None:
    stack.check_rights(SYSTEM, "persia-operator", persia.RIGHTS)
