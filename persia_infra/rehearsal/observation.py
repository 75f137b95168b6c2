"""Reads a control plane: nodes by pool, pods with the reason why they do not run, and all deployed objects."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from persia_infra.kube.api import connect
from persia_infra.kube.pod_state import runs, why_not_running

POOL_LABEL = "cloud.google.com/gke-nodepool"
# Created by the control plane itself, whatever is deployed.
NOT_DEPLOYED = frozenset({"events", "leases", "endpoints", "endpointslices", "componentstatuses", "podmetrics"})
OWN_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease"})


@dataclass(frozen=True)
class PendingPod:
    """A pod that does not run, or a workload whose pods do not exist, with the reason."""

    pod: str
    reason: str


@dataclass(frozen=True)
class Pods:
    """The pods of a control plane."""

    wanted: int
    names: tuple[str, ...]
    """The names of the running pods."""
    pending: tuple[PendingPod, ...]

    @property
    def running(self) -> int:
        return len(self.names)

    @property
    def all_running(self) -> bool:
        return self.running == self.wanted and not self.pending


class Observer:
    """Reads a control plane through a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        cluster = connect(str(kubeconfig), None)
        if cluster is None:
            raise FileNotFoundError(kubeconfig)
        self._cluster = cluster

    def version(self) -> str:
        return self.get("/version")["gitVersion"].removeprefix("v")

    def nodes(self) -> Counter[str]:
        nodes = self._list("/api/v1/nodes")
        return Counter(node["metadata"].get("labels", {}).get(POOL_LABEL, "none") for node in nodes)

    def pods(self) -> Pods:
        """Returns all pods; pods that their owner has not created are pending too."""
        pods = [pod for pod in self._list("/api/v1/pods") if not _has_failed_and_was_replaced(pod)]
        waiting = [PendingPod(_full_name(pod), why_not_running(pod).reason) for pod in pods if not runs(pod)]
        existing = Counter(_owner(pod) for pod in pods)
        absent, missing = [], 0
        for owner, (count, problem) in self._wanted_by_owner().items():
            if (lacking := count - existing[owner]) > 0:
                kind, namespace, name = owner
                absent.append(
                    PendingPod(f"{namespace}/{name}", f"{kind}: {lacking} pods do not exist yet{_suffix(problem)}")
                )
                missing += lacking
        names = tuple(sorted(_full_name(pod) for pod in pods if runs(pod)))
        return Pods(len(pods) + missing, names, (*waiting, *absent))

    def objects(self) -> set[str]:
        """Returns every deployed object, as `resource namespace/name`."""
        names: set[str] = set()
        for path, resource, namespaced in self._kinds():
            for item in self._list(f"{path}/{resource}"):
                metadata = item["metadata"]
                namespace = metadata.get("namespace", "")
                if namespaced and namespace in OWN_NAMESPACES:
                    continue
                names.add(
                    f"{resource} {namespace}/{metadata['name']}" if namespaced else f"{resource} {metadata['name']}"
                )
        return names

    def _kinds(self) -> list[tuple[str, str, bool]]:
        paths = ["/api/v1"]
        paths += [f"/apis/{group['preferredVersion']['groupVersion']}" for group in self.get("/apis")["groups"]]
        return [
            (path, kind["name"], kind["namespaced"])
            for path in paths
            for kind in self.get(path)["resources"]
            if "list" in kind["verbs"] and "/" not in kind["name"] and kind["name"] not in NOT_DEPLOYED
        ]

    def _wanted_by_owner(self) -> dict[tuple[str, str, str], tuple[int, str]]:
        """Returns how many pods each workload wants, and its own message if it failed to create some."""
        wanted: dict[tuple[str, str, str], tuple[int, str]] = {}
        for kind, path, count in (
            ("StatefulSet", "/apis/apps/v1/statefulsets", lambda o: o["spec"].get("replicas", 1)),
            ("ReplicaSet", "/apis/apps/v1/replicasets", lambda o: o["spec"].get("replicas", 1)),
            ("DaemonSet", "/apis/apps/v1/daemonsets", lambda o: o.get("status", {}).get("desiredNumberScheduled", 0)),
        ):
            for item in self._list(path):
                metadata = item["metadata"]
                problems = [
                    condition.get("message", "")
                    for condition in item.get("status", {}).get("conditions", [])
                    if condition["type"] == "ReplicaFailure"
                ]
                wanted[kind, metadata["namespace"], metadata["name"]] = (count(item), "".join(problems[:1]))
        return wanted

    def _list(self, path: str) -> list[dict[str, Any]]:
        return self.get(path)["items"]

    def get(self, path: str) -> dict[str, Any]:
        return self._cluster.request("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._cluster.request("POST", path, body=body)

    def patch(self, path: str, change: dict[str, Any]) -> None:
        """Changes an object without Pulumi."""
        self._cluster.request("PATCH", path, body=change, content_type="application/merge-patch+json")


def _suffix(problem: str) -> str:
    return f": {problem}" if problem else ""


def _full_name(pod: dict[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _owner(pod: dict[str, Any]) -> tuple[str, str, str]:
    owners = pod["metadata"].get("ownerReferences") or [{"kind": "", "name": ""}]
    return owners[0]["kind"], pod["metadata"]["namespace"], owners[0]["name"]


def _has_failed_and_was_replaced(pod: dict[str, Any]) -> bool:
    return pod["status"].get("phase") == "Failed" and _owner(pod)[0] == "Job"
