"""Whether a pod runs and why not, from pods as the API server returns them."""

from typing import Any

import pytest

from persia_infra.kube.pod_state import NotRunning, runs, why_not_running


def pod(phase: str, *conditions: dict[str, str], gates: bool = False, **status: Any) -> dict[str, Any]:
    spec = {"schedulingGates": [{"name": "example.com/wait"}]} if gates else {}
    return {"spec": spec, "status": {"phase": phase, "conditions": list(conditions), **status}}


def condition(name: str, status: str, **details: str) -> dict[str, str]:
    return {"type": name, "status": status, **details}


SCHEDULED = condition("PodScheduled", "True")
READY = condition("Ready", "True")
NOT_READY = condition("Ready", "False")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (pod("Running", SCHEDULED, READY), True),
        (pod("Running", SCHEDULED, NOT_READY), False),
        (pod("Running"), False),
        (pod("Pending", READY), False),
        (pod("Succeeded", NOT_READY), True),
        (pod("Failed", NOT_READY), False),
    ],
)
def test_a_pod_runs_when_it_is_ready_or_has_succeeded(state: dict[str, Any], expected: bool) -> None:
    assert runs(state) is expected


def test_a_pod_that_no_scheduler_looked_at_only_waits() -> None:
    assert why_not_running(pod("Pending")) == NotRunning("its scheduler has not looked at it yet", waiting_only=True)


def test_a_pod_of_a_waiting_gang_only_waits() -> None:
    message = "pod group is not ready, 3 Pending, 3 minAvailable"
    state = pod("Pending", condition("PodScheduled", "False", reason="Unschedulable", message=message))
    assert why_not_running(state) == NotRunning(message, waiting_only=True)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (
            pod("Pending", condition("PodScheduled", "False", reason="Unschedulable", message="0/3 nodes fit")),
            "0/3 nodes fit",
        ),
        (pod("Pending", condition("PodScheduled", "False", reason="SchedulingGated")), "SchedulingGated"),
        (pod("Pending", condition("PodScheduled", "False")), "not scheduled"),
        (pod("Pending", gates=True), "held by a scheduling gate"),
        (pod("Failed", SCHEDULED, message="The node was low on resource: memory."), "low on resource"),
        (pod("Running", SCHEDULED, NOT_READY), "not ready yet"),
    ],
)
def test_a_pod_with_a_problem_of_its_own_states_it(state: dict[str, Any], reason: str) -> None:
    answer = why_not_running(state)
    assert reason in answer.reason
    assert not answer.waiting_only


@pytest.mark.parametrize(
    ("container_state", "reason"),
    [
        (
            {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}},
            "main: ImagePullBackOff no such image",
        ),
        ({"terminated": {"reason": "OOMKilled"}}, "main: OOMKilled"),
        ({"terminated": {}, "waiting": {}}, "not ready yet"),
    ],
)
def test_the_state_of_a_container_is_the_reason(container_state: dict[str, Any], reason: str) -> None:
    containers = [{"name": "sidecar", "state": {"running": {}}}, {"name": "main", "state": container_state}]
    state = pod("Running", SCHEDULED, NOT_READY, containerStatuses=containers)
    assert why_not_running(state) == NotRunning(reason)
