"""The Google Cloud resources of the stacks as recorded, and held against the GKE API's own messages."""

from functools import cache

import pytest
from persia_components.render import Declared, declared_for

from persia_infra.rehearsal.provider.gke_api import cluster_message, node_pool_message
from persia_infra.rehearsal.provider.gke_rules import refused_in_cluster, refused_in_node_pool
from persia_infra.spec.yaml_files import write_documents
from persia_infra.stack import load_stack
from tests.support.golden import assert_recorded
from tests.support.project import PROJECT

STACKS = ["dev", "staging", "prod"]


@cache
def resources(stack: str) -> list[Declared]:
    spec = load_stack(PROJECT / "stacks" / f"Pulumi.{stack}.yaml")
    return [one for one in declared_for(stack, spec) if one.type.startswith("gcp:")]


@pytest.mark.parametrize("stack", ["staging", "prod"])
def test_google_cloud_resources_of_a_stack_are_as_recorded(stack: str) -> None:
    """The whole of dev is recorded elsewhere."""
    text = write_documents([one.document for one in resources(stack)])

    assert_recorded(PROJECT / "tests" / "golden" / f"{stack}.gcp.yaml", text)


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
