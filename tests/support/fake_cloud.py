"""A cluster in memory, and the calls that the engine would make, for the tests of the simulated Google Cloud."""

import copy
import threading
from typing import Any

from persia_infra.rehearsal.provider.gcp import Gcp
from persia_infra.rehearsal.provider.package import Properties, ProviderError, Urn

CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"
NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
ACCOUNT = "gcp:serviceaccount/account:Account"
MEMBER = "gcp:projects/iAMMember:IAMMember"
CLUSTER_ID = "projects/demo/locations/us-central1/clusters/train"
POOL_ID = f"{CLUSTER_ID}/nodePools/workers"
PRIVATE_CLUSTER = {"name": "train", "location": "us-central1", "initialNodeCount": 1, "removeDefaultNodePool": True}


class FakeCluster:
    """The API server as the cloud uses it, in memory; nodes become ready at once unless `ready` is cleared."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.pending: list[dict[str, Any]] = []
        self.ready = True
        self.full = False
        self.lock = threading.Lock()

    def create_node(self, manifest: dict[str, Any]) -> bool:
        with self.lock:
            if self.full:
                raise ProviderError("the API server refused a node")
            name = manifest["metadata"]["name"]
            if name in self.stored:
                return False
            node = copy.deepcopy(manifest)
            node["metadata"]["creationTimestamp"] = f"{len(self.stored):08}"
            node["status"]["conditions"] = [{"type": "Ready", "status": str(self.ready)}]
            self.stored[name] = node
            return True

    def nodes(self, pool: str | None = None) -> list[dict[str, Any]]:
        with self.lock:
            found = list(self.stored.values())
        return [node for node in found if pool in (None, node["metadata"]["labels"]["cloud.google.com/gke-nodepool"])]

    def patch_node(self, name: str, patch: dict[str, Any]) -> None:
        node = self.stored[name]
        for key, value in patch.get("metadata", {}).get("labels", {}).items():
            node["metadata"]["labels"].pop(key, None)
            if value is not None:
                node["metadata"]["labels"][key] = value
        node["spec"] |= patch.get("spec", {})

    def delete_node(self, name: str) -> None:
        with self.lock:
            self.stored.pop(name, None)

    def waiting_pods(self) -> list[dict[str, Any]]:
        return self.pending

    def pods(self) -> list[dict[str, Any]]:
        return self.pending

    def daemon_sets(self) -> list[dict[str, Any]]:
        return []

    def version(self) -> str:
        return "v1.36.3"

    def add_storage_classes(self) -> None: ...

    def remove_storage_classes(self) -> None: ...

    def serve_claims(self) -> None: ...

    def serve_load_balancers(self) -> None: ...


def urn(token: str, name: str = "thing") -> Urn:
    return Urn(f"urn:pulumi:dev::train::my:Environment${token}::{name}")


def checked(
    gcp: Gcp, token: str, inputs: Properties, olds: Properties | None = None, name: str = "thing"
) -> Properties:
    filled, failures = gcp.check(urn(token, name), olds or {}, inputs, b"seed")
    assert failures == []
    return filled


def create(
    gcp: Gcp, token: str, inputs: Properties, name: str = "thing", timeout: float = 30
) -> tuple[str, Properties]:
    return gcp.create(urn(token, name), checked(gcp, token, inputs, name=name), preview=False, timeout=timeout)


def update(gcp: Gcp, token: str, object_id: str, news: Properties) -> Properties:
    read = gcp.read(urn(token), object_id, {}, {})
    assert read is not None
    inputs, outputs = read
    new = checked(gcp, token, news, olds=inputs)
    return gcp.update(urn(token), object_id, inputs, outputs, new, preview=False, timeout=30)


def make_pool(gcp: Gcp, **inputs: Any) -> tuple[str, Properties]:
    if gcp.read(urn(CLUSTER), CLUSTER_ID, {}, {}) is None:
        create(gcp, CLUSTER, PRIVATE_CLUSTER)
    return create(gcp, NODE_POOL, {"name": "workers", "cluster": "train", "location": "us-central1", **inputs})
