"""The simulated kubernetes package without a cluster, and on an API server that a test makes up."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from persia_infra.kube.api import ApiResource, Cluster, CollectionView, Object, Refused
from persia_infra.rehearsal.provider import awaiting, kubernetes
from persia_infra.rehearsal.provider.kubernetes import Kubernetes
from persia_infra.rehearsal.provider.package import UNKNOWN, ProviderError, Secret, Seed, Urn

Answer = Callable[[str, str, dict[str, str], Any], Object]


def urn(token: str, name: str = "thing") -> Urn:
    return Urn(f"urn:pulumi:dev::project::kubernetes:{token}::{name}")


CONFIG_MAP = urn("core/v1:ConfigMap")


class FakeCluster(Cluster):
    """Answers each request with what the test says."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._discovered = {}
        self._discovery_lock = threading.Lock()
        self._views: dict[str, CollectionView] = {}
        self._views_lock = threading.Lock()
        self.requests: list[str] = []

    def request(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "",  # noqa: ARG002
    ) -> Object:
        self.requests.append(f"{method} {path}")
        if path == "/api/v1":
            kinds = {"ConfigMap": "configmaps", "Pod": "pods", "Event": "events", "Service": "services"}
            return {"resources": [{"kind": k, "name": name, "namespaced": True} for k, name in kinds.items()]}
        return self._answer(method, path, query or {}, body)


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kubernetes:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    provider = Kubernetes()
    provider.configure({})
    return provider


def on(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> Kubernetes:
    monkeypatch.setattr(kubernetes, "connect", lambda *_: FakeCluster(answer))
    monkeypatch.setattr(kubernetes, "_PATIENCE_SECONDS", 0.0)
    provider = Kubernetes()
    provider.configure({"kubeconfig": "a: b\n"})
    return provider


def checked(provider: Kubernetes, where: Urn, news: dict[str, Any]) -> dict[str, Any]:
    inputs, failures = provider.check(where, {}, news, Seed(b"seed"))
    assert failures == []
    return inputs


class TestCheck:
    def test_fills_in_what_the_type_says_and_the_default_namespace(self, unreachable: Kubernetes) -> None:
        inputs = checked(unreachable, urn("apps/v1:Deployment"), {"metadata": {"name": "web"}, "spec": None})
        assert inputs == {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
        }

    def test_objects_of_the_cluster_get_no_namespace(self, unreachable: Kubernetes) -> None:
        inputs = checked(unreachable, urn("core/v1:Namespace"), {"metadata": {"name": "train"}})
        assert inputs["metadata"] == {"name": "train"}

    def test_the_scope_of_a_kind_that_the_same_program_defines(self, unreachable: Kubernetes) -> None:
        definition = {
            "metadata": {"name": "trials.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"kind": "Trial"},
                "versions": [{"name": "v1"}],
            },
        }
        trial = {"metadata": {"name": "one"}}
        before = checked(unreachable, urn("example.com/v1:Trial"), trial)
        assert "namespace" not in before["metadata"]
        checked(unreachable, urn("apiextensions.k8s.io/v1:CustomResourceDefinition"), definition)
        after = checked(unreachable, urn("example.com/v1:Trial"), {"metadata": {"name": "one"}})
        assert after["metadata"]["namespace"] == "default"

    def test_the_data_of_a_secret_is_always_secret(self, unreachable: Kubernetes) -> None:
        inputs = checked(unreachable, urn("core/v1:Secret"), {"stringData": {"a": "b"}})
        assert inputs["stringData"] == Secret({"a": "b"})

    @pytest.mark.parametrize(
        "token", ["helm.sh/v3:Release", "yaml/v2:ConfigFile", "kustomize/v2:Directory", "apps/v1:DeploymentPatch"]
    )
    def test_what_only_the_official_plugin_does_is_refused(self, unreachable: Kubernetes, token: str) -> None:
        with pytest.raises(ProviderError, match="pulumi plugin install resource kubernetes"):
            unreachable.check(urn(token), {}, {}, b"")

    def test_a_custom_kind_may_be_called_patch(self, unreachable: Kubernetes) -> None:
        assert checked(unreachable, urn("example.com/v1:Patch"), {})["kind"] == "Patch"


class TestWithoutACluster:
    def test_a_preview_shows_the_inputs(self, unreachable: Kubernetes) -> None:
        inputs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": UNKNOWN}}
        object_id, outputs = unreachable.create(CONFIG_MAP, inputs, preview=True, timeout=0)
        assert object_id == ""
        assert outputs["data"] == {"a": UNKNOWN}
        assert outputs["status"] is UNKNOWN

    def test_a_real_create_says_what_is_missing(self, unreachable: Kubernetes) -> None:
        inputs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "train"}}
        with pytest.raises(ProviderError, match="ConfigMap train/x: no Kubernetes cluster: there is no kubeconfig"):
            unreachable.create(CONFIG_MAP, inputs, preview=False, timeout=0)

    def test_a_kubeconfig_that_is_no_kubeconfig_fails_only_where_it_is_needed(self, tmp_path: Path) -> None:
        provider = Kubernetes()
        provider.configure({"kubeconfig": str(tmp_path / "missing")})
        with pytest.raises(ProviderError, match="there is no file"):
            provider.read(CONFIG_MAP, "train/x", {}, {})

    def test_a_field_known_to_be_immutable_is_replaced(self, unreachable: Kubernetes) -> None:
        old = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": {"a": "1"}, "replicas": 1}}
        new = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": {"a": UNKNOWN}, "replicas": 2}}
        for inputs in (old, new):
            inputs["metadata"] = {"name": "web", "namespace": "train"}
        difference = unreachable.diff(urn("apps/v1:Deployment"), "train/web", old, old, new)
        assert difference.detailed == {"spec.selector.a": "update-replace", "spec.replicas": "update"}
        assert difference.delete_before_replace

    def test_a_new_name_is_a_replacement_that_may_be_made_first(self, unreachable: Kubernetes) -> None:
        old = {"kind": "ConfigMap", "metadata": {"name": "x-1", "namespace": "train"}}
        new = {"kind": "ConfigMap", "metadata": {"name": "x-2", "namespace": "train"}}
        difference = unreachable.diff(CONFIG_MAP, "train/x-1", old, old, new)
        assert difference.detailed == {"metadata.name": "update-replace"}
        assert not difference.delete_before_replace

    def test_a_namespace_filled_in_since_is_no_change(self, unreachable: Kubernetes) -> None:
        old = {"kind": "Trial", "metadata": {"name": "x"}}
        new = {"kind": "Trial", "metadata": {"name": "x", "namespace": "default"}}
        outputs = {"metadata": {"name": "x", "namespace": "default"}}
        assert unreachable.diff(urn("example.com/v1:Trial"), "default/x", old, outputs, new).detailed == {}

    def test_new_content_replaces_a_config_map_unless_told_otherwise(self, unreachable: Kubernetes) -> None:
        old = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}}
        new = old | {"data": {"a": "2"}}
        assert unreachable.diff(CONFIG_MAP, "x", old, old, new).detailed == {"data.a": "update-replace"}
        unreachable.configure({"enableConfigMapMutable": "true"})
        assert unreachable.diff(CONFIG_MAP, "x", old, old, new).detailed == {"data.a": "update"}


