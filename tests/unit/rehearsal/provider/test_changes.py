"""Which changes of a Kubernetes object are updates and which are replacements."""

from typing import Any

import pytest

from persia_infra.kube.api import Refused
from persia_infra.rehearsal.provider import objects
from persia_infra.rehearsal.provider.immutability import always_replaced, is_immutable, refused_paths
from persia_infra.rehearsal.provider.kubernetes_changes import difference

IMMUTABLE = "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden"


def refusal(*causes: tuple[str, str], status: int = 422) -> Refused:
    listed = [{"field": field, "message": message} for field, message in causes]
    return Refused(status, {"message": "it is invalid", "reason": "Invalid", "details": {"causes": listed}})


def changed(old: dict[str, Any], new: dict[str, Any], object_id: str = "train/x") -> dict[str, str]:
    return dict(difference(None, object_id, old, new, content_may_change=False).detailed)


def described(**more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Trial",
        "metadata": {"name": "x", "namespace": "train"},
        **more,
    }


class TestIdentity:
    def test_another_api_group_is_another_object(self) -> None:
        new = described(apiVersion="example.org/v1")
        assert changed(described(), new) == {"apiVersion": "update-replace"}

    def test_another_version_of_the_same_group_is_an_update(self) -> None:
        assert changed(described(), described(apiVersion="example.com/v2")) == {"apiVersion": "update"}

    def test_another_namespace_is_another_object(self) -> None:
        moved = described(metadata={"name": "x", "namespace": "serve"})
        assert changed(described(), moved) == {"metadata.namespace": "update-replace"}

    def test_another_kind_is_another_object(self) -> None:
        assert changed(described(), described(kind="Sweep")) == {"kind": "update-replace"}


class TestRefusals:
    def test_a_refusal_with_another_cause_is_not_about_immutable_fields_alone(self) -> None:
        immutable, other = ("spec.a", "field is immutable"), ("spec.b", "must be at least 1")
        assert is_immutable(refusal(immutable))
        assert not is_immutable(refusal(immutable, other))

    def test_only_refusals_of_the_content_can_be_about_immutable_fields(self) -> None:
        assert not is_immutable(refusal(("spec.a", "field is immutable"), status=409))

    def test_a_stateful_set_is_replaced_for_the_fields_that_cannot_change(self) -> None:
        paths: list[objects.Path] = [("spec", "replicas"), ("spec", "serviceName"), ("metadata", "labels")]
        assert refused_paths("StatefulSet", refusal(("spec", IMMUTABLE)), paths) == [("spec", "serviceName")]

    def test_a_stateful_set_is_replaced_even_if_only_changeable_fields_differ(self) -> None:
        paths: list[objects.Path] = [("spec", "template", "spec"), ("metadata", "labels")]
        assert refused_paths("StatefulSet", refusal(("spec", IMMUTABLE)), paths) == [("spec", "template", "spec")]

    def test_a_refusal_without_a_field_is_about_all_changes(self) -> None:
        paths: list[objects.Path] = [("spec", "a"), ("spec", "b")]
        assert refused_paths("Pod", refusal(("", "field is immutable")), paths) == paths


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        ("ConfigMap", ("binaryData", "a"), True),
        ("Secret", ("stringData", "a"), True),
        ("Secret", ("type",), True),
        ("ConfigMap", ("metadata", "labels"), False),
    ],
)
def test_new_content_replaces_config_maps_and_secrets(kind: str, path: objects.Path, expected: bool) -> None:
    assert (always_replaced("v1", kind, [path], content_may_change=False) == [path]) is expected
    assert always_replaced("v1", kind, [path], content_may_change=True) == []


def test_a_custom_kind_named_like_a_built_in_one_is_not_replaced_for_its_content() -> None:
    assert always_replaced("example.com/v1", "Secret", [("data", "a")], content_may_change=False) == []
