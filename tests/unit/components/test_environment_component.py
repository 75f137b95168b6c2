"""The whole environment: what every component has to keep to, and how its parts hang together."""

import json
from collections.abc import Callable
from typing import Any

import persia_components
import pulumi
import pytest
from persia_components import Environment

from persia_infra.jobs import JOB_KINDS
from persia_infra.operators import OPERATORS
from persia_infra.stack import parse_environment


@pytest.fixture
def recording(description: dict[str, Any], record: Callable[..., Any]) -> Any:
    spec = parse_environment(description)
    return record(lambda: Environment("dev", spec))


class TestContract:
    """Rules that hold for every component, so a new one cannot forget them."""

    def test_every_component_is_in_the_package(
        self,
        description: dict[str, Any],
        run_jobs: dict[str, Any],
        operators: dict[str, Any],
        record: Callable[..., Any],
    ) -> None:
        description["jobs"] |= run_jobs
        description["operators"] = operators
        description["pools"]["installed"] = {
            "machineType": "a2-highgpu-1g",
            "autoscaling": {"min": 0, "max": 1},
            "image": "UBUNTU_CONTAINERD",
            "driver": {"install": "INSTALLER"},
        }
        description["jobs"]["ads"]["nnWorker"]["pool"] = "gpu"
        spec = parse_environment(description)
        recording = record(lambda: Environment("dev", spec))
        made = {r.type.rpartition(":")[2] for r in recording.all if not r.custom}
        of_kinds = {kind.COMPONENT for kind in JOB_KINDS} | {operator.COMPONENT for operator in OPERATORS}
        exported = set(persia_components.__all__)

        assert {"Job", "Operator"} <= exported
        assert made == exported - {"Job", "Operator"} | of_kinds, "the environment uses all of them"
        assert {r.type.rpartition(":")[0] for r in recording.all if not r.custom} == {"persia-infra:index"}

    def test_names_begin_with_the_parents(self, recording: Any) -> None:
        for registered in recording.all:
            if registered.parent and not registered.parent.startswith("p-s"):
                assert registered.name.startswith(registered.parent), registered

    def test_only_the_environment_hangs_on_the_stack(self, recording: Any) -> None:
        components = {r.name for r in recording.all if not r.custom}

        roots = [r.name for r in recording.all if r.parent not in components]

        assert roots == ["dev"]

    def test_no_output_is_used_as_text(self, recording: Any) -> None:
        everything = json.dumps([[r.type, r.name, r.inputs] for r in recording.all], default=str)

        assert "Output" not in everything
        assert "__str__" not in everything

    def test_objects_and_their_pods_carry_the_standard_labels(self, recording: Any) -> None:
        wanted = {f"app.kubernetes.io/{key}" for key in ("name", "instance", "component", "part-of", "managed-by")}
        objects = [r.inputs for r in recording.all if r.type.startswith("kubernetes:")]
        templates = [o["spec"]["template"] for o in objects if "template" in o.get("spec", {})]

        assert len(templates) == 6
        for one in [*objects, *templates]:
            assert wanted <= set(one["metadata"]["labels"])

    def test_objects_that_others_rely_on_are_named_exactly(self, recording: Any) -> None:
        assert all(r.inputs["metadata"]["name"] for r in recording.all if r.type.startswith("kubernetes:"))

    def test_kubernetes_objects_use_the_clusters_provider(self, recording: Any) -> None:
        used = {r.provider for r in recording.all if r.type.startswith("kubernetes:")}

        assert used == {"dev-cluster-kubernetes"}

    def test_every_component_registers_its_outputs(self, recording: Any) -> None:
        assert {r.name for r in recording.all if not r.custom} <= set(recording.outputs)

    def test_selectors_match_their_pods_and_nothing_else(self, recording: Any) -> None:
        objects = [r.inputs for r in recording.all if r.type.startswith("kubernetes:")]
        pods = [o["spec"]["template"]["metadata"]["labels"] for o in objects if "template" in o.get("spec", {})]

        def chosen(selector: dict[str, str]) -> int:
            return sum(selector.items() <= labels.items() for labels in pods)

        for one in objects:
            if one["kind"] == "Service":
                assert chosen(one["spec"]["selector"]) == 1, one["metadata"]["name"]
            if one["kind"] in ("StatefulSet", "Deployment", "PodDisruptionBudget"):
                assert chosen(one["spec"]["selector"]["matchLabels"]) == 1, one["metadata"]["name"]

    def test_the_spec_never_changes_selectors(self, recording: Any) -> None:
        for registered in recording.all:
            if registered.type.startswith("kubernetes:apps/"):
                labels = registered.inputs["spec"]["selector"]["matchLabels"]
                assert set(labels) == {f"app.kubernetes.io/{key}" for key in ("name", "instance", "component")}


def test_outputs_for_the_stack(recording: Any) -> None:
    outputs = recording.outputs["dev"]

    assert outputs["clusterName"] == "dev-cluster-1a2b3c4"
    assert outputs["poolNames"] == {"cpu": "dev-cpu-1a2b3c4", "gpu": "dev-gpu-1a2b3c4"}
    assert outputs["natsUrls"] == {"ads": "nats://ads-nats:4222"}
    assert json.loads(outputs["kubeconfig"])["clusters"][0]["cluster"]["server"] == "https://198.51.100.7"


def test_jobs_wait_for_their_pools_and_go_before_them(recording: Any) -> None:
    assert {"dev-cpu", "dev-gpu"} <= recording.one("PersiaJob", "dev-ads").depends_on


def test_pools_need_the_cluster_and_the_cluster_its_way_out(recording: Any) -> None:
    assert "dev-cluster" in recording.one("index:NodePool", "dev-gpu").depends_on
    assert "dev-network-nat" in recording.one("index:Cluster", "dev-cluster").depends_on


def test_an_environment_without_jobs(description: dict[str, Any], record: Callable[..., Any]) -> None:
    del description["jobs"]
    spec = parse_environment(description)

    recording = record(lambda: Environment("dev", spec))

    assert recording.outputs["dev"]["natsUrls"] == {}
    assert recording.names("Namespace") == {"dev-training"}
    assert not recording.names("StatefulSet")


def test_a_callers_protection_reaches_every_child(description: dict[str, Any], record: Callable[..., Any]) -> None:
    spec = parse_environment(description)

    recording = record(lambda: Environment("dev", spec, opts=pulumi.ResourceOptions(protect=True)))

    assert all(r.protect for r in recording.all)
