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
    def test_the_seed_makes_the_name(self) -> None:
        one, same, other = named({}, {}), named({}, {}), named({}, {}, b"other")
        assert one["name"] == same["name"] != other["name"]
        assert one["name"].startswith("settings-")
        assert one["annotations"] == {"pulumi.com/autonamed": "true"}

    def test_a_made_up_name_is_kept(self) -> None:
        before = named({}, {})
        after = named({"metadata": before}, {"metadata": {"labels": {"a": "b"}}}, b"other")
        assert after["name"] == before["name"]
        assert after["annotations"] == {"pulumi.com/autonamed": "true"}

    def test_a_name_that_the_program_no_longer_gives_is_not_kept(self) -> None:
        assert named({"metadata": {"name": "mine"}}, {})["name"].startswith("settings-")

    def test_a_given_name_is_left_alone(self) -> None:
        assert named({}, {"metadata": {"name": "mine"}}) == {"name": "mine"}
        assert named({}, {"metadata": {"generateName": "mine-"}}) == {"generateName": "mine-"}
        assert named({}, {"metadata": {"name": UNKNOWN}}) == {"name": UNKNOWN}

    def test_the_projects_rules_for_names(self) -> None:
        assert named({}, {}, rules("proposed"))["name"] == "proposed"
        assert "turns automatic names off" in objects.name_object(URN, {}, {}, rules(naming="disable"))


@pytest.mark.parametrize(
    ("token", "api_version", "kind"),
    [
        ("kubernetes:core/v1:Secret", "v1", "Secret"),
        ("kubernetes:apps/v1:Deployment", "apps/v1", "Deployment"),
        ("kubernetes:persia.com/v1:PersiaJob", "persia.com/v1", "PersiaJob"),
    ],
)
def test_type_tokens(token: str, api_version: str, kind: str) -> None:
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
def test_changes_by_path(old: Any, new: Any, expected: dict[str, str]) -> None:
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

    def test_the_servers_own_way_of_writing_is_no_change(self) -> None:
        assert objects.refreshed_inputs(self.INPUTS, self.SEEN, self.SEEN) == self.INPUTS

    def test_what_was_changed_shows_and_nothing_else(self) -> None:
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

    def test_an_item_that_was_removed_is_missing_and_one_that_was_added_shows(self) -> None:
        live = {"spec": {"containers": [{"name": "a", "image": "x:1", "cpu": "1"}, {"name": "c", "image": "z:1"}]}}
        containers = objects.refreshed_inputs(self.INPUTS, self.SEEN, live)["spec"]["containers"]
        assert [item["name"] for item in containers] == ["a", "c"]
        assert containers[0]["cpu"] == "1000m"

    def test_a_field_that_was_removed_is_missing(self) -> None:
        inputs = {"metadata": {"labels": {"a": "1", "b": "2"}}}
        live = {"metadata": {"labels": {"a": "1"}}}
        assert objects.refreshed_inputs(inputs, inputs, live) == live

    def test_the_text_of_a_secret_is_compared_with_its_encoded_form(self) -> None:
        inputs = {"kind": "Secret", "stringData": {"a": "one", "b": "two"}}
        seen, live = {"data": {"a": "b25l", "b": "dHdv"}}, {"data": {"a": "b25l", "b": "dGhyZWU="}}
        assert objects.refreshed_inputs(inputs, seen, live)["stringData"] == {"a": "one", "b": "three"}


def test_imported_inputs_hold_nothing_that_the_server_set() -> None:
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


def test_a_key_of_a_secret_is_applied_where_it_can_be_removed_again() -> None:
    manifest = objects.manifest_of({"kind": "Secret", "data": {"a": "MQ=="}, "stringData": {"b": "2"}})
    assert manifest["data"] == {"a": "MQ==", "b": "Mg=="}
    assert "stringData" not in manifest
