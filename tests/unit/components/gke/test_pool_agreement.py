"""The simulated GKE accepts every pool that the spec accepts, and creates nodes of the promised size."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from persia_components import NodePool
from pydantic import ValidationError

from persia_infra.gke.drivers import INSTALLER_CPU
from persia_infra.gke.pools import NodePoolSpec
from persia_infra.rehearsal.provider.gke_api import node_pool_message
from persia_infra.rehearsal.provider.gke_rules import refused_in_node_pool
from persia_infra.rehearsal.provider.nodes import PoolPlan, pool_plan
from persia_infra.spec.quantity import parse_quantity

ZONE = "us-central1-a"
MACHINES = ["e2-standard-4", "n1-standard-8", "n2-standard-8", "c4-standard-8", "m2-ultramem-416", "g2-standard-8"]
GPU_MACHINES = ["a2-highgpu-8g", "a2-ultragpu-1g", "a3-megagpu-8g", "a4-highgpu-8g"]


def sometimes(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


OPTIONS = st.fixed_dictionaries(
    {
        "machine_type": st.sampled_from(MACHINES + GPU_MACHINES),
        "count": sometimes(st.integers(0, 3)),
        "autoscaling": sometimes(st.fixed_dictionaries({"min": st.integers(0, 2), "max": st.integers(1, 4)})),
        "accelerators": sometimes(st.just({"type": "nvidia-tesla-t4", "count": 1})),
        "spot": st.booleans(),
        "reservation": sometimes(st.just("mine")),
        "flex_start": st.booleans(),
        "queued_provisioning": st.booleans(),
        "compact_placement": st.booleans(),
        "image": st.sampled_from(["COS_CONTAINERD", "UBUNTU_CONTAINERD"]),
        "driver": sometimes(
            st.fixed_dictionaries({"install": st.sampled_from(["DEFAULT", "LATEST", "INSTALLER", "NONE"])})
        ),
        "gpu_sharing": sometimes(
            st.fixed_dictionaries({"strategy": st.sampled_from(["TIME_SHARING", "MPS"]), "clients": st.integers(2, 48)})
        ),
        "gpu_partition": sometimes(st.sampled_from(["1g.5gb", "1g.10gb"])),
        "network_profile": sometimes(st.just("auto")),
        "gpu_direct": sometimes(st.sampled_from(["TCPX", "TCPXO", "RDMA"])),
        "max_pods": st.integers(8, 256),
        "disk_size_gb": st.integers(20, 500),
        "disk_type": sometimes(st.sampled_from(["pd-ssd", "hyperdisk-balanced"])),
        "local_ssds": sometimes(
            st.fixed_dictionaries(
                {"count": st.sampled_from([1, 2, 16]), "use": st.sampled_from(["EPHEMERAL", "BLOCK"])}
            )
        ),
        "upgrades": sometimes(
            st.sampled_from([{"strategy": "BLUE_GREEN"}, {"max_surge": 2}, {"max_surge": 1, "max_unavailable": 3}])
        ),
        "taints": st.lists(
            st.fixed_dictionaries({"key": st.sampled_from(["a", "b"]), "effect": st.sampled_from(["NoSchedule"])}),
            max_size=2,
        ),
    }
)
"""Only a few options are drawn at a time, so that many of the pools are valid."""


@st.composite
def described_pools(draw: st.DrawFn) -> dict[str, Any]:
    everything = draw(OPTIONS)
    kept = draw(st.sets(st.sampled_from(sorted(everything)), max_size=5)) | {"machine_type"}
    fields: dict[str, Any] = {key: everything[key] for key in kept if everything[key] is not None}
    if not fields.keys() & {"count", "autoscaling"}:
        fields["autoscaling"] = {"min": 0, "max": 3}
    return fields


def planned(record: Callable[..., Any], spec: NodePoolSpec) -> PoolPlan:
    """The pool as the simulated GKE plans it, after it has accepted what the component sends."""
    recording = record(
        lambda: NodePool(
            "p",
            spec,
            pool="p",
            project="p",
            location="us-central1",
            zones=[ZONE],
            cluster_name="c",
            service_account="nodes@example.com",
        )
    )
    inputs = recording.one("container/nodePool:NodePool", "p").asked
    assert list(refused_in_node_pool(node_pool_message(inputs))) == []
    return pool_plan(
        {**inputs, "name": "p"}, cluster="c", cluster_location="us-central1", cluster_zones=[ZONE], project="p"
    )


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(fields=described_pools())
@example(fields={"machine_type": "a3-highgpu-8g", "count": 1, "gpu_direct": "TCPX", "network_profile": "auto"})
@example(fields={"machine_type": "a3-megagpu-8g", "count": 1, "gpu_direct": "TCPXO", "network_profile": "auto"})
@example(fields={"machine_type": "a4-highgpu-8g", "count": 1, "gpu_direct": "RDMA", "network_profile": "auto"})
@example(fields={"machine_type": "a4x-highgpu-4g", "count": 1})
@example(fields={"machine_type": "a2-highgpu-8g", "count": 1, "driver": {"install": "INSTALLER"}})
@example(fields={"machine_type": "a2-highgpu-8g", "autoscaling": {"max": 3}, "flex_start": True})
@example(fields={"machine_type": "a2-highgpu-8g", "autoscaling": {"max": 3}, "queued_provisioning": True})
@example(fields={"machine_type": "n2-standard-8", "count": 1, "upgrades": {"max_surge": 15, "max_unavailable": 5}})
def test_every_accepted_pool_gets_the_nodes_that_its_spec_promises(
    record: Callable[..., Any], fields: dict[str, Any]
) -> None:
    try:
        spec = NodePoolSpec.model_validate(fields)
    except ValidationError:
        assume(False)
        raise
    template = planned(record, spec).template

    offered = {name: parse_quantity(text) for name, text in template.allocatable.items()}
    if spec.has_gpus and spec.driver.install == "INSTALLER":
        offered["cpu"] -= parse_quantity(INSTALLER_CPU)
    assert offered == spec.allocatable
    tolerated = {(taint.key, taint.effect) for taint in spec.placement("p").taints}
    assert {(taint["key"], taint["effect"]) for taint in template.taints} <= tolerated
    assert spec.placement("p").node_selector.items() <= template.labels.items()


@pytest.mark.parametrize(
    ("fields", "allocatable"),
    [
        (
            {"machine_type": "n2-standard-8", "max_pods": 32},
            {"cpu": "7910m", "memory": "29054173Ki", "ephemeral-storage": "45391282Ki", "pods": "32"},
        ),
        (
            {"machine_type": "n2-standard-8", "image": "UBUNTU_CONTAINERD", "local_ssds": {"count": 2}},
            {"cpu": "7910m", "memory": "29050077Ki", "ephemeral-storage": "615420376Ki", "pods": "110"},
        ),
        (
            {"machine_type": "a2-highgpu-8g", "disk_size_gb": 500, "gpu_partition": "1g.5gb"},
            {
                "cpu": "95690m",
                "memory": "680103280Ki",
                "ephemeral-storage": "354454863Ki",
                "pods": "110",
                "nvidia.com/gpu": "56",
            },
        ),
        (
            {"machine_type": "a2-highgpu-8g", "gpu_sharing": {"strategy": "TIME_SHARING", "clients": 4}},
            {
                "cpu": "95690m",
                "memory": "680103280Ki",
                "ephemeral-storage": "45391282Ki",
                "pods": "110",
                "nvidia.com/gpu": "32",
            },
        ),
    ],
)
def test_nodes_offer_what_the_published_formula_says(
    record: Callable[..., Any], fields: dict[str, Any], allocatable: dict[str, str]
) -> None:
    spec = NodePoolSpec.model_validate({**fields, "count": 1})

    assert planned(record, spec).template.allocatable == allocatable
    assert spec.allocatable == {name: parse_quantity(text) for name, text in allocatable.items()}
