"""Names, differences and refreshed inputs of Kubernetes objects."""

from typing import Any

import pytest

from persia_infra.rehearsal.provider import objects
from persia_infra.rehearsal.provider.package import UNKNOWN, Seed, Urn

URN = Urn("urn:pulumi:dev::project::kubernetes:core/v1:ConfigMap::settings")


def named(olds: dict[str, Any], news: dict[str, Any], seed: Seed | bytes = b"seed") -> dict[str, Any]:
    assert objects.name_object(URN, olds, news, seed) == ""
    return news["metadata"]


def rules(proposed: str = "", naming: Any = "propose") -> Seed:
    seed = Seed(b"seed")
    seed.proposed_name, seed.naming = proposed, naming
    return seed


class TestNames:
    def test_an_automatic_name_depends_on_the_seed(self) -> None:
        one, same, other = named({}, {}), named({}, {}), named({}, {}, b"other")
        assert one["name"] == same["name"] != other["name"]
        assert one["name"].startswith("settings-")
        assert one["annotations"] == {"pulumi.com/autonamed": "true"}

    def test_an_automatic_name_is_kept(self) -> None:
        before = named({}, {})
        after = named({"metadata": before}, {"metadata": {"labels": {"a": "b"}}}, b"other")
        assert after["name"] == before["name"]
        assert after["annotations"] == {"pulumi.com/autonamed": "true"}

    def test_a_name_that_the_program_no_longer_sets_is_not_kept(self) -> None:
        assert named({"metadata": {"name": "mine"}}, {})["name"].startswith("settings-")

    def test_a_name_that_the_program_sets_is_not_changed(self) -> None:
        assert named({}, {"metadata": {"name": "mine"}}) == {"name": "mine"}
        assert named({}, {"metadata": {"generateName": "mine-"}}) == {"generateName": "mine-"}
        assert named({}, {"metadata": {"name": UNKNOWN}}) == {"name": UNKNOWN}

    def test_the_project_configures_automatic_names(self) -> None:
        assert named({}, {}, rules("proposed"))["name"] == "proposed"
        assert "disables automatic names" in objects.name_object(URN, {}, {}, rules(naming="disable"))

    def test_an_automatic_name_is_never_too_long_for_kubernetes(self) -> None:
        long = Urn(f"urn:pulumi:dev::project::kubernetes:core/v1:ConfigMap::{'a' * 300}")
        news: dict[str, Any] = {}
        objects.name_object(long, {}, news, b"seed")
        assert len(news["metadata"]["name"]) == 253


@pytest.mark.parametrize(
    ("token", "api_version", "kind"),
    [
        ("kubernetes:core/v1:Secret", "v1", "Secret"),
        ("kubernetes:apps/v1:Deployment", "apps/v1", "Deployment"),
        ("kubernetes:persia.com/v1:PersiaJob", "persia.com/v1", "PersiaJob"),
    ],
)
def test_a_type_token_is_split_into_api_version_and_kind(token: str, api_version: str, kind: str) -> None:
    assert objects.api_version_and_kind(token) == (api_version, kind)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, {"a.b[1].c": "update"}),
        ({"a": 1}, {"b": 2}, {"a": "delete", "b": "add"}),
        ({"a": [1]}, {"a": [1, 2]}, {"a[1]": "add"}),
        ({"a": [1, 2]}, {"a": [1]}, {"a[1]": "delete"}),
        ({"a": "x"}, {"a": UNKNOWN}, {"a": "update"}),
        ({"a": {"x.y/z": "1"}}, {"a": {"x.y/z": "2"}}, {'a["x.y/z"]': "update"}),
        ({"a": 1}, {"a": True}, {"a": "update"}),
        ({"a": 1}, {"a": 1.0}, {}),
    ],
)
def test_changes_are_listed_by_path(old: Any, new: Any, expected: dict[str, str]) -> None:
    assert {objects.path_text(path): kind for path, kind in objects.changes(old, new).items()} == expected


class TestRefresh:
    INPUTS: Any = {  # noqa: RUF012
        "spec": {"containers": [{"name": "a", "image": "x:1", "cpu": "1000m"}, {"name": "b", "image": "y:1"}]}
    }
    SEEN: Any = {  # noqa: RUF012
        "spec": {
            "containers": [{"name": "a", "image": "x:1", "cpu": "1", "pull": "Always"}, {"name": "b", "image": "y:1"}],
            "policy": "Always",
        }
    }

    def test_a_value_that_the_server_normalizes_is_not_a_change(self) -> None:
        assert objects.refreshed_inputs(self.INPUTS, self.SEEN, self.SEEN) == self.INPUTS

    def test_only_values_changed_outside_of_pulumi_are_refreshed(self) -> None:
        live = {
            "spec": {
                "containers": [
                    {"name": "a", "image": "x:2", "cpu": "1", "pull": "Never"},
                    {"name": "b", "image": "y:1"},
                ],
                "policy": "Never",
            }
        }
        refreshed = objects.refreshed_inputs(self.INPUTS, self.SEEN, live)
        assert {objects.path_text(path) for path in objects.changes(self.INPUTS, refreshed)} == {
            "spec.containers[0].image"
        }

    def test_removed_and_added_list_items_are_refreshed(self) -> None:
        live = {"spec": {"containers": [{"name": "a", "image": "x:1", "cpu": "1"}, {"name": "c", "image": "z:1"}]}}
        containers = objects.refreshed_inputs(self.INPUTS, self.SEEN, live)["spec"]["containers"]
        assert [item["name"] for item in containers] == ["a", "c"]
        assert containers[0]["cpu"] == "1000m"

    def test_a_removed_field_is_refreshed(self) -> None:
        inputs = {"metadata": {"labels": {"a": "1", "b": "2"}}}
        live = {"metadata": {"labels": {"a": "1"}}}
        assert objects.refreshed_inputs(inputs, inputs, live) == live

    def test_an_input_that_the_server_never_returns_is_kept(self) -> None:
        inputs = {"spec": {"replicas": 1, "writeOnly": "x"}}
        seen, live = {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}
        assert objects.refreshed_inputs(inputs, seen, live) == {"spec": {"replicas": 2, "writeOnly": "x"}}

    def test_the_text_of_a_secret_is_compared_with_its_encoded_form(self) -> None:
        inputs = {"kind": "Secret", "stringData": {"a": "one", "b": "two"}}
        seen, live = {"data": {"a": "b25l", "b": "dHdv"}}, {"data": {"a": "b25l", "b": "dGhyZWU="}}
        assert objects.refreshed_inputs(inputs, seen, live)["stringData"] == {"a": "one", "b": "three"}


def test_imported_inputs_contain_nothing_that_the_server_set() -> None:
    live = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "web",
            "namespace": "train",
            "uid": "1",
            "resourceVersion": "2",
            "creationTimestamp": "now",
            "managedFields": [],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80}]},
        "status": {},
    }
    assert objects.imported_inputs(live) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "train"},
        "spec": {"ports": [{"port": 80}]},
    }


def test_string_data_of_a_secret_is_applied_as_data() -> None:
    manifest = objects.manifest_of({"kind": "Secret", "data": {"a": "MQ=="}, "stringData": {"b": "2"}})
    assert manifest["data"] == {"a": "MQ==", "b": "Mg=="}
    assert "stringData" not in manifest
