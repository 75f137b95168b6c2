"""Training on shared folders: an MPIJob on several nodes, or the same in a single pod on one node.

Dataset, model and output folders, user and image are described once; the objects are derived here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, model_validator

from persia_infra.jobs.job import NAME_WHILE_CHECKING, ManifestForm, Placements, QueueRequest, Workload
from persia_infra.jobs.job_status import JobView
from persia_infra.jobs.mpi import MPIJobSpec
from persia_infra.jobs.run_job import RunJob, RunRole, with_shared_memory
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.jobs.settings.run_volumes import GcsBucket, NfsShare
from persia_infra.jobs.single_node import SingleNodeJobSpec
from persia_infra.kube.objects import ObjectGroup
from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.spec.base import DnsLabel, Finding, Image, Place, PodCount, Spec, matching, refuse
from persia_infra.spec.errors import findings_from

_Path = Annotated[str, matching(r"/[^:]+", "absolute path; start it with '/' and leave out ':'")]
_FOLDER_PLACES: tuple[Place, ...] = (("dataset", "mountPath"), ("modelDir",), ("outputDir",))
"""The fields that the folders' variables come from, in the order of the variables."""
_LAUNCHER = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}}


class SharedFolder(Spec):
    """A folder that every node can mount: an NFS share, a PersistentVolumeClaim, or a bucket."""

    nfs: NfsShare | None = None
    """An NFS share."""
    claim: DnsLabel | None = None
    """The name of a PersistentVolumeClaim in the job's namespace."""
    gcs_fuse: GcsBucket | None = None
    """A Cloud Storage bucket."""
    mount_path: _Path
    """Absolute path at which the folder is mounted in the containers."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(source is not None for source in (self.nfs, self.claim, self.gcs_fuse)) != 1:
            raise ValueError("needs exactly one of nfs, claim and gcsFuse as the source to mount")
        return self

    def volume(self, name: str, *, read_only: bool) -> dict[str, Any]:
        """Returns the folder as a volume of run settings."""
        if self.nfs:
            source: dict[str, Any] = {"volumeType": "nfs", "spec": self.nfs.model_dump(exclude_unset=True)}
        elif self.gcs_fuse:
            source = {"volumeType": "gcs_fuse", "spec": self.gcs_fuse.model_dump(exclude_unset=True)}
        else:
            source = {"volumeType": "persistent_volume_claim", "spec": {"claimName": self.claim}}
        return {"name": name, "mountPath": self.mount_path, "readOnly": read_only, **source}


class TrainingJobSpec(RunJob):
    """A training that runs on one node or on many, from the same description."""

    MANIFESTS = (ManifestForm("TrainingJob", "persia-infra/v1"),)
    COMPONENT = "TrainingJob"
    NAME_LIMIT: ClassVar[int] = MPIJobSpec.NAME_LIMIT
    RESOURCES_AT: ClassVar[Place] = ("settings", "resources")
    DATASET: ClassVar[str] = "dataset"
    WORKSPACE: ClassVar[str] = "workspace"

    kind: Literal["TrainingJob"] = "TrainingJob"  # pyright: ignore[reportIncompatibleVariableOverride]
    """Always TrainingJob."""
    image: Image
    """The container image, without the host of its registry."""
    registry: str = "docker.io"
    """Host of the image's registry."""
    command: list[str] = Field(default=[])
    """The command that trains; with several nodes `mpirun` starts it on all of them."""
    nodes: PodCount = Field(default=1, ge=1)
    """Number of pods that train, one per node; with 1 the job needs no MPI operator."""
    processes_per_node: int = Field(default=1, ge=1)
    """Training processes per pod."""
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH"] = "OpenMPI"
    """The MPI library of the image, for several nodes."""
    dataset: SharedFolder
    """The folder with the training data, mounted read-only, whose path is in DATASET_DIR."""
    workspace: SharedFolder
    """The folder that holds the model and receives the results."""
    model_dir: _Path | None = None
    """The model's folder, passed as MODEL_DIR; the workspace itself when absent."""
    output_dir: _Path | None = None
    """The folder for results, passed as OUTPUT_DIR; `output` in the model's folder when absent."""
    ssh_auth_mount_path: str = "/home/mpiuser/.ssh"
    """The .ssh folder of the user that the image runs as."""
    backoff_limit: int | None = Field(default=None, ge=0)
    """How often the training is started again before the job counts as failed."""
    active_deadline_seconds: int | None = Field(default=None, ge=1)
    """Seconds after which the job is stopped; unlimited when absent."""
    suspend: bool | None = None
    """Keeps the job from starting, and removes its pods if it runs."""
    pool: DnsLabel | None = None
    """The node pool of the pods that train; needed when more than one pool could take them."""

    @cached_property
    def runs_as(self) -> MPIJobSpec | SingleNodeJobSpec:
        """The MPIJob or Job that the training is deployed as."""
        job = self._single() if self.nodes == 1 else self._distributed()
        job.use_profiles(self._profiles)
        return job

    def use_profiles(self, profiles: Mapping[str, RunSettings]) -> None:
        """Resolves profile names against the given profiles."""
        super().use_profiles(profiles)
        self.runs_as.use_profiles(profiles)

    def run_roles(self) -> list[RunRole]:
        """Returns the roles of the underlying job; their place is the whole description, which has no roles."""
        return [RunRole(role.name, (), role.spec, role.replicas, role.trains) for role in self.runs_as.run_roles()]

    def workloads(self, name: str = NAME_WHILE_CHECKING, placements: Placements | None = None) -> list[Workload]:
        """Returns the pods of the underlying job; their place is the whole description, which has no roles."""
        loads = self.runs_as.workloads(name, placements)
        return [replace(load, place=(), resources_at=self.RESOURCES_AT) for load in loads]

    def objects(self, name: str, namespace: str, placements: Placements) -> ObjectGroup:
        """Returns the objects of the underlying job."""
        return ObjectGroup(self.COMPONENT, (self.runs_as.objects(name, namespace, placements),))

    def needed_operators(self) -> dict[str, str]:
        """The operators that the underlying job needs."""
        return self.runs_as.needed_operators()

    def queue_requests(self) -> Iterator[QueueRequest]:
        """Returns nothing: only `queue` and `gang` ask for Volcano."""
        return iter(())

    def view(self, name: str) -> JobView:
        """Returns where to find the underlying job."""
        return self.runs_as.view(name)

    @property
    def runs_as_kind(self) -> str:
        """The kind of the underlying job: MPIJob on several nodes, Job on one."""
        return self.runs_as.kind

    def _settings_of(self, role: RunRole) -> RunSettings:
        return self.runs_as._settings_of(role)

    def _remarks(self) -> Iterator[Finding]:
        """Fields that profiles override, and defaults that depend on the image."""
        notes = dict.fromkeys((self._own_place(place), message) for place, message in self.runs_as.notes())
        yield from ((place, message) for place, message in notes if place is not None)
        if self.nodes > 1 and "ssh_auth_mount_path" not in self.model_fields_set:
            yield (
                ("sshAuthMountPath",),
                f"defaults to {self.ssh_auth_mount_path}; it must be in the home folder of the image's user",
            )

    def _own_place(self, place: Place) -> Place | None:
        """The field behind a place of the underlying job; None for what this library adds by itself."""
        match place:
            case (*_, "spec", "containers", 0, "env", int(index)):
                return _FOLDER_PLACES[index]
            case (*_, "spec", "containers", 0, str(key)):
                return (key,)
            case ("settings", "volumes", 0, *_):
                return ("dataset",)
            case ("settings", "volumes", 1, *_):
                return ("workspace",)
            case ("settings", "volumes", int(index), *rest):
                return ("settings", "volumes", index - 2, *rest)
            case ("settings", "sharedMemory") if self.settings.shared_memory is None:
                return None
            case ("mpiReplicaSpecs", *_):
                return None
        return place

    @property
    def _folders(self) -> dict[str, str]:
        model = self.model_dir or self.workspace.mount_path
        output = self.output_dir or f"{model.rstrip('/')}/output"
        return {"DATASET_DIR": self.dataset.mount_path, "MODEL_DIR": model, "OUTPUT_DIR": output}

    def _template(self, command: list[str]) -> PodTemplate:
        container: dict[str, Any] = {
            "name": "training",
            "image": f"{self.registry}/{self.image}",
            "env": [{"name": name, "value": value} for name, value in self._folders.items()],
        }
        if command:
            container["command"] = command
        return PodTemplate.model_validate({"spec": {"automountServiceAccountToken": False, "containers": [container]}})

    def _all_settings(self) -> RunSettings:
        own = self.settings
        volumes = [
            self.dataset.volume(self.DATASET, read_only=True),
            self.workspace.volume(self.WORKSPACE, read_only=False),
        ]
        folders = RunSettings.model_validate({"volumes": volumes})
        return own.model_copy(update={"volumes": [*folders.volumes, *own.volumes]})

    def _shared_fields(self) -> dict[str, Any]:
        return {"settings": self._all_settings(), "profile": self.profile, "queue": self.queue, "gang": self.gang}

    def _single(self) -> SingleNodeJobSpec:
        given = {
            "backoff_limit": self.backoff_limit,
            "active_deadline_seconds": self.active_deadline_seconds,
            "suspend": self.suspend,
        }
        return SingleNodeJobSpec(
            template=self._template(self.command),
            pool=self.pool,
            **{key: value for key, value in given.items() if value is not None},
            **self._shared_fields(),
        )

    def _distributed(self) -> MPIJobSpec:
        settings = self._all_settings()
        worker = self._template([])
        settings = with_shared_memory(settings, worker)
        policy = {
            "backoffLimit": self.backoff_limit,
            "activeDeadlineSeconds": self.active_deadline_seconds,
            "suspend": self.suspend,
            "cleanPodPolicy": "Running",
        }
        mpirun = ["mpirun", "-n", str(self.nodes * self.processes_per_node), *self.command] if self.command else []
        # The workers have no command: the operator then starts the SSH server that mpirun connects to.
        return MPIJobSpec.model_validate(
            {
                "slotsPerWorker": self.processes_per_node,
                "mpiImplementation": self.mpi_implementation,
                "sshAuthMountPath": self.ssh_auth_mount_path,
                "launcherCreationPolicy": "WaitForWorkersReady",
                "runPolicy": {key: value for key, value in policy.items() if value is not None},
                "mpiReplicaSpecs": {
                    "Launcher": {"replicas": 1, "template": self._template(mpirun), "settings": _LAUNCHER},
                    "Worker": {"replicas": self.nodes, "template": worker, "pool": self.pool},
                },
                **self._shared_fields(),
                "settings": settings,
            }
        )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        try:
            _ = self.runs_as
        except ValidationError as error:
            model = SingleNodeJobSpec if self.nodes == 1 else MPIJobSpec
            refuse((self._own_place(place) or (), message) for place, message in findings_from(error, model, {}))
            raise
        return self

    def _findings(self) -> Iterator[Finding]:
        names = [volume.name for volume in self.settings.volumes]
        for name in (self.DATASET, self.WORKSPACE):
            if name in names:
                yield (
                    ("settings", "volumes", names.index(name), "name"),
                    f"{name!r} is the name of a volume that every TrainingJob has; choose another name",
                )
        root = PurePosixPath(self.workspace.mount_path)
        for key, given, path in (
            ("modelDir", self.model_dir, self._folders["MODEL_DIR"]),
            ("outputDir", self.output_dir, self._folders["OUTPUT_DIR"]),
        ):
            if given is not None and not PurePosixPath(path).is_relative_to(root):
                yield (
                    (key,),
                    f"is outside the workspace ({root}), so its content would be lost with the pod; put it below that "
                    "path",
                )
        if PurePosixPath(self.workspace.mount_path) == PurePosixPath(self.dataset.mount_path):
            yield (
                ("workspace", "mountPath"),
                "is also the path of the dataset, so one would hide the other; choose another path",
            )
        if self.nodes > 1 and not self.command:
            yield (
                ("command",),
                "is missing, so the launcher would have nothing to run on the nodes; add the training command",
            )
        if "/" in self.registry or not self.registry:
            yield ("registry",), "must be only the registry's host, such as docker.io; move the rest to image"