def refuse(status: int, message: str, reason: str = "Invalid", *causes: tuple[str, str], kind: str = "") -> Refused:
    details = {"kind": kind, "causes": [{"field": field, "message": text} for field, text in causes]}
    return Refused(status, {"message": message, "reason": reason, "details": details})


class TestRefusals:
    POD: Any = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "train"}}  # noqa: RUF012

    def test_come_with_the_object_and_one_line_for_each_cause(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def answer(*_: Any) -> Object:
            raise refuse(422, "Pod x is invalid", "Invalid", ("spec.a", "too big"), ("spec.b", "too small"))

        provider = on(monkeypatch, answer)
        with pytest.raises(ProviderError) as error:
            provider.create(urn("core/v1:Pod"), self.POD, preview=True, timeout=0)
        assert str(error.value) == "Pod train/x: Pod x is invalid\n  - spec.a: too big\n  - spec.b: too small"

    @pytest.mark.parametrize(
        "refusal",
        [
            refuse(404, 'namespaces "train" not found', "NotFound", kind="namespaces"),
            refuse(403, "pods x is forbidden: no PriorityClass with name gang was found", "Forbidden"),
            refuse(403, 'pods "x" is forbidden: error looking up service account train/default', "Forbidden"),
            refuse(500, "failed calling webhook mutate.example.com: connection refused", "InternalError"),
        ],
        ids=["namespace", "priority class", "service account", "webhook"],
    )
    def test_for_what_the_same_up_will_make_do_not_stop_a_preview(
        self, monkeypatch: pytest.MonkeyPatch, refusal: Refused
    ) -> None:
        def answer(*_: Any) -> Object:
            raise refusal

        provider = on(monkeypatch, answer)
        _, outputs = provider.create(urn("core/v1:Pod"), self.POD, preview=True, timeout=0)
        assert outputs["metadata"] == {"name": "x", "namespace": "train"}

    def test_an_owner_conflict_says_how_to_take_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def answer(*_: Any) -> Object:
            raise refuse(409, "Apply failed with 1 conflict: kubectl", "Conflict", (".spec.x", "kubectl"))

        provider = on(monkeypatch, answer)
        with pytest.raises(ProviderError, match=r'pulumi.com/patchForce: "true"'):
            provider.create(urn("core/v1:Pod"), self.POD, preview=False, timeout=0)

    @pytest.mark.parametrize(
        ("field", "message", "changed", "replaced"),
        [
            ("spec", "Forbidden: pod updates may not change fields other than `image`", "x", "spec.x"),
            ("spec.x", "Invalid value: 1: field is immutable", "x", "spec.x"),
        ],
    )
    def test_of_a_change_are_a_replacement_where_the_field_is_immutable(
        self, monkeypatch: pytest.MonkeyPatch, field: str, message: str, changed: str, replaced: str
    ) -> None:
        def answer(method: str, *_: Any) -> Object:
            if method == "GET":
                return self.POD
            raise refuse(422, "Pod x is invalid", "Invalid", (field, message))

        provider = on(monkeypatch, answer)
        new = self.POD | {"spec": {changed: 1}}
        old = self.POD | {"spec": {changed: 0}}
        difference = provider.diff(urn("core/v1:Pod"), "train/x", old, old, new)
        assert difference.replaces == [replaced]
        assert difference.delete_before_replace

    def test_of_a_change_that_no_object_may_have_are_told_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def answer(method: str, *_: Any) -> Object:
            if method == "GET":
                return self.POD
            raise refuse(422, "Pod x is invalid: spec.x: too big", "Invalid", ("spec.x", "too big"))

        provider = on(monkeypatch, answer)
        with pytest.raises(ProviderError, match=r"Pod train/x: Pod x is invalid: spec\.x: too big"):
            provider.diff(urn("core/v1:Pod"), "train/x", self.POD, self.POD, self.POD | {"spec": {"x": 1}})


def test_a_field_that_is_always_replaced_needs_no_leave_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    service = TestRefusals.POD | {"kind": "Service", "spec": {"clusterIP": "None"}}

    def answer(method: str, *_: Any) -> Object:
        if method == "GET":
            return service
        raise refuse(422, "Service x is invalid", "Invalid", ("spec.ipFamilies[1]", "not configured on this cluster"))

    new = service | {"spec": {"clusterIP": "10.0.0.7"}}
    difference = on(monkeypatch, answer).diff(urn("core/v1:Service"), "train/x", service, service, new)
    assert difference.replaces == ["spec.clusterIP"]


def test_a_change_without_effect_on_the_object_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    live = TestRefusals.POD | {"spec": {"cpu": "1"}}
    provider = on(monkeypatch, lambda *_: live)
    old, new = TestRefusals.POD | {"spec": {"cpu": "1"}}, TestRefusals.POD | {"spec": {"cpu": "1000m"}}
    assert provider.diff(urn("core/v1:Pod"), "train/x", old, old, new).detailed == {}


def test_an_object_on_its_way_out_is_not_taken_for_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = TestRefusals.POD
    going = pod | {"metadata": pod["metadata"] | {"deletionTimestamp": "now"}}
    provider = on(monkeypatch, lambda *_: going)
    with pytest.raises(ProviderError, match="Pod train/x: an object of that name is still being deleted"):
        provider.create(urn("core/v1:Pod"), pod, preview=False, timeout=0)


@pytest.mark.parametrize(
    ("annotations", "policy"),
    [({}, "Foreground"), ({"pulumi.com/deletionPropagationPolicy": "background"}, "Background")],
)
def test_a_deletion_takes_what_depends_on_the_object_with_it(
    monkeypatch: pytest.MonkeyPatch, annotations: dict[str, str], policy: str
) -> None:
    sent: list[Any] = []

    def answer(method: str, _: str, __: dict[str, str], body: Any) -> Object:
        if method == "DELETE":
            sent.append(body)
        elif sent:
            raise refuse(404, "not found", "NotFound")
        return pod

    pod = TestRefusals.POD | {"metadata": {"name": "x", "namespace": "train", "uid": "1", "annotations": annotations}}
    on(monkeypatch, answer).delete(urn("core/v1:Pod"), "train/x", pod, pod, timeout=0)
    assert [(body["propagationPolicy"], body["preconditions"]) for body in sent] == [(policy, {"uid": "1"})]


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
    return awaiting.wait_until_up(FakeCluster(answer), resource, live, timeout=60, cancelled=event)


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
def test_what_counts_as_up(kind: str, api_version: str, spec: Object, status: Object) -> None:
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
            "2 of 2 pods are ready, 1 up to date",
        ),
        ("DaemonSet", "apps/v1", {}, {"desiredNumberScheduled": 2, "numberAvailable": 1}, "1 of 2 pods"),
        ("Job", "batch/v1", {"completions": 3}, {"succeeded": 1}, "1 of 3 pods have completed"),
        ("Pod", "v1", {}, {"phase": "Pending"}, "phase Pending"),
        ("Service", "v1", {"type": "LoadBalancer"}, {}, "no load balancer"),
    ],
)
def test_what_is_still_waited_for(kind: str, api_version: str, spec: Object, status: Object, reason: str) -> None:
    live = live_object(kind, api_version, spec, status | {"observedGeneration": 2})
    with pytest.raises(awaiting.NotUp) as error:
        waited(live)
    assert error.value.reasons[0].startswith(f"[{kind} train/x]: cancelled while waiting: ")
    assert reason in error.value.reasons[0]


def test_a_status_from_before_the_change_does_not_count() -> None:
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
    cluster = FakeCluster(lambda *_: {"items": []})
    view = cluster.view(ApiResource("/api/v1", "pods", "Pod", True), "train")
    for _ in range(50):
        view.objects(0)
    assert len(cluster.requests) == 1
