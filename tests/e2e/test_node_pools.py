"""Simulated node pools on the real control plane: its scheduler fills them, kwok makes their nodes ready."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from persia_infra.kube.api import Cluster, connect
from persia_infra.rehearsal.control_plane import ControlPlane
from persia_infra.rehearsal.provider.cloud import Cloud
from persia_infra.rehearsal.provider.gcp import Gcp
from persia_infra.rehearsal.provider.package import Properties, Urn
from tests.support.cluster_access import wait_for

CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"
WITHIN_SECONDS = 120


def urn(token: str) -> Urn:
    return Urn(f"urn:pulumi:e2e::pools::{token}::thing")


@pytest.fixture
def api(control_plane: ControlPlane) -> Cluster:
    connected = connect(str(control_plane.kubeconfig), None)
    assert connected is not None
    return connected


@pytest.fixture
def gcp(control_plane: ControlPlane) -> Iterator[Gcp]:
    cloud = Cloud(control_plane.kubeconfig)
    cloud.start()
    provider = Gcp(cloud)
    provider.configure({"project": "demo", "region": "us-central1"})
    cluster = {"name": "pools", "location": "us-central1", "initialNodeCount": 1, "removeDefaultNodePool": True}
    object_id, outputs = create(provider, CLUSTER, {**cluster, "deletionProtection": False})
    assert outputs["masterVersion"].startswith("1.")
    yield provider
    provider.delete(urn(CLUSTER), object_id, {}, outputs, timeout=WITHIN_SECONDS)
    cloud.stop()


@pytest.fixture
def namespace(api: Cluster) -> Iterator[str]:
    name = f"pools-{secrets.token_hex(4)}"
    api.request("POST", "/api/v1/namespaces", body={"metadata": {"name": name}})
    yield name
    path = f"/apis/apps/v1/namespaces/{name}/deployments"
    api.request("DELETE", path, body={"propagationPolicy": "Foreground"})
    pods = f"/api/v1/namespaces/{name}/pods"
    wait_for("an empty namespace", lambda: listed(api, path) + listed(api, pods), until=[].__eq__)
    api.request("DELETE", f"/api/v1/namespaces/{name}")
    this = {"fieldSelector": f"metadata.name={name}"}
    wait_for("no namespace", lambda: listed(api, "/api/v1/namespaces", **this), until=[].__eq__)


def create(gcp: Gcp, token: str, inputs: Properties) -> tuple[str, Properties]:
    filled, failures = gcp.check(urn(token), {}, inputs, b"seed")
    assert failures == []
    return gcp.create(urn(token), filled, preview=False, timeout=WITHIN_SECONDS)


def make_pool(gcp: Gcp, name: str, **inputs: Any) -> tuple[str, Properties]:
    return create(gcp, NODE_POOL, {"name": name, "cluster": "pools", "location": "us-central1", **inputs})


def listed(api: Cluster, path: str, **query: str) -> list[dict[str, Any]]:
    return api.request("GET", path, query)["items"]


def nodes(api: Cluster, pool: str) -> list[dict[str, Any]]:
    return listed(api, "/api/v1/nodes", labelSelector=f"cloud.google.com/gke-nodepool={pool}")


def deploy(api: Cluster, namespace: str, replicas: int, **pod: Any) -> None:
    labels = {"app": "filler"}
    requests = {"cpu": "3", "memory": "1Gi", **pod.pop("requests", {})}
    container = {"name": "main", "image": "none", "resources": {"requests": requests, "limits": pod.pop("limits", {})}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **pod}},
    }
    body = {"metadata": {"name": "filler"}, "spec": spec}
    api.request("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", body=body)


def phases(api: Cluster, namespace: str) -> list[str]:
    return sorted(pod["status"]["phase"] for pod in listed(api, f"/api/v1/namespaces/{namespace}/pods"))


def test_nodes_are_ready_with_gkes_labels_and_sizes_and_gone_with_their_pool(gcp: Gcp, api: Cluster) -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    config = {"machineType": "a2-highgpu-8g", "labels": {"role": "nn-worker"}, "taints": [taint]}
    object_id, outputs = make_pool(gcp, "gpu", nodeCount=1, nodeConfig=config)
    found = nodes(api, "gpu")
    assert len(found) == 3
    for node in found:
        ready = [one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"]
        assert ready == ["True"]
        assert node["metadata"]["labels"]["cloud.google.com/gke-accelerator"] == "nvidia-tesla-a100"
        assert node["metadata"]["labels"]["role"] == "nn-worker"
        assert node["spec"]["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
        assert node["status"]["allocatable"] == {
            "cpu": "95690m",
            "memory": "680103280Ki",
            "ephemeral-storage": "45391282Ki",
            "pods": "110",
            "nvidia.com/gpu": "8",
        }
    zones = {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in found}
    assert zones == {"us-central1-a", "us-central1-b", "us-central1-c"}
    gcp.delete(urn(NODE_POOL), object_id, {}, outputs, timeout=WITHIN_SECONDS)
    assert nodes(api, "gpu") == []


def test_an_autoscaled_pool_grows_for_waiting_pods_and_stops_at_its_maximum(
    gcp: Gcp, api: Cluster, namespace: str
) -> None:
    scaling = {"totalMinNodeCount": 0, "totalMaxNodeCount": 4}
    make_pool(gcp, "cpu", autoscaling=scaling, nodeConfig={"machineType": "e2-standard-4"})
    assert nodes(api, "cpu") == []
    deploy(api, namespace, replicas=6, nodeSelector={"cloud.google.com/gke-nodepool": "cpu"})
    wait_for("a full pool", lambda: phases(api, namespace), until=(["Pending"] * 2 + ["Running"] * 4).__eq__)
    assert len(nodes(api, "cpu")) == 4


def test_a_pool_that_pods_do_not_fit_does_not_grow(gcp: Gcp, api: Cluster, namespace: str) -> None:
    scaling = {"totalMinNodeCount": 0, "totalMaxNodeCount": 2}
    for name, kind in (("small", "e2-standard-4"), ("large", "n2-standard-16")):
        make_pool(gcp, name, autoscaling=scaling, nodeConfig={"machineType": kind, "labels": {"for": "filler"}})
    deploy(api, namespace, replicas=2, requests={"cpu": "10"}, nodeSelector={"for": "filler"})
    wait_for("both pods", lambda: phases(api, namespace), until=["Running", "Running"].__eq__)
    assert (len(nodes(api, "small")), len(nodes(api, "large"))) == (0, 2)


def test_pods_move_to_the_new_nodes_when_the_machine_type_changes(gcp: Gcp, api: Cluster, namespace: str) -> None:
    pool = {"name": "cpu", "cluster": "pools", "location": "us-central1", "nodeLocations": ["us-central1-a"]}
    old, _ = gcp.check(
        urn(NODE_POOL), {}, {**pool, "nodeCount": 2, "nodeConfig": {"machineType": "e2-standard-4"}}, b""
    )
    object_id, outputs = gcp.create(urn(NODE_POOL), old, preview=False, timeout=WITHIN_SECONDS)
    deploy(api, namespace, replicas=2, nodeSelector={"cloud.google.com/gke-nodepool": "cpu"})
    wait_for("both pods", lambda: phases(api, namespace), until=["Running", "Running"].__eq__)
    new = {**old, "nodeCount": 1, "nodeConfig": {"machineType": "n2-standard-16"}}
    assert gcp.diff(urn(NODE_POOL), object_id, old, outputs, new).replaces == []
    gcp.update(urn(NODE_POOL), object_id, old, outputs, new, preview=False, timeout=WITHIN_SECONDS)
    (node,) = nodes(api, "cpu")
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "n2-standard-16"

    def places() -> list[str]:
        found = listed(api, f"/api/v1/namespaces/{namespace}/pods")
        return [pod["spec"].get("nodeName") for pod in found if pod["status"]["phase"] == "Running"]

    wait_for("both pods on the new node", places, until=([node["metadata"]["name"]] * 2).__eq__)
