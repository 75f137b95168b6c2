"""The nodes of the simulated pools, as Node objects in the real API server.

kwok acts as their kubelet and makes them Ready. A node is cordoned and drained before it is removed, as on GKE, so
that controllers replace its pods at once; disruption budgets and grace periods are out of scope.
"""

import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from persia_infra.kube.api import ApiError, Refused, connect
from persia_infra.rehearsal.provider import volumes
from persia_infra.rehearsal.provider.nodes import POOL_LABEL, NodeTemplate, PoolPlan, Taint, node_manifest
from persia_infra.rehearsal.provider.package import ProviderError

Node = dict[str, Any]
_PARALLEL = 8
_ZONE = "topology.kubernetes.io/zone"


class ClusterApi(Protocol):
    """The requests of the simulated cloud to the API server; objects are plain JSON."""

    def create_node(self, manifest: Node) -> bool:
        """Returns False if a node of this name exists already."""
        ...

    def nodes(self, pool: str | None = None) -> list[Node]: ...
    def patch_node(self, name: str, patch: Node) -> None: ...
    def delete_node(self, name: str) -> None:
        """Cordons a node, deletes its pods, and removes it."""
        ...

    def waiting_pods(self) -> list[dict[str, Any]]: ...
    def pods(self) -> list[dict[str, Any]]: ...
    def daemon_sets(self) -> list[dict[str, Any]]: ...
    def version(self) -> str: ...
    def add_storage_classes(self) -> None: ...
    def remove_storage_classes(self) -> None: ...
    def serve_claims(self) -> None: ...
    def serve_load_balancers(self) -> None: ...


