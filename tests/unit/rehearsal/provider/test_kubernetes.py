"""The simulated kubernetes package without a cluster, and with answers that the tests define."""

from pathlib import Path
from typing import Any

import pytest

from persia_infra.kube.api import ApiError, Object, Refused
from persia_infra.rehearsal.provider import kubernetes
from persia_infra.rehearsal.provider.kubernetes import Kubernetes
from persia_infra.rehearsal.provider.package import UNKNOWN, ProviderError, Secret, Seed, Urn
from tests.support.fake_api import Answer, FakeApi


def urn(token: str, name: str = "thing") -> Urn:
    return Urn(f"urn:pulumi:dev::project::kubernetes:{token}::{name}")


CONFIG_MAP = urn("core/v1:ConfigMap")


@pytest.fixture
def unreachable() -> Kubernetes:
    """A provider of a preview in which the cluster does not exist yet."""
    provider = Kubernetes(Path("kubeconfig"))
    provider.configure({"kubeconfig": UNKNOWN})
    return provider


def on(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> Kubernetes:
    monkeypatch.setattr(kubernetes, "connect", lambda *_: FakeApi(answer))
    monkeypatch.setattr(kubernetes, "_PATIENCE_SECONDS", 0.0)
    provider = Kubernetes(Path("kubeconfig"))
    provider.configure({})
    return provider


def checked(provider: Kubernetes, where: Urn, news: dict[str, Any]) -> dict[str, Any]:
    inputs, failures = provider.check(where, {}, news, Seed(b"seed"))
    assert failures == []
    return inputs


class TestCheck:
    def test_kind_version_and_namespace_have_defaults(self, unreachable: Kubernetes) -> None:
        inputs = checked(unreachable, urn("apps/v1:Deployment"), {"metadata": {"name": "web"}, "spec": None})
        assert inputs == {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
        }

    def test_cluster_scoped_objects_get_no_namespace(self, unreachable: Kubernetes) -> None:
        inputs = checked(unreachable, urn("core/v1:Namespace"), {"metadata": {"name": "train"}})
        assert inputs["metadata"] == {"name": "train"}

    def test_a_kind_that_the_same_program_defines_has_its_scope(self, unreachable: Kubernetes) -> None:
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
    def test_types_of_the_official_plugin_alone_are_refused(self, unreachable: Kubernetes, token: str) -> None:
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

    def test_creating_without_a_known_cluster_explains_what_is_missing(self, unreachable: Kubernetes) -> None:
        inputs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "train"}}
        with pytest.raises(ProviderError, match=r"ConfigMap train/x: .* its kubeconfig is not known"):
            unreachable.create(CONFIG_MAP, inputs, preview=False, timeout=0)

    def test_a_field_known_to_be_immutable_is_replaced(self, unreachable: Kubernetes) -> None:
        old = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": {"a": "1"}, "replicas": 1}}
        new = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": {"a": UNKNOWN}, "replicas": 2}}
        for inputs in (old, new):
            inputs["metadata"] = {"name": "web", "namespace": "train"}
        difference = unreachable.diff(urn("apps/v1:Deployment"), "train/web", old, old, new)
        assert difference.detailed == {"spec.selector.a": "update-replace", "spec.replicas": "update"}
        assert difference.delete_before_replace

    def test_a_new_name_is_a_replacement_that_may_be_created_first(self, unreachable: Kubernetes) -> None:
        old = {"kind": "ConfigMap", "metadata": {"name": "x-1", "namespace": "train"}}
        new = {"kind": "ConfigMap", "metadata": {"name": "x-2", "namespace": "train"}}
        difference = unreachable.diff(CONFIG_MAP, "train/x-1", old, old, new)
        assert difference.detailed == {"metadata.name": "update-replace"}
        assert not difference.delete_before_replace

    def test_a_default_namespace_is_not_a_change(self, unreachable: Kubernetes) -> None:
        old = {"kind": "Trial", "metadata": {"name": "x"}}
        new = {"kind": "Trial", "metadata": {"name": "x", "namespace": "default"}}
        outputs = {"metadata": {"name": "x", "namespace": "default"}}
        assert unreachable.diff(urn("example.com/v1:Trial"), "default/x", old, outputs, new).detailed == {}

    def test_new_content_replaces_a_config_map_that_is_not_mutable(self, unreachable: Kubernetes) -> None:
        old = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}}
        new = old | {"data": {"a": "2"}}
        assert unreachable.diff(CONFIG_MAP, "x", old, old, new).detailed == {"data.a": "update-replace"}
        unreachable.configure({"enableConfigMapMutable": "true", "kubeconfig": UNKNOWN})
        assert unreachable.diff(CONFIG_MAP, "x", old, old, new).detailed == {"data.a": "update"}


def refuse(status: int, message: str, reason: str = "Invalid", *causes: tuple[str, str], kind: str = "") -> Refused:
    details = {"kind": kind, "causes": [{"field": field, "message": text} for field, text in causes]}
    return Refused(status, {"message": message, "reason": reason, "details": details})


