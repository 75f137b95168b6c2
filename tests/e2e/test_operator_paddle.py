"""The Paddle operator 0.3.1 with the rights that its component declares."""

from typing import Any

import pulumi
import pytest
from persia_components import Operator
from pulumi_kubernetes import apiextensions

from persia_infra.operators import PaddleOperatorSpec, paddle
from tests.support.operator_stack import OperatorStack, Program, wait_for

TRAINING = "paddle-training"
SYSTEM = "paddle-system"


def role(replicas: int) -> dict[str, Any]:
    container = {"name": "paddle", "image": "registry.example/paddle:1", "resources": {"requests": {"cpu": "1"}}}
    return {"replicas": replicas, "template": {"spec": {"containers": [container]}}}


JOBS: dict[str, dict[str, Any]] = {
    "servers": {"withGloo": 1, "cleanPodPolicy": "OnCompletion", "ps": role(1), "worker": role(2)},
    "collective": {"cleanPodPolicy": "Never", "intranet": "Service", "worker": role(2)},
}


def program(*jobs: str) -> Program:
    def declare() -> None:
        operator = Operator("paddle", PaddleOperatorSpec())
        for job in jobs:
            apiextensions.CustomResource(
                job,
                api_version="batch.paddlepaddle.org/v1",
                kind="PaddleJob",
                metadata={
                    "name": job,
                    "namespace": TRAINING,
                    "annotations": {"pulumi.com/deletionPropagationPolicy": "background"},
                },
                spec=JOBS[job],
                opts=pulumi.ResourceOptions(depends_on=[operator]),
            )

    return declare


@pytest.fixture(scope="module")
def stack(operator_stack: OperatorStack) -> OperatorStack:
    operator_stack.kubectl("create", "namespace", TRAINING)
    operator_stack.up(program(*JOBS))
    operator_stack.processes.start(SYSTEM, "paddle-operator")
    return operator_stack


def status(stack: OperatorStack, job: str) -> dict[str, Any]:
    return stack.get("paddlejob", TRAINING, job).get("status", {})


def phase(stack: OperatorStack, job: str) -> str:
    return status(stack, job).get("phase", "")


def pods(stack: OperatorStack, job: str) -> set[str]:
    return {name for name in stack.names("pods", TRAINING) if name.startswith(job)}


def succeed(stack: OperatorStack, *names: str) -> None:
    """What their kubelet would say when the training is over."""
    for name in names:
        ended = '{"status":{"phase":"Succeeded"}}'
        stack.kubectl(
            "patch", "pod", "--namespace", TRAINING, name, "--subresource=status", "--type=merge", "-p", ended
        )


@pytest.mark.parametrize(
    ("job", "mode", "made"),
    [
        ("servers", "PS", {"servers-ps-0", "servers-worker-0", "servers-worker-1"}),
        ("collective", "Collective", {"collective-worker-0", "collective-worker-1"}),
    ],
)
def test_a_job_runs_with_its_pods_services_and_endpoints(
    stack: OperatorStack, job: str, mode: str, made: set[str]
) -> None:
    wait_for("the job runs", lambda: phase(stack, job), until=lambda seen: seen == "Running")
    assert status(stack, job)["mode"] == mode
    assert pods(stack, job) == made
    endpoints = stack.get("configmap", TRAINING, job)["data"]
    assert len(endpoints["PADDLE_TRAINER_ENDPOINTS"].split(",")) == 2
    assert {name for name in stack.names("services", TRAINING) if name.startswith(job)} == (
        made if JOBS[job].get("intranet") == "Service" else set()
    )
    assert ("PADDLE_PSERVERS_IP_PORT_LIST" in endpoints) == (mode == "PS")


def test_a_job_whose_workers_succeed_is_completed_and_cleaned_up_as_its_policy_says(stack: OperatorStack) -> None:
    succeed(stack, "servers-ps-0", "servers-worker-0", "servers-worker-1")
    succeed(stack, "collective-worker-0", "collective-worker-1")
    for job in JOBS:
        wait_for(f"{job} completes", lambda job=job: phase(stack, job), until=lambda seen: seen == "Completed")
    wait_for("its pods go", lambda: pods(stack, "servers"), until=lambda seen: not seen)
    assert pods(stack, "collective") == {"collective-worker-0", "collective-worker-1"}


def test_a_job_that_is_removed_takes_its_finalizer_and_pods_along(stack: OperatorStack) -> None:
    stack.up(program("servers"))
    assert stack.names("paddlejobs", TRAINING) == {"servers"}
    wait_for("its pods go", lambda: pods(stack, "collective"), until=lambda seen: not seen)


def test_it_has_the_rights_that_it_uses_and_no_others(stack: OperatorStack) -> None:
    stack.check_rights(SYSTEM, "paddle-operator", paddle.RIGHTS)


def test_destroy_removes_jobs_before_the_operator_that_holds_them(stack: OperatorStack) -> None:
    assert stack.get("paddlejob", TRAINING, "servers")["metadata"]["finalizers"] == ["finalizers.paddlepaddle.org"]
    stack.destroy()
    assert "paddlejobs.batch.paddlepaddle.org" not in stack.names("crd", "default")
    assert stack.names("deployments", SYSTEM) == set()
