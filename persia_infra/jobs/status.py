"""Reads the status of jobs from a cluster: for every role the pods that are wanted, ready, pending and failed.

Nothing is changed. Each kind of job states where to find its object and pods (`Job.view`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol

from persia_infra.jobs.job import DeployedJob, Job, Workload
from persia_infra.jobs.job_status import JobView, Object, Phase
from persia_infra.kube.api import Refused
from persia_infra.kube.pod_state import runs, why_not_running

FINE: tuple[Phase, ...] = ("Running", "Succeeded", "Suspended")
"""Phases in which nothing needs attention."""

_OVER: tuple[Phase, ...] = ("Succeeded", "Suspended")
_POD_PHASES = ("Ready", "Succeeded", "Failed", "Pending")
_NOT_ADMITTED = "Pending"
"""The phase of a PodGroup that waits for its queue, before any of its pods is considered."""


class Api(Protocol):
    """A connection to an API server."""

    def request(self, method: str, path: str, query: dict[str, str] | None = None) -> dict[str, Any]: ...


@dataclass(frozen=True)
class RoleStatus:
    """The state of the pods of one role."""

    role: str
    wanted: int
    ready: int
    pending: int
    failed: int
    succeeded: int
    reason: str
    """Why pods are pending or failed; empty if none are."""


@dataclass(frozen=True)
class JobStatus:
    """The state of one job."""

    name: str
    kind: str
    namespace: str
    phase: Phase
    age_seconds: int | None
    roles: tuple[RoleStatus, ...]
    log: str
    """The command that shows the job's log."""


def job_statuses(jobs: Iterable[DeployedJob], api: Api, now: datetime) -> list[JobStatus]:
    """Returns the status of each job, in the given order.

    Raises:
        Refused: The API server does not allow listing pods.
        Unreachable: The API server does not answer.
    """
    pods: dict[str, list[Object]] = {}
    statuses = []
    for deployed in jobs:
        namespace = deployed.namespace
        if namespace not in pods:
            pods[namespace] = api.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        statuses.append(_job_status(deployed, pods[namespace], api, now))
    return statuses


def as_json(jobs: Sequence[JobStatus]) -> dict[str, Any]:
    """The document that `status --json` prints."""
    return {"jobs": [asdict(job) for job in jobs]}


def _job_status(deployed: DeployedJob, pods: list[Object], api: Api, now: datetime) -> JobStatus:
    name, namespace, job = deployed.name, deployed.namespace, deployed.job
    gang = _gang_reason(api, name, namespace) if deployed.volcano_installed else ""
    view = job.view(name)
    path = view.path(namespace, name)
    described = _object(api, path) if path else None
    loads = job.workloads(name)
    by_role = {load.role: view.pods_of(load.role, name, pods) for load in loads}
    own = [pod for of_role in by_role.values() for pod in of_role]
    final = view.final_phase(described) if described else None
    roles = tuple(
        _role(load, by_role[load.role], final, gang, gang or _why_absent(job, view, load.role, described))
        for load in loads
    )
    phase: Phase = "Missing" if described is None and not own else final or _phase(roles, view.trains)
    log = f"kubectl logs --namespace {namespace} --follow {view.log_of or _first_that_trains(own, view)}"
    return JobStatus(name, job.runs_as_kind, namespace, phase, _age(described, own, now), roles, log)


def _why_absent(job: Job, view: JobView, role: str, described: Object | None) -> str:
    """Why pods of a role do not exist, if the operator of the job's object is the reason."""
    if described is None or role in view.made_by_others:
        return ""
    if not described.get("status") and not described["metadata"].get("finalizers"):
        return f"no operator has processed the {job.runs_as_kind} yet: check that its operator is running"
    return view.why_pods_missing


def _first_that_trains(pods: list[Object], view: JobView) -> str:
    names = sorted(pod["metadata"]["name"] for pod in pods)
    pattern = view.pod_names.get(view.trains, "")
    return next((name for name in names if pattern and re.search(rf"-{pattern}$", name)), next(iter(names), "POD"))


def _object(api: Api, path: str) -> Object | None:
    try:
        return api.request("GET", path)
    except Refused as error:
        if error.status == 404:
            return None
        raise


def _role(load: Workload, pods: list[Object], final: Phase | None, gang: str, why_absent: str) -> RoleStatus:
    by_phase = {phase: [pod for pod in pods if _pod_phase(pod) == phase] for phase in _POD_PHASES}
    alive = len(pods) - len(by_phase["Failed"])
    # A job that retries has more pods than it wants: the failed ones do not count towards the wanted number.
    absent = max(load.replicas - alive, 0)
    if final == "Failed" or (final is None and by_phase["Failed"]):
        absent = max(load.replicas - len(pods), 0)
    waiting = 0 if final in _OVER else len(by_phase["Pending"]) + absent
    reasons = [why_not_running(pod).reason for pod in by_phase["Failed"][:1]]
    for pod in by_phase["Pending"][:1]:
        own = why_not_running(pod)
        reasons.append(gang if gang and own.waiting_only else own.reason)
    if absent and waiting:
        reasons.append(why_absent or f"{absent} of its pods do not exist yet")
    return RoleStatus(
        load.role,
        load.replicas,
        len(by_phase["Ready"]),
        waiting,
        len(by_phase["Failed"]),
        len(by_phase["Succeeded"]),
        "; ".join(dict.fromkeys(reasons)) if waiting or by_phase["Failed"] else "",
    )


def _pod_phase(pod: Object) -> str:
    phase = pod.get("status", {}).get("phase")
    if phase in ("Succeeded", "Failed"):
        return phase
    return "Ready" if runs(pod) else "Pending"


def _phase(roles: Sequence[RoleStatus], trains: str) -> Phase:
    if any(role.failed for role in roles):
        return "Failed"
    # Servers never exit by themselves, so the role that trains determines the phase.
    if any(role.role == trains and 0 < role.wanted <= role.succeeded for role in roles):
        return "Succeeded"
    if any(role.pending for role in roles):
        return "Pending"
    if roles and all(role.succeeded for role in roles):
        return "Succeeded"
    return "Running"


def _gang_reason(api: Api, name: str, namespace: str) -> str:
    """Why Volcano holds back a job's pods; empty if it does not, or if the user may not read its PodGroup."""
    try:
        group = api.request("GET", f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups/{name}")
        status = group.get("status") or {}
        if status.get("phase", _NOT_ADMITTED) == _NOT_ADMITTED:
            selected = {"fieldSelector": f"involvedObject.uid={group['metadata']['uid']},reason=Unschedulable"}
            messages = api.request("GET", f"/api/v1/namespaces/{namespace}/events", selected)["items"]
            # A warning counts the waiting pods; the missing resources are in a separate event of type Normal.
            messages.sort(key=lambda event: (event["type"] == "Normal", event.get("lastTimestamp") or ""))
        else:
            # The condition remains on a gang that is running by now.
            messages = [
                condition
                for condition in status.get("conditions") or ()
                if status["phase"] != "Running"
                and condition.get("type") == "Unschedulable"
                and condition.get("status") == "True"
            ]
    except Refused:
        return ""
    if not messages:
        return ""
    return f"Volcano holds back the gang: {messages[-1].get('message') or messages[-1].get('reason')}"


def _age(described: Object | None, pods: list[Object], now: datetime) -> int | None:
    stamps = [item["metadata"]["creationTimestamp"] for item in ([described] if described else pods)]
    if not stamps:
        return None
    oldest = min(datetime.fromisoformat(stamp.replace("Z", "+00:00")) for stamp in stamps)
    return max(int((now - oldest).total_seconds()), 0)
