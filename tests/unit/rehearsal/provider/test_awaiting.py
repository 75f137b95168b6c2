"""When an object counts as ready, and what is reported if it does not become ready."""

import threading
from typing import Any

import pytest

from persia_infra.kube.api import ApiResource, Object
from persia_infra.rehearsal.provider import awaiting
from tests.support.fake_api import FakeApi


def live_object(kind: str, api_version: str, spec: Object, status: Object, generation: int = 2) -> Object:
    metadata = {"name": "x", "namespace": "train", "uid": "1", "generation": generation}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, "status": status}


def waited(live: Object, *, cancelled: bool = True, others: dict[str, list[Object]] | None = None) -> Object:
    """Waits for an object that stays as it is; the wait is cancelled, so that it ends at once."""

    def answer(_: str, path: str, *__: Any) -> Object:
        collection = path.rsplit("/", 1)[-1]
        item = {name: value for name, value in live.items() if name not in ("apiVersion", "kind")}
        listed = (others or {}).get(collection, []) if collection != "xs" else [item]
        return {"apiVersion": live["apiVersion"], "kind": f"{live['kind']}List", "items": listed}

    event = threading.Event()
    if cancelled:
        event.set()
    resource = ApiResource("/apis/test", "xs", live["kind"], True)
    return awaiting.wait_until_up(FakeApi(answer), resource, live, timeout=60, cancelled=event)


CONDITION = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"}


