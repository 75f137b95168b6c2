"""Distributed training on shared folders: an MPIJob on several nodes, the same in one pod on one.

Dataset, model and output folders, user and image are said once; which objects that takes is decided here.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, model_validator

from persia_infra.gke.pools import Placement
from persia_infra.jobs.mpi import MPIJobSpec
from persia_infra.jobs.run_job import RunJob, RunRole, with_shared_memory
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.jobs.settings.run_volumes import GcsBucket, NfsShare
from persia_infra.jobs.single_node import SingleNodeJobSpec
from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.spec.base import DnsLabel, Finding, Image, Place, PodCount, Spec, matching, refuse
from persia_infra.spec.errors import findings_from

_Path = Annotated[str, matching(r"/[^:]+", "no absolute path; start it with '/' and leave out ':'")]
_FOLDER_PLACES: tuple[Place, ...] = (("dataset", "mountPath"), ("modelDir",), ("outputDir",))
"""Where the folders' variables are described, in their order."""
_LAUNCHER = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}}


class SharedFolder(Spec):
    """A folder that every node sees: an NFS share, a claim of the namespace, or a bucket."""

    nfs: NfsShare | None = None
    claim: DnsLabel | None = None
    gcs_fuse: GcsBucket | None = None
    mount_path: _Path

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(source is not None for source in (self.nfs, self.claim, self.gcs_fuse)) != 1:
            raise ValueError("needs exactly one of nfs, claim and gcsFuse, or there would be nothing to mount")
        return self

    def volume(self, name: str, *, read_only: bool) -> dict[str, Any]:
        """As run settings have it."""
        if self.nfs:
            source: dict[str, Any] = {"volumeType": "nfs", "spec": self.nfs.model_dump(exclude_unset=True)}
        elif self.gcs_fuse:
            source = {"volumeType": "gcs_fuse", "spec": self.gcs_fuse.model_dump(exclude_unset=True)}
        else:
            source = {"volumeType": "persistent_volume_claim", "spec": {"claimName": self.claim}}
        return {"name": name, "mountPath": self.mount_path, "readOnly": read_only, **source}


class TrainingJobSpec(RunJob):
    """The same training on one node or on many."""

    NAME_LIMIT: ClassVar[int] = MPIJobSpec.NAME_LIMIT
    RESOURCES_AT: ClassVar[Place] = ("settings", "resources")
    DATASET: ClassVar[str] = "dataset"
    WORKSPACE: ClassVar[str] = "workspace"

    kind: Literal["TrainingJob"] = "TrainingJob"  # pyright: ignore[reportIncompatibleVariableOverride]
    image: Image
    registry: str = "docker.io"
    command: list[str] = Field(default=[])
    """What trains; with several nodes it is run by `mpirun` on all of them."""
    nodes: PodCount = Field(default=1, ge=1)
    processes_per_node: int = Field(default=1, ge=1)
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH"] = "OpenMPI"
    dataset: SharedFolder
    """Read-only; its path is DATASET_DIR."""
    workspace: SharedFolder
    """Holds the model package and receives the results."""
    model_dir: _Path | None = None
    """MODEL_DIR; the workspace itself when absent."""
    output_dir: _Path | None = None
    """OUTPUT_DIR; `output` in the model's folder when absent."""
    ssh_auth_mount_path: str = "/home/mpiuser/.ssh"
    """The .ssh folder of the user that the image runs as."""
    backoff_limit: int | None = Field(default=None, ge=0)
    active_deadline_seconds: int | None = Field(default=None, ge=1)
    suspend: bool | None = None
    pool: DnsLabel | None = None

    @cached_property
    def runs_as(self) -> MPIJobSpec | SingleNodeJobSpec:
        """The job that it becomes."""
        made = self._single() if self.nodes == 1 else self._distributed()
        made.use_profiles(self._profiles)
        return made

    def use_profiles(self, profiles: Mapping[str, RunSettings]) -> None:
        """Names of profiles mean these from now on."""
        super().use_profiles(profiles)
        self.runs_as.use_profiles(profiles)

    def run_roles(self) -> list[RunRole]:
        """Those of the job that it becomes; their places are the whole job, where all of it is said."""
        return [RunRole(role.name, (), role.spec, role.replicas, role.trains) for role in self.runs_as.run_roles()]

    def object_spec(self, job: str, placements: Mapping[str, Placement]) -> dict[str, Any]:
        """The `spec` of what it becomes."""
        return self.runs_as.object_spec(job, placements)

    def _settings_of(self, role: RunRole) -> RunSettings:
        return self.runs_as._settings_of(role)

    def _remarks(self) -> Iterator[Finding]:
        """What profiles override, and what is decided for the reader."""
        said = {(self._own_place(place), message): None for place, message in self.runs_as.notes()}
        yield from ((place, message) for place, message in said if place is not None)
        if self.nodes > 1 and "ssh_auth_mount_path" not in self.model_fields_set:
            yield (
                ("sshAuthMountPath",),
                f"is {self.ssh_auth_mount_path} unless it is given; it must be in the home of the image's user",
            )

    def _own_place(self, place: Place) -> Place | None:
        """Where a part of the job that it becomes is described here; None for what is nobody's but this library's."""
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
        made = RunSettings.model_validate({"volumes": volumes})
        return own.model_copy(update={"volumes": [*made.volumes, *own.volumes]})

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
        # The workers wait as SSH servers, which is what the operator starts in a container without a command.
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
            refuse((self._own_place(place) or (), said) for place, said in findings_from(error, model, {}))
            raise
        return self

    def _findings(self) -> Iterator[Finding]:
        names = [volume.name for volume in self.settings.volumes]
        for name in (self.DATASET, self.WORKSPACE):
            if name in names:
                yield (
                    ("settings", "volumes", names.index(name), "name"),
                    f"{name!r} is the name of a volume that every training has; choose another",
                )
        root = PurePosixPath(self.workspace.mount_path)
        for key, given, path in (
            ("modelDir", self.model_dir, self._folders["MODEL_DIR"]),
            ("outputDir", self.output_dir, self._folders["OUTPUT_DIR"]),
        ):
            if given is not None and not PurePosixPath(path).is_relative_to(root):
                yield (
                    (key,),
                    f"is outside the workspace ({root}), so it would be lost with its pod; put it below that path",
                )
        if PurePosixPath(self.workspace.mount_path) == PurePosixPath(self.dataset.mount_path):
            yield ("workspace", "mountPath"), "is the dataset's too, and one would hide the other; choose another"
        if self.nodes > 1 and not self.command:
            yield ("command",), "is missing, so the launcher would have nothing to run on the nodes; write what trains"
        if "/" in self.registry or not self.registry:
            yield ("registry",), "must be the registry's host alone, such as docker.io; the rest belongs to image"
