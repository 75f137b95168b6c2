"""An MPIJob with the fields of its CRD (kubeflow.org/v2beta1), checked for what its operator would refuse later.

The older API (v1alpha2, and v1 with the same fields) is translated. Out of scope: v1alpha1, which described a job
by numbers of GPUs rather than by roles, and the operator itself.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from persia_infra.jobs.job import NAME_WHILE_CHECKING, ManifestForm, QueueRequest, Translation
from persia_infra.jobs.job_status import JobView
from persia_infra.jobs.run_job import RoleSpec, RunJob, RunRole, dumped, network_findings, scheduler_findings
from persia_infra.jobs.shares import DEFAULT_QUEUE, VOLCANO
from persia_infra.kube.objects import Body
from persia_infra.spec.base import Finding, Place, Quantity, Spec, refuse
from persia_infra.spec.errors import nearest

API_VERSION = "kubeflow.org/v2beta1"
ROOT_SSH = "/root/.ssh"

_MOVED = ("cleanPodPolicy", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
_IMPLEMENTATIONS = {"OpenMPI": "OpenMPI", "IntelMPI": "Intel", "Intel": "Intel", "MPICH": "MPICH"}


class SchedulingPolicy(Spec):
    """How the gang scheduler treats the job."""

    min_available: int | None = Field(default=None, ge=0)
    """Number of pods that must be able to start together; all of them by default."""
    queue: str | None = None
    """The Volcano queue of the job."""
    min_resources: dict[str, Quantity] | None = None
    """Resources that must be free before any pod starts."""
    priority_class: str | None = None
    """The PriorityClass of the gang."""
    schedule_timeout_seconds: int | None = Field(default=None, ge=0)
    """Seconds that the gang may wait to be scheduled."""


class RunPolicy(Spec):
    """Time limits, retries, clean-up and scheduling of an MPIJob."""

    clean_pod_policy: Literal["None", "Running", "All"] | None = None
    """Which worker pods are removed when the job ends; Running by default."""
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0)
    """Seconds after the job's end at which the launcher's Job and its log are removed."""
    active_deadline_seconds: int | None = Field(default=None, ge=0)
    """Seconds after which the job is stopped; unlimited when absent."""
    backoff_limit: int | None = Field(default=None, ge=0)
    """How often the launcher is started again before the job counts as failed."""
    suspend: bool | None = None
    """Keeps the job from starting, and removes its pods if it runs."""
    managed_by: Literal["kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue"] | None = None
    """The controller that acts on the job; the MPI operator by default."""
    scheduling_policy: SchedulingPolicy | None = None
    """Gang scheduling through Volcano."""


class MpiReplicaSpec(RoleSpec):
    """The launcher or the workers."""

    restart_policy: Literal["Never", "OnFailure"] | None = None
    """Whether failed containers are restarted in place."""


class MpiReplicaSpecs(Spec):
    """The two roles of an MPIJob."""

    launcher: MpiReplicaSpec = Field(alias="Launcher")
    """The one pod that runs `mpirun`."""
    worker: MpiReplicaSpec | None = Field(default=None, alias="Worker")
    """The pods that `mpirun` starts processes on; the launcher itself trains when absent."""


class MPIJobSpec(RunJob):
    """A launcher that starts processes on workers through MPI."""

    MANIFESTS = (
        ManifestForm(
            "MPIJob",
            API_VERSION,
            ("kubeflow.org/v1alpha2", "kubeflow.org/v1"),
            "is not served by any operator that runs on today's Kubernetes; the job is declared as "
            f"{API_VERSION}, which reaches the workers by SSH, so the image needs an SSH server",
        ),
    )
    COMPONENT = "MpiJob"
    APP = "mpi"
    NAME_LIMIT: ClassVar[int] = 49
    TAKES_POD_GROUP = True

    kind: Literal["MPIJob"] = Field(default="MPIJob", exclude=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Always MPIJob."""
    slots_per_worker: int | None = Field(default=None, ge=1)
    """Processes per worker pod; 1 by default."""
    run_launcher_as_worker: bool | None = None
    """Starts processes in the launcher pod as well."""
    ssh_auth_mount_path: str | None = None
    """The .ssh folder of the user that the image runs as; /root/.ssh by default."""
    launcher_creation_policy: Literal["AtStartup", "WaitForWorkersReady"] | None = None
    """Whether the launcher starts with the workers or waits until they are ready."""
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH"] | None = None
    """The MPI library of the image; OpenMPI by default."""
    mpi_replica_specs: MpiReplicaSpecs
    """The launcher and the workers."""
    run_policy: RunPolicy = RunPolicy.defaults()
    """Time limits, retries, clean-up and gang scheduling of the job."""

    def run_roles(self) -> list[RunRole]:
        """Returns the launcher, then the workers."""
        specs = self.mpi_replica_specs
        place = ("mpiReplicaSpecs",)
        roles = [RunRole("launcher", (*place, "Launcher"), specs.launcher, 1, trains=self._launcher_trains)]
        if specs.worker:
            roles.append(RunRole("worker", (*place, "Worker"), specs.worker, specs.worker.replicas or 0))
        return roles

    @property
    def _launcher_trains(self) -> bool:
        return bool(self.run_launcher_as_worker) or self.mpi_replica_specs.worker is None

    def object_spec(self, templates: Mapping[str, Body]) -> Body:
        """Returns the MPIJob's `spec`, with its pods and its gang."""
        spec = dumped(self)
        for role in self.run_roles():
            spec["mpiReplicaSpecs"][role.place[-1]]["template"] = templates[role.name]
        policy = spec.setdefault("runPolicy", {})
        # With the operator's own default the workers keep running, and cost money, after the job has ended.
        policy.setdefault("cleanPodPolicy", "Running")
        if self.needs_volcano:
            scheduling = policy.setdefault("schedulingPolicy", {})
            # Without a queue the operator keeps reverting the default that Volcano's PodGroup definition fills in.
            scheduling.setdefault("queue", self.queue or DEFAULT_QUEUE)
            scheduling.setdefault("minAvailable", sum(role.replicas for role in self.run_roles()))
        return spec

    def needed_operators(self) -> dict[str, str]:
        """The MPI operator, and Volcano where the job asks for it."""
        reason = "only the MPI operator creates the pods of an MPIJob"
        return {"mpi": reason, **super().needed_operators()}

    def queue_requests(self) -> Iterator[QueueRequest]:
        """The queue of the scheduling policy, and templates that name Volcano."""
        if (policy := self.run_policy.scheduling_policy) and policy.queue:
            yield QueueRequest(("runPolicy", "schedulingPolicy", "queue"), policy.queue)
        yield from super().queue_requests()

    def findings_beside_volcano(self) -> Iterator[Finding]:
        """Scheduler names that have no effect, because the MPI operator then assigns every job to Volcano."""
        for role in self.run_roles() if not self.needs_volcano else ():
            if role.spec.template.spec.scheduler_name not in (None, VOLCANO):
                yield (
                    (*role.place, "template", "spec", "schedulerName"),
                    "has no effect: if the environment has Volcano, the MPI operator makes it schedule all pods; "
                    "remove this",
                )

    def view(self, name: str) -> JobView:
        """Returns where to find the MPIJob, its launcher and its workers."""
        return JobView(
            {"launcher": r"launcher.*", "worker": r"worker-\d+"},
            f"{API_VERSION}/mpijobs",
            {"training.kubeflow.org/job-name": name},
            log_of=f"job/{name}-launcher",
        )

    def settings_findings(self) -> Iterator[Finding]:
        """Findings of every job, and users (set by profiles) that could not read the SSH keys."""
        yield from super().settings_findings()
        yield from self._ssh_findings()

    def _remarks(self) -> Iterator[Finding]:
        """Fields that are overridden, and defaults that differ from the operator's."""
        yield from super()._remarks()
        if self.run_policy.clean_pod_policy is None:
            yield (
                ("runPolicy", "cleanPodPolicy"),
                "defaults to Running here: with the operator's own default, None, the workers would keep their nodes, "
                "which cost money, after the job has ended",
            )
        if self.run_policy.managed_by == "kueue.x-k8s.io/multikueue":
            yield ("runPolicy", "managedBy"), "hands the job over to MultiKueue, so the MPI operator ignores it"
        for role in self.run_roles():
            if role.spec.template.spec.restart_policy is not None:
                yield (
                    (*role.place, "template", "spec", "restartPolicy"),
                    "has no effect: the operator sets it from the role's restartPolicy",
                )
        if self.run_policy.ttl_seconds_after_finished is not None:
            yield (
                ("runPolicy", "ttlSecondsAfterFinished"),
                "removes the launcher's Job together with its log; the MPIJob itself stays",
            )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse([*self._replica_findings(), *self._ssh_findings(), *self._gang_findings()])
        return self

    def _replica_findings(self) -> Iterator[Finding]:
        launcher, worker = self.mpi_replica_specs.launcher, self.mpi_replica_specs.worker
        if launcher.replicas not in (None, 1):
            yield (
                ("mpiReplicaSpecs", "Launcher", "replicas"),
                "must be 1: the operator refuses any other number of launchers, and reports that only in an event",
            )
        if worker and not worker.replicas:
            yield (
                ("mpiReplicaSpecs", "Worker", "replicas"),
                "is missing or 0, which the operator refuses only in an event; write at least 1, or remove Worker",
            )
        if worker is None and self.launcher_creation_policy == "WaitForWorkersReady":
            yield ("launcherCreationPolicy",), "waits for workers, but the job has none; add workers or remove this"

    def _ssh_findings(self) -> Iterator[Finding]:
        if (self.ssh_auth_mount_path or ROOT_SSH).rstrip("/") != ROOT_SSH:
            return
        for role in self.run_roles():
            security = self.pod_template(role, NAME_WHILE_CHECKING).spec.security_context
            if security.run_as_user:
                yield (
                    ("sshAuthMountPath",),
                    f"is {ROOT_SSH}, which user {security.run_as_user} of the {role.name} cannot read, so no worker "
                    "could be reached; write the .ssh folder in that user's home, such as /home/mpiuser/.ssh",
                )
                return

    def _gang_findings(self) -> Iterator[Finding]:
        policy = self.run_policy.scheduling_policy
        place = ("runPolicy", "schedulingPolicy")
        total = sum(role.replicas for role in self.run_roles())
        if policy and policy.min_available is not None and policy.min_available > total:
            yield (
                (*place, "minAvailable"),
                f"{policy.min_available} is more than the job's {total} pods, so it would wait forever; lower it",
            )
        if policy and policy.queue and self.queue and policy.queue != self.queue:
            yield (
                ("queue",),
                "differs from runPolicy.schedulingPolicy.queue, so it is ambiguous which queue applies; remove one",
            )
        yield from scheduler_findings(self)
        yield from network_findings(self)

    # Last, so that it sees what the other validators refuse.
    @model_validator(mode="wrap")
    @classmethod
    def _from_any_dialect(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401
        return cls._read(_translated(data), handler) if isinstance(data, Mapping) else handler(data)


def _translated(data: Mapping[str, Any]) -> Translation:
    """Moves the keys of the older API to their current places, with a note for each."""
    new, notes, origins = dict(data), [], {}
    for key in _MOVED:
        if key not in new:
            continue
        policy = new.get("runPolicy")
        if policy is None or (isinstance(policy, Mapping) and key not in policy):
            new["runPolicy"] = {**(policy or {}), key: new.pop(key)}
            origins["runPolicy", key] = (key,)
            notes.append(((key,), f"was read as runPolicy.{key}, its place in {API_VERSION}"))
    if "mpiDistribution" in new and "mpiImplementation" not in new:
        given = new.pop("mpiDistribution")
        new["mpiImplementation"] = _IMPLEMENTATIONS.get(given, given) if isinstance(given, str) else given
        origins["mpiImplementation",] = ("mpiDistribution",)
        notes.append((("mpiDistribution",), f"was read as mpiImplementation, its name in {API_VERSION}"))
    if "mainContainer" in new:
        wanted = new.pop("mainContainer")
        names = _container_names(new.get("mpiReplicaSpecs"))
        if names and wanted not in names:
            missing = "no container has this name, so it is unclear which one trains"
            refuse([(("mainContainer",), f"{missing}; {nearest(str(wanted), names)}")])
        new["mpiReplicaSpecs"] = _main_first(new.get("mpiReplicaSpecs"), wanted, origins)
        notes.append(
            (
                ("mainContainer",),
                f"has no field in {API_VERSION}, where the first container is the main one; it was moved there",
            )
        )
    return Translation(new, notes, origins)


def _container_names(specs: Any) -> list[str]:  # noqa: ANN401
    names: list[str] = []
    for spec in specs.values() if isinstance(specs, Mapping) else ():
        with suppress(TypeError, KeyError):
            containers = spec["template"]["spec"]["containers"]
            names += [container["name"] for container in containers if isinstance(container["name"], str)]
    return list(dict.fromkeys(names))


def _main_first(specs: Any, wanted: Any, origins: dict[Place, Place]) -> Any:  # noqa: ANN401
    if not isinstance(specs, Mapping):
        return specs
    reordered = dict(specs)
    for role, spec in specs.items():
        try:
            containers = spec["template"]["spec"]["containers"]
            main = next(index for index, container in enumerate(containers) if container["name"] == wanted)
        except (TypeError, KeyError, StopIteration):
            continue
        order = sorted(range(len(containers)), key=lambda index: index != main)
        at = ("mpiReplicaSpecs", role, "template", "spec", "containers")
        origins |= {(*at, index): (*at, before) for index, before in enumerate(order)}
        pod = {**spec["template"]["spec"], "containers": [containers[index] for index in order]}
        reordered[role] = {**spec, "template": {**spec["template"], "spec": pod}}
    return reordered