@pytest.mark.parametrize(
    ("kind", "api_version", "spec", "status"),
    [
        ("Deployment", "apps/v1", {"replicas": 2}, {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}),
        ("Deployment", "apps/v1", {"replicas": 0}, {}),
        ("StatefulSet", "apps/v1", {"replicas": 2}, {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2}),
        ("StatefulSet", "apps/v1", {"replicas": 0}, {"replicas": 0}),
        (
            "StatefulSet",
            "apps/v1",
            {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
            {"replicas": 3, "readyReplicas": 3, "updatedReplicas": 1},
        ),
        ("DaemonSet", "apps/v1", {}, {"desiredNumberScheduled": 0}),
        ("Job", "batch/v1", {}, {"conditions": [{"type": "Complete", "status": "True"}]}),
        ("Job", "batch/v1", {"suspend": True}, {}),
        ("Pod", "v1", {}, {"phase": "Succeeded"}),
        ("PersistentVolumeClaim", "v1", {}, {"phase": "Bound"}),
        ("Service", "v1", {"type": "ExternalName"}, {}),
        ("Service", "v1", {"selector": {"a": "b"}, "clusterIP": "None"}, {}),
        ("ConfigMap", "v1", {}, {}),
    ],
)
def test_an_object_that_is_ready_ends_the_wait(kind: str, api_version: str, spec: Object, status: Object) -> None:
    live = live_object(kind, api_version, spec, status | {"observedGeneration": 2})
    assert waited(live) == live


@pytest.mark.parametrize(
    ("kind", "api_version", "spec", "status", "reason"),
    [
        (
            "Deployment",
            "apps/v1",
            {"replicas": 2},
            {"replicas": 3, "updatedReplicas": 2, "availableReplicas": 2},
            "2 of 2 pods are available",
        ),
        (
            "StatefulSet",
            "apps/v1",
            {"replicas": 2},
            {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 1},
            "2 of 2 pods are ready, 1 are up to date",
        ),
        ("DaemonSet", "apps/v1", {}, {"desiredNumberScheduled": 2, "numberAvailable": 1}, "1 of 2 pods"),
        ("Job", "batch/v1", {"completions": 3}, {"succeeded": 1}, "1 of 3 pods have completed"),
        ("Pod", "v1", {}, {"phase": "Pending"}, "phase Pending"),
        ("Service", "v1", {"type": "LoadBalancer"}, {}, "load balancer has no address"),
    ],
)
def test_an_object_that_is_not_ready_is_reported_with_its_progress(
    kind: str, api_version: str, spec: Object, status: Object, reason: str
) -> None:
    live = live_object(kind, api_version, spec, status | {"observedGeneration": 2})
    with pytest.raises(awaiting.NotUp) as error:
        waited(live)
    assert error.value.reasons[0].startswith(f"[{kind} train/x]: cancelled while waiting: ")
    assert reason in error.value.reasons[0]


def test_a_status_from_before_the_change_is_ignored() -> None:
    status = {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1}
    with pytest.raises(awaiting.NotUp, match="the controller has not seen it yet"):
        waited(live_object("StatefulSet", "apps/v1", {"replicas": 1}, status))


def test_a_failure_ends_the_wait_with_the_pods_reasons_and_the_warnings() -> None:
    spec = {"replicas": 9, "selector": {"matchLabels": {"app": "web"}}}
    live = live_object("Deployment", "apps/v1", spec, {"observedGeneration": 2, "conditions": [CONDITION]})
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    pods = [
        {"metadata": {"name": f"web-{index}", "namespace": "train"}, "status": {"conditions": [unscheduled]}}
        for index in range(9)
    ]
    events = [{"reason": "FailedCreate", "message": "exceeded quota"}]
    with pytest.raises(awaiting.NotUp) as error:
        waited(live, cancelled=False, others={"pods": pods, "events": events})
    reasons = error.value.reasons
    assert reasons[0] == "[Deployment train/x]: failed: late"
    assert reasons[1] == "[Pod train/web-0]: Unschedulable: 0/3 nodes"
    assert reasons[-2:] == ["and 1 more pods like these", "[Deployment train/x]: FailedCreate: exceeded quota"]


def test_many_waits_share_one_list() -> None:
    cluster = FakeApi(lambda *_: {"items": []})
    view = cluster.view(ApiResource("/api/v1", "pods", "Pod", True), "train")
    for _ in range(50):
        view.objects(0)
    assert len(cluster.requests) == 1


class TestWorkloads:
    def test_a_stateful_set_with_updates_on_deletion_does_not_wait_for_them(self) -> None:
        spec = {"replicas": 2, "updateStrategy": {"type": "OnDelete"}}
        status = {"observedGeneration": 2, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 0}
        assert waited(live_object("StatefulSet", "apps/v1", spec, status))

    def test_a_daemon_set_with_updates_on_deletion_does_not_wait_for_them(self) -> None:
        status = {"observedGeneration": 2, "desiredNumberScheduled": 2, "numberAvailable": 2}
        spec = {"updateStrategy": {"type": "OnDelete"}}
        assert waited(live_object("DaemonSet", "apps/v1", spec, status))
        with pytest.raises(awaiting.NotUp, match="0 are up to date"):
            waited(live_object("DaemonSet", "apps/v1", {}, status))

    def test_a_paused_deployment_is_ready(self) -> None:
        assert waited(live_object("Deployment", "apps/v1", {"replicas": 2, "paused": True}, {"observedGeneration": 2}))

    def test_a_failed_pod_ends_the_wait(self) -> None:
        with pytest.raises(awaiting.NotUp, match="failed: Failed: Evicted"):
            waited(live_object("Pod", "v1", {}, {"phase": "Failed", "reason": "Evicted"}), cancelled=False)

    def test_a_job_that_removes_itself_after_its_end_counts_as_done(self) -> None:
        resource = ApiResource("/apis/test", "xs", "Job", True)
        nothing = FakeApi(lambda *_: {"items": []})
        job = live_object("Job", "batch/v1", {"ttlSecondsAfterFinished": 0}, {})
        assert awaiting.wait_until_up(nothing, resource, job, timeout=60, cancelled=threading.Event()) == job

    def test_an_object_deleted_by_someone_else_ends_the_wait(self) -> None:
        resource = ApiResource("/apis/test", "xs", "Job", True)
        job = live_object("Job", "batch/v1", {}, {})
        with pytest.raises(awaiting.NotUp, match="deleted by someone else"):
            awaiting.wait_until_up(
                FakeApi(lambda *_: {"items": []}), resource, job, timeout=60, cancelled=threading.Event()
            )


class TestServices:
    SERVICE = live_object("Service", "v1", {"selector": {"a": "b"}, "clusterIP": "10.0.0.1"}, {})

    @staticmethod
    def waited_with(*, service: str = "x", **endpoint: Any) -> Object:
        labels = {"kubernetes.io/service-name": service}
        endpoint_slice = {"metadata": {"name": "x-1", "labels": labels}, "endpoints": [endpoint]}

        def answer(_: str, path: str, *__: Any) -> Object:
            if path == "/apis/discovery.k8s.io/v1":
                return {"resources": [{"kind": "EndpointSlice", "name": "endpointslices", "namespaced": True}]}
            if path.endswith("/endpointslices"):
                return {"items": [endpoint_slice]}
            return {"items": [TestServices.SERVICE] if path.endswith("/xs") else []}

        cancelled = threading.Event()
        cancelled.set()
        resource = ApiResource("/apis/test", "xs", "Service", True)
        return awaiting.wait_until_up(FakeApi(answer), resource, TestServices.SERVICE, timeout=60, cancelled=cancelled)

    def test_a_service_is_ready_once_a_pod_behind_it_is(self) -> None:
        assert self.waited_with(addresses=["10.0.0.7"], conditions={"ready": True})
        assert self.waited_with(addresses=["10.0.0.7"])

    @pytest.mark.parametrize(
        "endpoint",
        [
            {"addresses": ["10.0.0.7"], "conditions": {"ready": False}},
            {"addresses": []},
            {"addresses": ["10.0.0.7"], "service": "other"},
        ],
    )
    def test_a_service_waits_for_a_ready_pod_of_its_own(self, endpoint: dict[str, Any]) -> None:
        with pytest.raises(awaiting.NotUp, match="no ready pod matches its selector"):
            self.waited_with(**endpoint)


class TestClaims:
    @staticmethod
    def claim(phase: str, **spec: Any) -> Object:
        classes = [
            {
                "metadata": {
                    "name": "late",
                    "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                },
                "volumeBindingMode": "WaitForFirstConsumer",
            },
            {"metadata": {"name": "now"}, "volumeBindingMode": "Immediate"},
        ]
        live = live_object("PersistentVolumeClaim", "v1", spec, {"phase": phase})

        def answer(_: str, path: str, *__: Any) -> Object:
            if path == "/apis/storage.k8s.io/v1":
                return {"resources": [{"kind": "StorageClass", "name": "storageclasses", "namespaced": False}]}
            if path.endswith("/storageclasses"):
                return {"items": classes}
            return {"items": [live] if path.endswith("/xs") else []}

        cancelled = threading.Event()
        if phase != "Lost":
            cancelled.set()
        resource = ApiResource("/apis/test", "xs", "PersistentVolumeClaim", True)
        return awaiting.wait_until_up(FakeApi(answer), resource, live, timeout=60, cancelled=cancelled)

    def test_a_claim_that_waits_for_its_first_pod_counts_as_ready(self) -> None:
        assert self.claim("Pending", storageClassName="late")
        assert self.claim("Pending")

    def test_a_claim_of_an_immediate_class_waits_for_its_volume(self) -> None:
        with pytest.raises(awaiting.NotUp, match="no volume of storage class now"):
            self.claim("Pending", storageClassName="now")
        with pytest.raises(awaiting.NotUp, match=r"no volume of storage class \(none\)"):
            self.claim("Pending", storageClassName="")

    def test_a_claim_that_lost_its_volume_fails(self) -> None:
        with pytest.raises(awaiting.NotUp, match="failed: its volume is gone"):
            self.claim("Lost")
