"""Pods and nodes as a rehearsal sees them, from objects as the API server gives them."""

from typing import Any

import pytest

from persia_infra.rehearsal import observation
from persia_infra.rehearsal.observation import Observer, PendingPod
from persia_infra.rehearsal.rehearse import STUCK_AFTER_SECONDS, StuckPods


def pod(name: str, phase: str, *, ready: bool = False, unschedulable: str = "", owner: str = "") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    if unschedulable:
        conditions.append({"type": "PodScheduled", "status": "False", "message": unschedulable})
    metadata: dict[str, Any] = {"name": name, "namespace": "training"}
    if owner:
        kind, owner_name = owner.split("/")
        metadata["ownerReferences"] = [{"kind": kind, "name": owner_name}]
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase, "conditions": conditions}}


def stateful_set(name: str, replicas: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "training"}, "spec": {"replicas": replicas}, "status": {}}


class Server:
    """Answers with the objects it is given."""

    def __init__(self, **lists: list[dict[str, Any]]) -> None:
        self.lists = lists

    def request(self, method: str, path: str) -> dict[str, Any]:
        assert method == "GET"
        return {"items": self.lists.get(path.rsplit("/", 1)[-1], [])}


@pytest.fixture
def observer(monkeypatch: pytest.MonkeyPatch) -> Any:
    def observe(**lists: list[dict[str, Any]]) -> Observer:
        monkeypatch.setattr(observation, "connect", lambda *_: Server(**lists))
        return Observer(observation.Path("kubeconfig"))

    return observe


def test_each_pending_pod_has_the_reason_of_the_scheduler(observer: Any) -> None:
    seen = observer(
        pods=[
            pod("ps-0", "Running", ready=True),
            pod("ps-1", "Pending", unschedulable="0/3 nodes are available: 3 Insufficient cpu."),
            pod("done", "Succeeded"),
        ]
    ).pods()
    assert (seen.wanted, seen.running) == (3, 2)
    assert seen.names == ("training/done", "training/ps-0")
    assert seen.pending == (PendingPod("training/ps-1", "0/3 nodes are available: 3 Insufficient cpu."),)
    assert not seen.all_running


def test_pods_that_were_never_created_are_wanted_too(observer: Any) -> None:
    seen = observer(
        pods=[pod("ps-0", "Running", ready=True, owner="StatefulSet/ps")], statefulsets=[stateful_set("ps", 3)]
    )
    assert (seen.pods().wanted, seen.pods().running) == (3, 1)
    assert seen.pods().pending == (PendingPod("training/ps", "StatefulSet: 2 pods do not exist yet"),)


def test_running_but_not_ready_is_pending(observer: Any) -> None:
    assert [one.reason for one in observer(pods=[pod("a", "Running")]).pods().pending] == [
        "its scheduler has not looked at it yet"
    ]


def test_a_failed_pod_that_its_job_replaces_does_not_count(observer: Any) -> None:
    seen = observer(pods=[pod("job-1", "Failed", owner="Job/job"), pod("job-2", "Succeeded", owner="Job/job")]).pods()
    assert (seen.wanted, seen.running, seen.pending) == (1, 1, ())
    assert observer(pods=[pod("web-1", "Failed", owner="ReplicaSet/web")]).pods().wanted == 1


def test_a_workload_states_why_it_cannot_create_pods(observer: Any) -> None:
    workload = stateful_set("ps", 1)
    workload["status"] = {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}]}
    (pending,) = observer(statefulsets=[workload]).pods().pending
    assert pending == PendingPod("training/ps", "StatefulSet: 1 pods do not exist yet: exceeded quota")


def test_nodes_are_counted_by_pool(observer: Any) -> None:
    labels = [{"cloud.google.com/gke-nodepool": "gpu"}, {"cloud.google.com/gke-nodepool": "gpu"}, {}]
    nodes = [{"metadata": {"name": str(index), "labels": each}} for index, each in enumerate(labels)]
    assert observer(nodes=nodes).nodes() == {"gpu": 2, "none": 1}


class TestObjects:
    KINDS = (("pods", True), ("nodes", False), ("events", True), ("pods/status", True))

    @pytest.fixture
    def names(self, monkeypatch: pytest.MonkeyPatch) -> set[str]:
        def request(_: str, path: str) -> dict[str, Any]:
            if path == "/apis":
                return {"groups": []}
            if path == "/api/v1":
                return {
                    "resources": [
                        {"name": name, "namespaced": namespaced, "verbs": ["list"]} for name, namespaced in self.KINDS
                    ]
                    + [{"name": "bindings", "namespaced": True, "verbs": ["create"]}]
                }
            return {
                "items": [
                    {"metadata": {"name": "x", "namespace": "training"}},
                    {"metadata": {"name": "y", "namespace": "kube-system"}},
                ]
            }

        server = Server()
        monkeypatch.setattr(server, "request", request)
        monkeypatch.setattr(observation, "connect", lambda *_: server)
        return Observer(observation.Path("kubeconfig")).objects()

    def test_objects_of_the_control_plane_itself_are_left_out(self, names: set[str]) -> None:
        assert "pods training/x" in names
        assert "pods kube-system/y" not in names
        assert not [name for name in names if name.startswith("events")]

    def test_objects_outside_of_namespaces_are_included(self, names: set[str]) -> None:
        assert {"nodes x", "nodes y"} <= names


def test_nothing_deployed_is_all_running(observer: Any) -> None:
    assert observer().pods().all_running


def test_pods_are_stuck_only_after_nothing_moved_for_a_while(observer: Any) -> None:
    now = 0.0
    pending = [pod("a", "Pending", unschedulable="no fit")]
    stuck = StuckPods(observer(pods=pending), clock=lambda: now)
    assert not stuck.for_too_long()
    now += STUCK_AFTER_SECONDS - 1
    assert not stuck.for_too_long()
    pending.append(pod("b", "Running", ready=True))
    now += 2
    assert not stuck.for_too_long()
    now += STUCK_AFTER_SECONDS + 1
    assert stuck.for_too_long()


def test_pods_that_all_run_are_never_stuck(observer: Any) -> None:
    now = 0.0
    stuck = StuckPods(observer(pods=[pod("a", "Running", ready=True)]), clock=lambda: now)
    stuck.for_too_long()
    now += 10 * STUCK_AFTER_SECONDS
    assert not stuck.for_too_long()
