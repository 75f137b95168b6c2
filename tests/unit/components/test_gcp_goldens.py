"""The Google Cloud resources of the stacks as recorded, and held against the GKE API's own messages."""

import os
from functools import cache

import pytest
from persia_components.render import Declared, declared_for

from persia_infra.rehearsal.provider.gke_api import cluster_message, node_pool_message
from persia_infra.rehearsal.provider.gke_rules import refused_in_cluster, refused_in_node_pool
from persia_infra.spec.yaml_files import write_documents
from persia_infra.stack import load_stack
from tests.support.project import PROJECT

STACKS = ["dev", "staging", "prod"]


@cache
def resources(stack: str) -> list[Declared]:
    spec = load_stack(PROJECT / "stacks" / f"Pulumi.{stack}.yaml")
    return [one for one in declared_for(stack, spec) if one.type.startswith("gcp:")]


@pytest.mark.parametrize("stack", ["staging", "prod"])
def test_as_recorded(stack: str) -> None:
    """Set PERSIA_INFRA_REGENERATE=1 to record it anew, and read the difference; dev is recorded elsewhere, whole."""
    golden = PROJECT / "tests" / "golden" / f"{stack}.gcp.yaml"
    text = write_documents([one.document for one in resources(stack)])
    if os.environ.get("PERSIA_INFRA_REGENERATE") == "1":
        golden.write_text(text)

    assert text == golden.read_text()


@pytest.mark.parametrize("stack", STACKS)
def test_the_api_would_take_it(stack: str) -> None:
    made = {"cluster": 0, "pools": 0}
    for one in resources(stack):
        if one.type == "gcp:container/cluster:Cluster":
            assert list(refused_in_cluster(cluster_message(one.inputs))) == []
            made["cluster"] += 1
        elif one.type == "gcp:container/nodePool:NodePool":
            assert list(refused_in_node_pool(node_pool_message(one.inputs))) == []
            made["pools"] += 1

    assert made["cluster"] == 1
    assert made["pools"] >= 2