class TestRefusals:
    POD: Any = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "train"}}  # noqa: RUF012

    def test_a_refusal_names_the_object_and_lists_each_cause(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def answer(*_: Any) -> Object:
            raise refuse(422, "Pod x is invalid", "Invalid", ("spec.a", "too big"), ("spec.b", "too small"))

        provider = on(monkeypatch, answer)
        with pytest.raises(ApiError) as error:
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
    def test_a_preview_ignores_what_the_same_up_will_create(
        self, monkeypatch: pytest.MonkeyPatch, refusal: Refused
    ) -> None:
        def answer(*_: Any) -> Object:
            raise refusal

        provider = on(monkeypatch, answer)
        _, outputs = provider.create(urn("core/v1:Pod"), self.POD, preview=True, timeout=0)
        assert outputs["metadata"] == {"name": "x", "namespace": "train"}

    def test_an_ownership_conflict_explains_how_to_take_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def answer(*_: Any) -> Object:
            raise refuse(409, "Apply failed with 1 conflict: kubectl", "Conflict", (".spec.x", "kubectl"))

        provider = on(monkeypatch, answer)
        with pytest.raises(ApiError, match=r'pulumi.com/patchForce: "true"'):
            provider.create(urn("core/v1:Pod"), self.POD, preview=False, timeout=0)

    @pytest.mark.parametrize(
        ("field", "message", "changed", "replaced"),
        [
            ("spec", "Forbidden: pod updates may not change fields other than `image`", "x", "spec.x"),
            ("spec.x", "Invalid value: 1: field is immutable", "x", "spec.x"),
        ],
    )
    def test_a_refused_change_of_an_immutable_field_is_a_replacement(
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

    def test_a_change_that_is_never_valid_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def answer(method: str, *_: Any) -> Object:
            if method == "GET":
                return self.POD
            raise refuse(422, "Pod x is invalid: spec.x: too big", "Invalid", ("spec.x", "too big"))

        provider = on(monkeypatch, answer)
        with pytest.raises(ApiError, match=r"Pod train/x: Pod x is invalid: spec\.x: too big"):
            provider.diff(urn("core/v1:Pod"), "train/x", self.POD, self.POD, self.POD | {"spec": {"x": 1}})


def test_a_field_that_is_always_replaced_does_not_depend_on_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    service = TestRefusals.POD | {"kind": "Service", "spec": {"clusterIP": "None"}}

    def answer(method: str, *_: Any) -> Object:
        if method == "GET":
            return service
        raise refuse(422, "Service x is invalid", "Invalid", ("spec.ipFamilies[1]", "not configured on this cluster"))

    new = service | {"spec": {"clusterIP": "10.0.0.7"}}
    difference = on(monkeypatch, answer).diff(urn("core/v1:Service"), "train/x", service, service, new)
    assert difference.replaces == ["spec.clusterIP"]


def test_a_change_without_effect_on_the_object_is_not_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    live = TestRefusals.POD | {"spec": {"cpu": "1"}}
    provider = on(monkeypatch, lambda *_: live)
    old, new = TestRefusals.POD | {"spec": {"cpu": "1"}}, TestRefusals.POD | {"spec": {"cpu": "1000m"}}
    assert provider.diff(urn("core/v1:Pod"), "train/x", old, old, new).detailed == {}


def test_an_object_that_is_being_deleted_is_not_mistaken_for_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = TestRefusals.POD
    going = pod | {"metadata": pod["metadata"] | {"deletionTimestamp": "now"}}
    provider = on(monkeypatch, lambda *_: going)
    with pytest.raises(ApiError, match="Pod train/x: an object of the same name is still being deleted"):
        provider.create(urn("core/v1:Pod"), pod, preview=False, timeout=0)


def test_an_object_is_created_in_the_namespace_of_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, Any]] = []

    def answer(_: str, path: str, __: dict[str, str], body: Any) -> Object:
        sent.append((path, body))
        return body | {"metadata": body["metadata"] | {"uid": "1"}}

    provider = on(monkeypatch, answer)
    provider.configure({"namespace": "train"})
    inputs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    object_id, _ = provider.create(CONFIG_MAP, inputs, preview=False, timeout=0)
    assert object_id == "train/x"
    assert sent[0][0] == "/api/v1/namespaces/train/configmaps/x"


@pytest.mark.parametrize(
    ("annotations", "requested", "seconds"),
    [({}, 0, 600), ({"pulumi.com/timeoutSeconds": "7"}, 0, 7), ({"pulumi.com/timeoutSeconds": "7"}, 90, 90)],
)
def test_the_program_chooses_how_long_an_update_waits(
    monkeypatch: pytest.MonkeyPatch, annotations: dict[str, str], requested: float, seconds: float
) -> None:
    timeouts: list[float] = []

    def wait(_: Any, __: Any, applied: Object, *, timeout: float, **___: Any) -> Object:
        timeouts.append(timeout)
        return applied

    provider = on(monkeypatch, lambda _, __, ___, body: body)
    monkeypatch.setattr(kubernetes.awaiting, "wait_until_up", wait)
    metadata = {"name": "x", "namespace": "train", "annotations": annotations}
    inputs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    provider.create(CONFIG_MAP, inputs, preview=False, timeout=requested)
    assert timeouts == [seconds]


def test_only_the_secrets_of_kubernetes_itself_are_hidden(unreachable: Kubernetes) -> None:
    inputs = checked(unreachable, urn("example.com/v1:Secret"), {"data": {"a": "b"}})
    assert inputs["data"] == {"a": "b"}


def test_a_change_of_string_data_is_found_in_the_data_of_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = {"name": "x", "namespace": "train"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}

    def answer(method: str, path: str, *_: Any) -> Object:
        if path == "/api/v1/namespaces/train/secrets/x":
            return secret | {"data": {"a": "b2xk" if method == "GET" else "bmV3"}}
        return {}

    provider = on(monkeypatch, answer)
    old, new = secret | {"stringData": {"a": "old"}}, secret | {"stringData": {"a": "new"}, "immutable": None}
    detailed = provider.diff(urn("core/v1:Secret"), "train/x", old, old, new).detailed
    assert detailed == {"stringData.a": "update-replace"}


@pytest.mark.parametrize(
    ("annotations", "policy"),
    [({}, "Foreground"), ({"pulumi.com/deletionPropagationPolicy": "background"}, "Background")],
)
def test_a_deletion_also_deletes_dependent_objects(
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