class KubernetesApi:
    """The `ClusterApi` of the rehearsal's control plane."""

    def __init__(self, kubeconfig: Path) -> None:
        if (cluster := connect(str(kubeconfig), None)) is None:
            raise ProviderError(f"{kubeconfig}: the kubeconfig names no cluster")
        self._cluster = cluster

    def create_node(self, manifest: Node) -> bool:
        return self._request("POST", "/api/v1/nodes", manifest, unless=409)

    def nodes(self, pool: str | None = None) -> list[Node]:
        return self._items("/api/v1/nodes", {"labelSelector": f"{POOL_LABEL}={pool}"} if pool else {})

    def patch_node(self, name: str, patch: Node) -> None:
        self._request("PATCH", f"/api/v1/nodes/{name}", patch, "application/merge-patch+json", unless=404)

    def delete_node(self, name: str) -> None:
        self.patch_node(name, {"spec": {"unschedulable": True}})
        for pod in self._items("/api/v1/pods", {"fieldSelector": f"spec.nodeName={name}"}):
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
            with suppress(ApiError):
                self._request("DELETE", path, options, unless=404)
        self._request("DELETE", f"/api/v1/nodes/{name}", unless=404)

    def waiting_pods(self) -> list[dict[str, Any]]:
        return self._items("/api/v1/pods", {"fieldSelector": "status.phase=Pending,spec.nodeName="})

    def pods(self) -> list[dict[str, Any]]:
        return self._items("/api/v1/pods", {})

    def daemon_sets(self) -> list[dict[str, Any]]:
        return self._items("/apis/apps/v1/daemonsets", {})

    def version(self) -> str:
        return self._cluster.request("GET", "/version")["gitVersion"]

    def add_storage_classes(self) -> None:
        volumes.add_storage_classes(self._cluster)

    def remove_storage_classes(self) -> None:
        volumes.remove_storage_classes(self._cluster)

    def serve_claims(self) -> None:
        volumes.serve_claims(self._cluster)

    def serve_load_balancers(self) -> None:
        """Gives each waiting Service of type LoadBalancer an address from a documentation range."""
        for service in self._items("/api/v1/services", {}):
            if service["spec"].get("type") == "LoadBalancer" and not service["status"].get("loadBalancer"):
                metadata = service["metadata"]
                number = 1 + zlib.crc32(metadata["uid"].encode()) % 254
                status = {"status": {"loadBalancer": {"ingress": [{"ip": f"198.51.100.{number}"}]}}}
                path = f"/api/v1/namespaces/{metadata['namespace']}/services/{metadata['name']}/status"
                self._request("PATCH", path, status, "application/merge-patch+json", unless=404)

    def _items(self, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
        return self._cluster.request("GET", path, query).get("items") or []

    def _request(
        self, method: str, path: str, body: Node | None = None, kind: str = "application/json", *, unless: int
    ) -> bool:
        """Sends a request, and returns False if it is refused with the status `unless`."""
        try:
            self._cluster.request(method, path, body=body, content_type=kind)
        except Refused as refusal:
            if refusal.status == unless:
                return False
            raise refusal.about(f"{method} {path}, for a simulated node") from None
        return True


class LivePool:
    """The nodes of a pool; a lock guards changes, since the autoscaler works on the pool at the same time."""

    def __init__(self, plan: PoolPlan, api: ClusterApi) -> None:
        self.plan = plan
        self._api = api
        self._lock = threading.RLock()
        self._closed = False

    def nodes_by_zone(self) -> dict[str, int]:
        counts = dict.fromkeys(self.plan.start, 0)
        for node in self._api.nodes(self.plan.name):
            zone = node["metadata"]["labels"].get(_ZONE, "")
            counts[zone] = counts.get(zone, 0) + 1
        return counts

    def make(self) -> None:
        with self._lock:
            self._add(self.plan.start)

    def grow(self, added: dict[str, int]) -> None:
        """Adds nodes up to the pool's maximum; a closed pool never grows."""
        with self._lock:
            if self._closed or self.plan.limits is None:
                return
            counts, allowed = self.nodes_by_zone(), dict.fromkeys(added, 0)
            for zone, wanted in added.items():
                for _ in range(wanted):
                    after = {**counts, zone: counts.get(zone, 0) + 1}
                    if not self.plan.limits.exceeded_by(after):
                        counts = after
                        allowed[zone] += 1
            self._add(allowed)

    def change(self, plan: PoolPlan) -> None:
        """Applies another plan: labels and taints in place, a different machine by new nodes."""
        with self._lock:
            before, self.plan = self.plan, plan
            nodes = self._api.nodes(plan.name)
            counts: dict[str, int] = {}
            for node in nodes:
                zone = node["metadata"]["labels"].get(_ZONE, "")
                counts[zone] = counts.get(zone, 0) + 1
            wanted = self._wanted(counts)
            if before.template.is_another_machine(plan.template):
                self._add(wanted)
                self._delete(node["metadata"]["name"] for node in nodes)
                return
            leaving, kept = [], []
            for node in sorted(nodes, key=lambda node: node["metadata"]["creationTimestamp"]):
                zone = node["metadata"]["labels"].get(_ZONE, "")
                kept_there = sum(1 for other in kept if other["metadata"]["labels"].get(_ZONE) == zone)
                (kept if kept_there < wanted.get(zone, 0) else leaving).append(node)
            self._delete(node["metadata"]["name"] for node in leaving)
            for node in kept:
                if patch := node_patch(node, before.template, plan.template):
                    self._api.patch_node(node["metadata"]["name"], patch)
            self._add({zone: count - counts.get(zone, 0) for zone, count in wanted.items()})

    def close(self) -> None:
        """Deletes the nodes and stops the pool from growing."""
        with self._lock:
            self._closed = True
            self._delete(node["metadata"]["name"] for node in self._api.nodes(self.plan.name))

    def wait_until_ready(self, seconds: float, cancelled: threading.Event) -> list[str]:
        """Returns the names of nodes that are not ready in time."""
        return self._wait(lambda node: not _is_ready(node), seconds, cancelled)

    def wait_until_gone(self, seconds: float, cancelled: threading.Event) -> list[str]:
        """Returns the names of nodes that are not gone in time."""
        return self._wait(lambda _node: True, seconds, cancelled)

    def _wait(self, pending: Callable[[Node], bool], seconds: float, cancelled: threading.Event) -> list[str]:
        deadline = time.monotonic() + seconds
        while left := [node["metadata"]["name"] for node in self._api.nodes(self.plan.name) if pending(node)]:
            if time.monotonic() >= deadline or cancelled.wait(0.2):
                break
        return left

    def _wanted(self, counts: dict[str, int]) -> dict[str, int]:
        if self.plan.fixed:
            return self.plan.start
        return {
            zone: max(counts[zone], self.plan.least[zone]) if zone in counts else start
            for zone, start in self.plan.start.items()
        }

    def _add(self, counts: dict[str, int]) -> None:
        zones = [zone for zone, count in counts.items() for _ in range(count)]
        with ThreadPoolExecutor(_PARALLEL) as workers:
            list(workers.map(self._add_one, zones))

    def _add_one(self, zone: str) -> None:
        while not self._api.create_node(node_manifest(self.plan, zone, secrets.token_hex(8))):
            continue

    def _delete(self, names: Iterable[str]) -> None:
        with ThreadPoolExecutor(_PARALLEL) as workers:
            list(workers.map(self._api.delete_node, names))


def node_patch(node: Node, before: NodeTemplate, after: NodeTemplate) -> Node:
    """Returns a merge patch for labels and taints, which keeps those that others have set on the node."""
    have = node["metadata"].get("labels") or {}
    labels: dict[str, str | None] = {key: value for key, value in after.labels.items() if have.get(key) != value}
    labels |= {key: None for key in before.labels if key not in after.labels and key in have}
    taints: list[Taint] = (node.get("spec") or {}).get("taints") or []
    own = {(taint["key"], taint["effect"]) for taint in (*before.taints, *after.taints)}
    wanted = [taint for taint in taints if (taint["key"], taint["effect"]) not in own] + after.taints
    patch: Node = {}
    if labels:
        patch["metadata"] = {"labels": labels}
    if _keyed(wanted) != _keyed(taints):
        patch["spec"] = {"taints": wanted}
    return patch


def _keyed(taints: list[Taint]) -> set[tuple[str, str, str]]:
    return {(taint["key"], taint.get("value") or "", taint["effect"]) for taint in taints}


def _is_ready(node: Node) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    not_ready = any(
        taint["key"] == "node.kubernetes.io/not-ready" for taint in (node.get("spec") or {}).get("taints") or []
    )
    return not not_ready and any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )
