"""An MPIJob in the words of its CRD (kubeflow.org/v2beta1), checked for what its operator refuses later.

The older API (v1alpha2, and v1 of the same shape) is translated. Out of scope: v1alpha1, which described a job
by numbers of GPUs rather than by roles, and the operator itself.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from persia_infra.gke.pools import Placement
from persia_infra.jobs.job import Translation
from persia_infra.jobs.run_job import RoleSpec, RunJob, RunRole, dumped, network_findings, scheduler_findings
from persia_infra.spec.base import Finding, Place, Quantity, Spec, refuse
from persia_infra.spec.errors import nearest

API_VERSION = "kubeflow.org/v2beta1"
OLD_API_VERSIONS = ("kubeflow.org/v1alpha2", "kubeflow.org/v1")
ROOT_SSH = "/root/.ssh"
DEFAULT_QUEUE = "default"

_MOVED = ("cleanPodPolicy", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
_IMPLEMENTATIONS = {"OpenMPI": "OpenMPI", "IntelMPI": "Intel", "Intel": "Intel", "MPICH": "MPICH"}


class SchedulingPolicy(Spec):
    """How a gang scheduler treats the job."""

    min_available: int | None = Field(default=None, ge=0)
    queue: str | None = None
    min_resources: dict[str, Quantity] | None = None
    priority_class: str | None = None
    schedule_timeout_seconds: int | None = Field(default=None, ge=0)


class RunPolicy(Spec):
    """What happens to the job over time."""

    clean_pod_policy: Literal["None", "Running", "All"] | None = None
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0)
    active_deadline_seconds: int | None = Field(default=None, ge=0)
    backoff_limit: int | None = Field(default=None, ge=0)
    suspend: bool | None = None
    managed_by: Literal["kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue"] | None = None
    scheduling_policy: SchedulingPolicy | None = None


class MpiReplicaSpec(RoleSpec):
    """The launcher or the workers."""

    restart_policy: Literal["Never", "OnFailure"] | None = None


class MpiReplicaSpecs(Spec):
    """The two roles."""

    launcher: MpiReplicaSpec = Field(alias="Launcher")
    worker: MpiReplicaSpec | None = Field(default=None, alias="Worker")


class MPIJobSpec(RunJob):
    """A launcher that starts processes on workers through MPI."""

    NAME_LIMIT: ClassVar[int] = 49

    kind: Literal["MPIJob"] = Field(default="MPIJob", exclude=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    slots_per_worker: int | None = Field(default=None, ge=1)
    run_launcher_as_worker: bool | None = None
    ssh_auth_mount_path: str | None = None
    launcher_creation_policy: Literal["AtStartup", "WaitForWorkersReady"] | None = None
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH"] | None = None
    mpi_replica_specs: MpiReplicaSpecs
    run_policy: RunPolicy = RunPolicy()

    def run_roles(self) -> list[RunRole]:
        """The launcher, then the workers."""
        specs = self.mpi_replica_specs
        place = ("mpiReplicaSpecs",)
        found = [RunRole("launcher", (*place, "Launcher"), specs.launcher, 1, trains=self._launcher_trains)]
        if specs.worker:
            found.append(RunRole("worker", (*place, "Worker"), specs.worker, specs.worker.replicas or 0))
        return found

    @property
    def _launcher_trains(self) -> bool:
        return bool(self.run_launcher_as_worker) or self.mpi_replica_specs.worker is None

    def object_spec(self, job: str, placements: Mapping[str, Placement]) -> dict[str, Any]:
        """The MPIJob's `spec`, with settings, pools and gang in it."""
        spec = dumped(self)
        for role in self.run_roles():
            template = self.template_of(role, job, placements.get(role.name))
            spec["mpiReplicaSpecs"][role.place[-1]]["template"] = template.as_kubernetes()
        policy = spec.setdefault("runPolicy", {})
        # The operator would leave the workers running, and their GPUs rented, when the job is done.
        policy.setdefault("cleanPodPolicy", "Running")
        if self.needs_volcano:
            scheduling = policy.setdefault("schedulingPolicy", {})
            # Without one the operator takes back what Volcano's definition of a PodGroup fills in.
            scheduling.setdefault("queue", self.queue or DEFAULT_QUEUE)
            scheduling.setdefault("minAvailable", sum(role.replicas for role in self.run_roles()))
        return spec

    def settings_findings(self) -> Iterator[Finding]:
        """As in every job; and users of profiles that could not read the SSH keys."""
        yield from super().settings_findings()
        yield from self._ssh_findings()

    def _remarks(self) -> Iterator[Finding]:
        """What is overridden, or decided for the reader."""
        yield from super()._remarks()
        if self.run_policy.clean_pod_policy is None:
            yield (
                ("runPolicy", "cleanPodPolicy"),
                "is Running unless it is given: the operator's own None leaves the workers on their nodes, and those "
                "rented, when the job is done",
            )
        if self.run_policy.managed_by == "kueue.x-k8s.io/multikueue":
            yield ("runPolicy", "managedBy"), "leaves the job to MultiKueue: the MPI operator does not touch it"
        for role in self.run_roles():
            if role.spec.template.spec.restart_policy is not None:
                yield (
                    (*role.place, "template", "spec", "restartPolicy"),
                    "has no effect: the operator sets it from the role's restartPolicy",
                )
        if self.run_policy.ttl_seconds_after_finished is not None:
            yield (
                ("runPolicy", "ttlSecondsAfterFinished"),
                "removes the launcher's Job, and with it its log; the MPIJob itself stays",
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
                "must be 1: the operator refuses a job with any other number of launchers, in an event only",
            )
        if worker and not worker.replicas:
            yield (
                ("mpiReplicaSpecs", "Worker", "replicas"),
                "is missing or 0, and the operator refuses both, in an event only; write at least 1, or leave it out",
            )
        if worker is None and self.launcher_creation_policy == "WaitForWorkersReady":
            yield ("launcherCreationPolicy",), "waits for workers, and the job has none; add them or leave it out"

    def _ssh_findings(self) -> Iterator[Finding]:
        if (self.ssh_auth_mount_path or ROOT_SSH).rstrip("/") != ROOT_SSH:
            return
        for role in self.run_roles():
            security = self.template_of(role, "job").spec.security_context
            if security.run_as_user:
                yield (
                    ("sshAuthMountPath",),
                    f"is {ROOT_SSH}, which the user {security.run_as_user} of the {role.name} can't read, so no worker "
                    "would be reached; write the .ssh folder in that user's home, such as /home/mpiuser/.ssh",
                )
                return

    def _gang_findings(self) -> Iterator[Finding]:
        policy = self.run_policy.scheduling_policy
        place = ("runPolicy", "schedulingPolicy")
        total = sum(role.replicas for role in self.run_roles())
        if policy and policy.min_available is not None and policy.min_available > total:
            yield (
                (*place, "minAvailable"),
                f"{policy.min_available} is more than the job's {total} pods, so it would wait for ever; lower it",
            )
        if policy and policy.queue and self.queue and policy.queue != self.queue:
            yield ("queue",), "is not the queue of runPolicy.schedulingPolicy; keep one"
        yield from scheduler_findings(self)
        yield from network_findings(self)

    # Last, so that it sees what the other validators refuse.
    @model_validator(mode="wrap")
    @classmethod
    def _from_any_dialect(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401
        return cls._read(_translated(data), handler) if isinstance(data, Mapping) else handler(data)


def _translated(data: Mapping[str, Any]) -> Translation:
    """The older API's keys where this one has them; each move is noted."""
    new, said, origins = dict(data), [], {}
    for key in _MOVED:
        if key not in new:
            continue
        policy = new.get("runPolicy")
        if policy is None or (isinstance(policy, Mapping) and key not in policy):
            new["runPolicy"] = {**(policy or {}), key: new.pop(key)}
            origins["runPolicy", key] = (key,)
            said.append(((key,), f"is runPolicy.{key} in {API_VERSION}, and was moved there"))
    if "mpiDistribution" in new and "mpiImplementation" not in new:
        given = new.pop("mpiDistribution")
        new["mpiImplementation"] = _IMPLEMENTATIONS.get(given, given) if isinstance(given, str) else given
        origins["mpiImplementation",] = ("mpiDistribution",)
        said.append((("mpiDistribution",), f"is mpiImplementation in {API_VERSION}, and was renamed"))
    if "mainContainer" in new:
        wanted = new.pop("mainContainer")
        names = _container_names(new.get("mpiReplicaSpecs"))
        if names and wanted not in names:
            missing = "no container has this name, so nobody can tell which one trains"
            refuse([(("mainContainer",), f"{missing}; {nearest(str(wanted), names)}")])
        new["mpiReplicaSpecs"] = _main_first(new.get("mpiReplicaSpecs"), wanted, origins)
        said.append((("mainContainer",), f"is always the first container in {API_VERSION}, and was put there"))
    return Translation(new, said, origins)


def _container_names(specs: Any) -> list[str]:  # noqa: ANN401
    names: list[str] = []
    for spec in specs.values() if isinstance(specs, Mapping) else ():
        with suppress(TypeError, KeyError):
            names += [one["name"] for one in spec["template"]["spec"]["containers"] if isinstance(one["name"], str)]
    return list(dict.fromkeys(names))


def _main_first(specs: Any, wanted: Any, origins: dict[Place, Place]) -> Any:  # noqa: ANN401
    if not isinstance(specs, Mapping):
        return specs
    found = dict(specs)
    for role, spec in specs.items():
        try:
            containers = spec["template"]["spec"]["containers"]
            main = next(index for index, one in enumerate(containers) if one["name"] == wanted)
        except (TypeError, KeyError, StopIteration):
            continue
        order = sorted(range(len(containers)), key=lambda index: index != main)
        at = ("mpiReplicaSpecs", role, "template", "spec", "containers")
        origins |= {(*at, index): (*at, before) for index, before in enumerate(order)}
        pod = {**spec["template"]["spec"], "containers": [containers[index] for index in order]}
        found[role] = {**spec, "template": {**spec["template"], "spec": pod}}
    return found
