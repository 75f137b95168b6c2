"""What is to be seen on a control plane: nodes by pool, pods with the reason why they don't run, all objects."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from persia_infra.kube.api import connect

POOL_LABEL = "cloud.google.com/gke-nodepool"
# Kept by the control plane itself, whatever is deployed.
NOT_DEPLOYED = frozenset({"events", "leases", "endpoints", "endpointslices", "componentstatuses", "podmetrics"})
OWN_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease"})


@dataclass(frozen=True)
class PendingPod:
    pod: str
    reason: str


@dataclass(frozen=True)
class Pods:
    wanted: int
    names: tuple[str, ...]
    """Of those that run."""
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
        """A pod runs when it is ready, or has ended well; one that its owner could not make is pending too."""
        pods = [pod for pod in self._list("/api/v1/pods") if not _has_failed_and_was_replaced(pod)]
        waiting = [PendingPod(_full_name(pod), why_not_running(pod)) for pod in pods if not runs(pod)]
        made = Counter(_owner(pod) for pod in pods)
        absent, not_made = [], 0
        for owner, (count, problem) in self._wanted_by_owner().items():
            if (lacking := count - made[owner]) > 0:
                kind, namespace, name = owner
                absent.append(
                    PendingPod(f"{namespace}/{name}", f"{kind}: {lacking} pods do not exist yet{_said(problem)}")
                )
                not_made += lacking
        names = tuple(sorted(_full_name(pod) for pod in pods if runs(pod)))
        return Pods(len(pods) + not_made, names, (*waiting, *absent))

    def objects(self) -> set[str]:
        """Every object that somebody deployed, as `resource namespace/name`."""
        found: set[str] = set()
        for path, resource, namespaced in self._kinds():
            for item in self._list(f"{path}/{resource}"):
                metadata = item["metadata"]
                namespace = metadata.get("namespace", "")
                if namespaced and namespace in OWN_NAMESPACES:
                    continue
                found.add(
                    f"{resource} {namespace}/{metadata['name']}" if namespaced else f"{resource} {metadata['name']}"
                )
        return found

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
        """How many pods each workload wants that makes pods itself, and what it said of a failure."""
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
        """A change made behind Pulumi's back."""
        self._cluster.request("PATCH", path, body=change, content_type="application/merge-patch+json")


def _said(problem: str) -> str:
    return f": {problem}" if problem else ""


def _full_name(pod: dict[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _owner(pod: dict[str, Any]) -> tuple[str, str, str]:
    owners = pod["metadata"].get("ownerReferences") or [{"kind": "", "name": ""}]
    return owners[0]["kind"], pod["metadata"]["namespace"], owners[0]["name"]


def _conditions(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {condition["type"]: condition for condition in pod.get("status", {}).get("conditions", [])}


def runs(pod: dict[str, Any]) -> bool:
    phase = pod["status"].get("phase")
    return phase == "Succeeded" or (phase == "Running" and _conditions(pod).get("Ready", {}).get("status") == "True")


def _has_failed_and_was_replaced(pod: dict[str, Any]) -> bool:
    return pod["status"].get("phase") == "Failed" and _owner(pod)[0] == "Job"


def why_not_running(pod: dict[str, Any]) -> str:
    conditions = _conditions(pod)
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return scheduled.get("message") or scheduled.get("reason", "not scheduled")
    for container in pod["status"].get("containerStatuses", []):
        for state in ("waiting", "terminated"):
            if found := container.get("state", {}).get(state):
                return f"{container['name']}: {found.get('reason', state)} {found.get('message', '')}".strip()
    if pod["spec"].get("schedulingGates"):
        return "held by a scheduling gate"
    return pod["status"].get("message") or ("not ready yet" if scheduled else "not looked at by its scheduler yet")
