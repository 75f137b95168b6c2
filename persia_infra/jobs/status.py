"""How the jobs of an environment are doing, as its cluster tells: every role with what it wants, has and lacks.

Reads only. A role is known by the names and labels that its operator or controller gives the pods.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from persia_infra.environment import EnvironmentSpec
from persia_infra.jobs import Job, PersiaJobSpec, TrainingJobSpec, Workload
from persia_infra.kube.api import Refused
from persia_infra.rehearsal.observation import runs, why_not_running

Phase = Literal["Missing", "Pending", "Running", "Succeeded", "Failed", "Suspended"]
FINE: tuple[Phase, ...] = ("Running", "Succeeded", "Suspended")

_OVER: tuple[Phase, ...] = ("Succeeded", "Suspended")
_PERSIA_PODS = {
    "embeddingParameterServer": r"embedding-ps-\d+",
    "embeddingWorker": r"embedding-worker-\d+",
    "nnWorker": r"nn-worker-\d+",
    "dataloader": r"dataloader-\d+",
    "metricsGateway": r"metrics-gateway(-[a-z0-9]+)*",
    "nats": r"nats-\d+",
}
_NOT_ADMITTED = "Pending"
"""Of a PodGroup: it waits for its queue, before any of its pods is looked at."""
_SAYS_ONLY_THAT_IT_WAITS = ("pod group is not ready", "not looked at by its scheduler")


class Api(Protocol):
    """An API server."""

    def request(self, method: str, path: str, query: dict[str, str] | None = None) -> dict[str, Any]: ...


@dataclass(frozen=True)
class RoleStatus:
    """The pods of one role."""

    role: str
    wanted: int
    ready: int
    pending: int
    failed: int
    succeeded: int
    reason: str
    """Why pods are pending or failed; empty when none is."""


@dataclass(frozen=True)
class JobStatus:
    """One job."""

    name: str
    kind: str
    namespace: str
    phase: Phase
    age_seconds: int | None
    roles: tuple[RoleStatus, ...]
    log: str
    """The command that shows what the job says."""


@dataclass(frozen=True)
class _Watched:
    """Where a kind is to be seen."""

    path: str | None
    """Below the namespace, of the object that stands for the job; without one the pods alone tell."""
    labels: dict[str, str]
    patterns: dict[str, str]
    """By role, what the pods' names look like after the job's."""
    log: str

    def pods_of(self, role: str, job: str, pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those of one role among all of the namespace."""
        name = re.compile(rf"{re.escape(job)}-{self.patterns[role]}")
        return [
            pod
            for pod in pods
            if name.fullmatch(pod["metadata"]["name"])
            and self.labels.items() <= (pod["metadata"].get("labels") or {}).items()
        ]


def job_statuses(environment: EnvironmentSpec, api: Api, now: datetime) -> list[JobStatus]:
    """Every job that the environment describes, in its order.

    Raises:
        Refused: The API server does not let its pods be listed.
        Unreachable: It does not answer.
    """
    pods: dict[str, list[dict[str, Any]]] = {}
    found = []
    for name, job in environment.jobs.items():
        namespace = environment.namespace_of(job)
        if namespace not in pods:
            pods[namespace] = api.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        # With Volcano, the MPI and Paddle operators make a gang of every job.
        gang = _gang_reason(api, name, namespace) if environment.operators.volcano else ""
        found.append(_job_status(name, job, namespace, pods[namespace], gang, api, now))
    return found


def as_json(jobs: Sequence[JobStatus]) -> dict[str, Any]:
    """What `status --json` prints."""
    return {"jobs": [asdict(job) for job in jobs]}


def _job_status(
    name: str, job: Job, namespace: str, pods: list[dict[str, Any]], gang: str, api: Api, now: datetime
) -> JobStatus:
    watched = _watched(job, name, namespace)
    there = _object(api, f"/{watched.path}".format(namespace=namespace, name=name)) if watched.path else None
    loads = job.workloads()
    of_role = {load.role: watched.pods_of(load.role, name, pods) for load in loads}
    own = [pod for found in of_role.values() for pod in found]
    said = _verdict(there)
    roles = tuple(
        _role(load, of_role[load.role], said, gang, gang or _why_absent(job, load.role, there)) for load in loads
    )
    phase: Phase = "Missing" if there is None and not own else said or _phase(roles)
    return JobStatus(
        name, _kind(job), namespace, phase, _age(there, own, now), roles, watched.log.format(first=_first(own, watched))
    )


def _why_absent(job: Job, role: str, there: dict[str, Any] | None) -> str:
    """Why pods of a role do not exist, where their operator is to blame; NATS is not the PERSIA operator's."""
    if there is None or role == "nats":
        return ""
    if not there.get("status") and not there["metadata"].get("finalizers"):
        return f"nobody has looked at the {_kind(job)} yet: is its operator running?"
    if isinstance(job, PersiaJobSpec):
        return "the PERSIA operator makes each pod once, so one that was lost or refused stays away: replace the job"
    return ""


def _kind(job: Job) -> str:
    return job.runs_as.kind if isinstance(job, TrainingJobSpec) else job.kind


