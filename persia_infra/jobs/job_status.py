"""How to read a job from a cluster: where its object and pods are, and what the object's status means."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Phase = Literal["Missing", "Pending", "Running", "Succeeded", "Failed", "Suspended"]
Object = dict[str, Any]


def phase_from_conditions(job: Object) -> Phase | None:
    """The final phase according to the conditions that Kubernetes Jobs and many operators set; None while it runs."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    true = {condition["type"] for condition in conditions if condition.get("status") == "True"}
    if "Failed" in true:
        return "Failed"
    if true & {"Succeeded", "Complete"}:
        return "Succeeded"
    return "Suspended" if "Suspended" in true else None


@dataclass(frozen=True)
class JobView:
    """Where to find a job in a cluster, and how to read its status."""

    pod_names: Mapping[str, str]
    """For each role, a pattern for the part of its pods' names that follows the job's name."""
    api: str | None = None
    """API version and plural of the object that represents the job; None if it has only pods."""
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that all pods of the job have."""
    log_of: str = ""
    """The argument of `kubectl logs`; the first pod of the role `trains` when empty."""
    trains: str = ""
    """The role that trains; the job has succeeded when all pods of this role have."""
    final_phase: Callable[[Object], Phase | None] = phase_from_conditions
    """Reads the final phase from the object; None as long as the pods determine the phase."""
    why_pods_missing: str = ""
    """Why pods of the job do not exist although its operator has seen it."""
    made_by_others: tuple[str, ...] = ()
    """Roles whose pods are not created by the operator of the job's object."""

    def path(self, namespace: str, name: str) -> str | None:
        """The path of the job's object on the API server."""
        if self.api is None:
            return None
        version, _, plural = self.api.rpartition("/")
        root = "apis" if "/" in version else "api"
        return f"/{root}/{version}/namespaces/{namespace}/{plural}/{name}"

    def pods_of(self, role: str, job: str, pods: list[Object]) -> list[Object]:
        """The pods of one role among all pods of the namespace."""
        name = re.compile(rf"{re.escape(job)}-{self.pod_names[role]}")
        return [
            pod
            for pod in pods
            if name.fullmatch(pod["metadata"]["name"])
            and self.pod_labels.items() <= (pod["metadata"].get("labels") or {}).items()
        ]
