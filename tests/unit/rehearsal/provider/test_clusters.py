"""Simulated clusters and node pools: the address of the control plane, and the life of nodes."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from persia_infra.rehearsal.provider.cloud import Cloud
from persia_infra.rehearsal.provider.gcp import Gcp
from persia_infra.rehearsal.provider.node_pools import LivePool
from persia_infra.rehearsal.provider.nodes import pool_plan
from persia_infra.rehearsal.provider.package import InitializationFailed, Properties, ProviderError
from tests.support.fake_cloud import (
    CLUSTER,
    CLUSTER_ID,
    NODE_POOL,
    POOL_ID,
    PRIVATE_CLUSTER,
    FakeCluster,
    create,
    make_pool,
    update,
    urn,
)


def test_a_cluster_is_the_rehearsals_control_plane(gcp: Gcp) -> None:
    object_id, cluster = create(gcp, CLUSTER, {**PRIVATE_CLUSTER, "privateClusterConfig": {"enablePrivateNodes": True}})
    assert object_id == CLUSTER_ID
    assert cluster["endpoint"] == "127.0.0.1:6443"
    assert base64.b64decode(cluster["masterAuth"]["clusterCaCertificate"]) == b"CA"
    assert cluster["masterVersion"] == "1.36.3-gke.1000"
    assert cluster["selfLink"] == f"https://container.googleapis.com/v1/{CLUSTER_ID}"
    assert cluster["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"] == "127.0.0.1:6443"
    assert cluster["privateClusterConfig"]["enablePrivateNodes"] is True
    assert cluster["nodeLocations"] == ["us-central1-a", "us-central1-b", "us-central1-c"]


def test_a_certificate_in_a_file_is_read(cluster: FakeCluster, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"CA in a file")
    kubeconfig = tmp_path / "kubeconfig"
    entry = {"server": "https://127.0.0.1:6443", "certificate-authority": "ca.crt"}
    kubeconfig.write_text(yaml.safe_dump({"clusters": [{"name": "local", "cluster": entry}]}))
    address = Cloud(kubeconfig, cluster).control_plane()
    assert base64.b64decode(address.ca_certificate) == b"CA in a file"


def test_a_second_cluster_is_refused(gcp: Gcp) -> None:
    create(gcp, CLUSTER, PRIVATE_CLUSTER)
    with pytest.raises(ProviderError, match=rf"clusters/other: a rehearsal has only one control plane.*{CLUSTER_ID}"):
        create(gcp, CLUSTER, {**PRIVATE_CLUSTER, "name": "other"})


def test_a_cluster_without_a_node_count_is_refused_as_gke_does(gcp: Gcp) -> None:
    with pytest.raises(ProviderError, match=r"initial_node_count must be greater than zero"):
        create(gcp, CLUSTER, {"name": "train", "location": "us-central1"})
    create(gcp, CLUSTER, PRIVATE_CLUSTER)


def test_autopilot_is_refused_clearly(gcp: Gcp) -> None:
    with pytest.raises(ProviderError, match="Autopilot is not simulated"):
        create(gcp, CLUSTER, {"name": "train", "location": "us-central1", "enableAutopilot": True})


def test_a_default_pool_that_is_not_removed_has_nodes(gcp: Gcp, cluster: FakeCluster) -> None:
    object_id, outputs = create(
        gcp, CLUSTER, {"name": "train", "location": "us-central1-a", "initialNodeCount": 2, "deletionProtection": False}
    )
    assert len(cluster.nodes("default-pool")) == 2
    gcp.delete(urn(CLUSTER), object_id, {}, outputs, timeout=5)
    assert cluster.stored == {}


@pytest.mark.parametrize("protection", [{}, {"deletionProtection": True}])
def test_a_protected_cluster_stays(gcp: Gcp, protection: Properties) -> None:
    object_id, outputs = create(gcp, CLUSTER, {**PRIVATE_CLUSTER, **protection})
    with pytest.raises(ProviderError, match="set deletion_protection to false, run `pulumi up`"):
        gcp.delete(urn(CLUSTER), object_id, {}, outputs, timeout=1)
    assert gcp.read(urn(CLUSTER), object_id, {}, {}) is not None


def test_the_nodes_of_a_deleted_cluster_are_deleted(gcp: Gcp, cluster: FakeCluster) -> None:
    create(gcp, CLUSTER, {**PRIVATE_CLUSTER, "deletionProtection": False})
    pool, _ = make_pool(gcp, nodeCount=1)
    gcp.delete(urn(CLUSTER), CLUSTER_ID, {}, {"deletionProtection": False}, timeout=5)
    assert cluster.stored == {}
    assert gcp.read(urn(NODE_POOL), pool, {}, {}) is None


# Node pools


def test_a_pool_creates_its_nodes_in_every_zone(gcp: Gcp, cluster: FakeCluster) -> None:
    object_id, outputs = make_pool(gcp, nodeCount=2, nodeConfig={"machineType": "a2-highgpu-1g"})
    assert object_id == POOL_ID
    zones = sorted(node["metadata"]["labels"]["topology.kubernetes.io/zone"][-1] for node in cluster.nodes("workers"))
    assert zones == ["a", "a", "b", "b", "c", "c"]
    assert len(outputs["instanceGroupUrls"]) == 3
    assert {node["status"]["allocatable"]["nvidia.com/gpu"] for node in cluster.nodes()} == {"1"}


def test_a_pool_may_name_its_cluster_by_id(gcp: Gcp) -> None:
    create(gcp, CLUSTER, PRIVATE_CLUSTER)
    object_id, outputs = create(gcp, NODE_POOL, {"name": "workers", "cluster": CLUSTER_ID})
    assert object_id == POOL_ID
    assert outputs["location"] == "us-central1"


def test_a_pool_without_its_cluster_is_refused(gcp: Gcp) -> None:
    with pytest.raises(ProviderError, match=rf"404: no cluster {CLUSTER_ID}"):
        create(gcp, NODE_POOL, {"name": "workers", "cluster": "train", "location": "us-central1"})


def test_a_refused_pool_leaves_nothing_and_may_be_tried_again(gcp: Gcp, cluster: FakeCluster) -> None:
    with pytest.raises(ProviderError, match="machine type 'e2-standard-5' not found"):
        make_pool(gcp, nodeCount=1, nodeConfig={"machineType": "e2-standard-5"})
    cluster.full = True
    with pytest.raises(ProviderError, match="refused a node"):
        make_pool(gcp, nodeCount=1)
    assert gcp.read(urn(NODE_POOL), POOL_ID, {}, {}) is None
    cluster.full = False
    make_pool(gcp, nodeCount=1)
    assert len(cluster.stored) == 3


def test_nodes_that_do_not_become_ready_are_kept_and_named(gcp: Gcp, cluster: FakeCluster) -> None:
    cluster.ready = False
    create(gcp, CLUSTER, PRIVATE_CLUSTER)
    with pytest.raises(
        InitializationFailed, match=r"3 nodes did not become ready in time, for example gke-train-workers-"
    ) as failed:
        create(gcp, NODE_POOL, {"name": "workers", "cluster": CLUSTER_ID, "nodeCount": 1}, timeout=0.01)
    assert failed.value.object_id == POOL_ID
    assert gcp.read(urn(NODE_POOL), POOL_ID, {}, {}) is not None


def test_cancelling_ends_the_wait_for_nodes(gcp: Gcp, cluster: FakeCluster) -> None:
    cluster.ready = False
    create(gcp, CLUSTER, PRIVATE_CLUSTER)
    gcp.cancel()
    with pytest.raises(InitializationFailed):
        create(gcp, NODE_POOL, {"name": "workers", "cluster": CLUSTER_ID, "nodeCount": 1}, timeout=3600)


def test_resizing_adds_and_removes_nodes(gcp: Gcp, cluster: FakeCluster) -> None:
    object_id, _ = make_pool(gcp, nodeCount=2)
    first = set(cluster.stored)
    pool = {"name": "workers", "cluster": "train", "location": "us-central1"}
    update(gcp, NODE_POOL, object_id, {**pool, "nodeCount": 3})
    assert len(cluster.stored) == 9
    assert first <= set(cluster.stored)
    update(gcp, NODE_POOL, object_id, {**pool, "nodeCount": 1, "nodeLocations": ["us-central1-a"]})
    assert len(cluster.stored) == 1
    assert set(cluster.stored) <= first


def test_labels_and_taints_are_changed_on_existing_nodes(gcp: Gcp, cluster: FakeCluster) -> None:
    object_id, _ = make_pool(gcp, nodeCount=1, nodeConfig={"labels": {"old": "1"}})
    names = set(cluster.stored)
    config = {"labels": {"new": "1"}, "taints": [{"key": "k", "value": "v", "effect": "NO_SCHEDULE"}]}
    pool = {"name": "workers", "cluster": "train", "location": "us-central1", "nodeCount": 1}
    update(gcp, NODE_POOL, object_id, {**pool, "nodeConfig": config})
    assert set(cluster.stored) == names
    for node in cluster.nodes():
        assert node["metadata"]["labels"]["new"] == "1"
        assert "old" not in node["metadata"]["labels"]
        assert node["spec"]["taints"] == [{"key": "k", "value": "v", "effect": "NoSchedule"}]


def test_another_machine_type_replaces_the_nodes(gcp: Gcp, cluster: FakeCluster) -> None:
    object_id, _ = make_pool(gcp, nodeCount=1)
    names = set(cluster.stored)
    pool = {"name": "workers", "cluster": "train", "location": "us-central1", "nodeCount": 1}
    update(gcp, NODE_POOL, object_id, {**pool, "nodeConfig": {"machineType": "e2-standard-8"}})
    assert len(cluster.stored) == 3
    assert names.isdisjoint(cluster.stored)


def test_a_refresh_sees_nodes_that_were_removed_outside_of_pulumi(gcp: Gcp, cluster: FakeCluster) -> None:
    object_id, _ = make_pool(gcp, nodeCount=2)
    cluster.delete_node(next(iter(cluster.stored)))
    read = gcp.read(urn(NODE_POOL), object_id, {}, {})
    assert read is not None
    assert read[0]["nodeCount"] == read[1]["nodeCount"] == 1
    pool = {"name": "workers", "cluster": "train", "location": "us-central1", "nodeCount": 2}
    update(gcp, NODE_POOL, object_id, pool)
    assert len(cluster.stored) == 6


def test_a_deleted_pool_leaves_no_node(gcp: Gcp, cluster: FakeCluster) -> None:
    object_id, outputs = make_pool(gcp, nodeCount=2)
    gcp.delete(urn(NODE_POOL), object_id, {}, outputs, timeout=5)
    assert cluster.stored == {}
    assert gcp.read(urn(NODE_POOL), object_id, {}, {}) is None


def test_a_pool_that_is_being_deleted_does_not_grow(cluster: FakeCluster) -> None:
    inputs = {"name": "workers", "autoscaling": {"totalMaxNodeCount": 5}}
    zones = ["us-central1-a"]
    plan = pool_plan(inputs, cluster="train", cluster_location="us-central1", cluster_zones=zones, project="demo")
    pool = LivePool(plan, cluster)
    pool.grow({"us-central1-a": 1})
    assert len(cluster.stored) == 1
    pool.close()
    pool.grow({"us-central1-a": 1})
    assert cluster.stored == {}


def test_a_deleted_cluster_takes_its_pools_out_of_the_cloud(gcp: Gcp, cloud: Cloud) -> None:
    pool_id, _ = make_pool(gcp, nodeCount=1)
    read = gcp.read(urn(CLUSTER), CLUSTER_ID, {}, {})
    assert read is not None
    gcp.delete(urn(CLUSTER), CLUSTER_ID, {}, {**read[1], "deletionProtection": False}, timeout=5)
    assert cloud.find(pool_id) is None


def test_the_version_is_written_as_gke_does(cloud: Cloud, cluster: FakeCluster, monkeypatch: Any) -> None:
    monkeypatch.setattr(cluster, "version", lambda: "v1.36.3+abcdef")
    assert cloud.kubernetes_version() == "1.36.3-gke.1000"


def waiting(count: int) -> list[dict[str, Any]]:
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return [
        {
            "metadata": {"name": f"p{number}", "namespace": "x"},
            "spec": {"containers": [{"resources": {"requests": {"cpu": "3"}}}]},
            "status": {"phase": "Pending", "conditions": [unschedulable]},
        }
        for number in range(count)
    ]


def test_an_autoscaled_pool_grows_for_waiting_pods_up_to_its_maximum(
    gcp: Gcp, cloud: Cloud, cluster: FakeCluster
) -> None:
    config = {"machineType": "e2-standard-4"}
    object_id, outputs = make_pool(gcp, autoscaling={"minNodeCount": 0, "maxNodeCount": 2}, nodeConfig=config)
    cloud.grow_pools()
    assert cluster.stored == {}
    cluster.pending = waiting(2)
    cloud.grow_pools()
    cloud.grow_pools()
    assert len(cluster.stored) == 2
    cluster.pending = waiting(50)
    cloud.grow_pools()
    cloud.grow_pools()
    assert cloud.pool_size(object_id) == {"us-central1-a": 2, "us-central1-b": 2, "us-central1-c": 2}
    gcp.delete(urn(NODE_POOL), object_id, {}, outputs, timeout=5)
    cloud.grow_pools()
    assert cluster.stored == {}


def test_an_update_of_an_autoscaled_pool_keeps_the_nodes_it_grew(gcp: Gcp, cloud: Cloud, cluster: FakeCluster) -> None:
    config = {"machineType": "e2-standard-4"}
    object_id, _ = make_pool(gcp, autoscaling={"totalMaxNodeCount": 5}, nodeConfig=config)
    cluster.pending = waiting(4)
    cloud.grow_pools()
    pool = {"name": "workers", "cluster": "train", "location": "us-central1"}
    scaling = {"totalMinNodeCount": 0, "totalMaxNodeCount": 9}
    update(gcp, NODE_POOL, object_id, {**pool, "autoscaling": scaling, "nodeConfig": {**config, "labels": {"a": "b"}}})
    assert len(cluster.stored) == 4
    assert {node["metadata"]["labels"]["a"] for node in cluster.nodes()} == {"b"}