def _watched(job: Job, name: str, namespace: str) -> _Watched:
    logs = f"kubectl logs --namespace {namespace} --follow "
    match _kind(job):
        case "MPIJob":
            return _Watched(
                "apis/kubeflow.org/v2beta1/namespaces/{namespace}/mpijobs/{name}",
                {"training.kubeflow.org/job-name": name},
                {"launcher": r"launcher.*", "worker": r"worker-\d+"},
                f"{logs}job/{name}-launcher",
            )
        case "PaddleJob":
            return _Watched(
                "apis/batch.paddlepaddle.org/v1/namespaces/{namespace}/paddlejobs/{name}",
                {},
                {role: rf"{role}-\d+" for role in ("worker", "ps", "heter")},
                f"{logs}{name}-worker-0",
            )
        case "Job":
            return _Watched(
                "apis/batch/v1/namespaces/{namespace}/jobs/{name}",
                {"batch.kubernetes.io/job-name": name},
                {"training": r".*"},
                f"{logs}job/{name}",
            )
        case _:
            by_operator = isinstance(job, PersiaJobSpec) and job.mode == "operator"
            path = "apis/persia.com/v1/namespaces/{namespace}/persiajobs/{name}" if by_operator else None
            return _Watched(path, {}, _PERSIA_PODS, f"{logs}{{first}}")


def _first(pods: list[dict[str, Any]], watched: _Watched) -> str:
    """The first pod that trains, for kinds that name none by themselves."""
    names = sorted(pod["metadata"]["name"] for pod in pods)
    trains = watched.patterns.get("nnWorker", "")
    return next((name for name in names if trains and re.search(rf"-{trains}$", name)), next(iter(names), "POD"))


def _object(api: Api, path: str) -> dict[str, Any] | None:
    try:
        return api.request("GET", path)
    except Refused as error:
        if error.status == 404:
            return None
        raise


def _role(load: Workload, of_role: list[dict[str, Any]], said: Phase | None, gang: str, why_absent: str) -> RoleStatus:
    by_phase = {phase: [pod for pod in of_role if _pod_phase(pod) == phase] for phase in _POD_PHASES}
    alive = len(of_role) - len(by_phase["Failed"])
    # A job that starts failed pods again has more of them than it wants; those count as failed besides.
    absent = max(load.replicas - alive, 0)
    if said == "Failed" or (said is None and by_phase["Failed"]):
        absent = max(load.replicas - len(of_role), 0)
    waiting = 0 if said in _OVER else len(by_phase["Pending"]) + absent
    reasons = [why_not_running(pod) for pod in by_phase["Failed"][:1]]
    for pod in by_phase["Pending"][:1]:
        own = why_not_running(pod)
        reasons.append(gang if gang and own.startswith(_SAYS_ONLY_THAT_IT_WAITS) else own)
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


_POD_PHASES = ("Ready", "Succeeded", "Failed", "Pending")


def _pod_phase(pod: dict[str, Any]) -> str:
    phase = pod.get("status", {}).get("phase")
    if phase in ("Succeeded", "Failed"):
        return phase
    return "Ready" if runs(pod) else "Pending"


def _phase(roles: Sequence[RoleStatus]) -> Phase:
    if any(role.failed for role in roles):
        return "Failed"
    if any(role.role == "nnWorker" and 0 < role.wanted <= role.succeeded for role in roles):
        # PERSIA's servers never end by themselves.
        return "Succeeded"
    if any(role.pending for role in roles):
        return "Pending"
    if roles and all(role.succeeded for role in roles):
        return "Succeeded"
    return "Running"


def _verdict(there: dict[str, Any] | None) -> Phase | None:
    """What the job's own object says once and for all; nothing while the pods decide."""
    if there is None:
        return None
    status = there.get("status") or {}
    true = {one["type"] for one in status.get("conditions") or () if one.get("status") == "True"}
    phase = status.get("phase")
    if "Failed" in true or phase in ("Failed", "Aborted", "Terminated"):
        return "Failed"
    if true & {"Succeeded", "Complete"} or phase in ("Completed", "Succeed"):
        return "Succeeded"
    return "Suspended" if "Suspended" in true else None


def _gang_reason(api: Api, name: str, namespace: str) -> str:
    """Why Volcano holds a job's pods back, if it does and the reader may know."""
    try:
        group = api.request("GET", f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups/{name}")
        status = group.get("status") or {}
        if status.get("phase", _NOT_ADMITTED) == _NOT_ADMITTED:
            selected = {"fieldSelector": f"involvedObject.uid={group['metadata']['uid']},reason=Unschedulable"}
            said = api.request("GET", f"/api/v1/namespaces/{namespace}/events", selected)["items"]
            # A warning counts the waiting pods; what they lack is said besides, in no warning.
            said.sort(key=lambda event: (event["type"] == "Normal", event.get("lastTimestamp") or ""))
        else:
            # What kept a gang that runs by now is still there.
            said = [
                one
                for one in status.get("conditions") or ()
                if status["phase"] != "Running" and one.get("type") == "Unschedulable" and one.get("status") == "True"
            ]
    except Refused:
        return ""
    return f"Volcano holds the gang back: {said[-1].get('message') or said[-1].get('reason')}" if said else ""


def _age(there: dict[str, Any] | None, pods: list[dict[str, Any]], now: datetime) -> int | None:
    stamps = [one["metadata"]["creationTimestamp"] for one in ([there] if there else pods)]
    if not stamps:
        return None
    oldest = min(datetime.fromisoformat(stamp.replace("Z", "+00:00")) for stamp in stamps)
    return max(int((now - oldest).total_seconds()), 0)
