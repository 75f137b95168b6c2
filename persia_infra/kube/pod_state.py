"""Whether a pod runs, and if not, why."""

from dataclasses import dataclass
from typing import Any

# Volcano reports a pod of a waiting gang as plain "Unschedulable", exactly like a pod that fits on no node. Only its
# message tells the two apart.
_VOLCANO_WAITING_MESSAGE = "pod group is not ready"


@dataclass(frozen=True)
class NotRunning:
    """Why a pod does not run."""

    reason: str
    """The reason, for people to read."""
    waiting_only: bool = False
    """The pod has no problem of its own: it waits for its scheduler or for the rest of its gang."""


def runs(pod: dict[str, Any]) -> bool:
    """Whether a pod is ready or has completed successfully."""
    phase = pod["status"].get("phase")
    return phase == "Succeeded" or (phase == "Running" and _conditions(pod).get("Ready", {}).get("status") == "True")


def why_not_running(pod: dict[str, Any]) -> NotRunning:
    """Returns the most specific reason in the status of a pod that does not run."""
    scheduled = _conditions(pod).get("PodScheduled", {})
    if scheduled.get("status") == "False":
        reason = scheduled.get("message") or scheduled.get("reason", "not scheduled")
        return NotRunning(reason, waiting_only=reason.startswith(_VOLCANO_WAITING_MESSAGE))
    for container in pod["status"].get("containerStatuses", []):
        for name in ("waiting", "terminated"):
            if state := container.get("state", {}).get(name):
                return NotRunning(
                    f"{container['name']}: {state.get('reason', name)} {state.get('message', '')}".strip()
                )
    if pod["spec"].get("schedulingGates"):
        return NotRunning("held by a scheduling gate")
    if message := pod["status"].get("message"):
        return NotRunning(message)
    if scheduled:
        return NotRunning("not ready yet")
    return NotRunning("its scheduler has not looked at it yet", waiting_only=True)


def _conditions(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {condition["type"]: condition for condition in pod.get("status", {}).get("conditions", [])}
