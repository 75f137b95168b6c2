"""What every kind of job describes about itself.

A kind is one class that derives from `Job`. It states its manifests (API group, versions, older dialects), the
operators it needs, its pods, its objects and how its status is read. Reading manifests, the checks of an
environment, rendering, deploying and `status` call these methods and never refer to a kind by name.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, ValidationError

from persia_infra.jobs.job_status import JobView
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.kube.objects import ObjectGroup
from persia_infra.kube.placement import Placement
from persia_infra.kube.pod_security import Need, security_need
from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.kube.requests import Amounts, gpus, template_requests
from persia_infra.spec.base import DnsLabel, Finding, Place, Spec, refuse
from persia_infra.spec.errors import findings_from, traced

Placements = Mapping[str, Placement]
"""The pool of each role; a role without an entry may run on any node."""

NAME_WHILE_CHECKING = "job"
"""Stands in for the job's name where pods are only checked."""


@dataclass(frozen=True)
class Workload:
    """The pods of one role of a job."""

    role: str
    place: Place
    """Keys that lead from the job to this role's description."""
    replicas: int
    template: PodTemplate
    """The final pod template, exactly as it is deployed."""
    pool: str | None = None
    anywhere: bool = False
    """Whether the pods may run on any node when no pool is named, because they are small."""
    resources_at: Place = ("resources",)
    """Keys that lead from the role to where its resources are described."""

    @cached_property
    def requests(self) -> Amounts:
        """What the scheduler sets aside for one pod."""
        return template_requests(self.template)

    @property
    def gpus(self) -> int:
        """The number of GPUs of each pod."""
        return gpus(self.requests)


@dataclass(frozen=True)
class Translation:
    """A job description in the current format, with a record of what was translated."""

    data: dict[str, Any]
    notes: list[Finding]
    """What was translated, each note at its place in the original."""
    origins: dict[Place, Place]
    """The place of a value in the original, by its place after the translation."""


@dataclass(frozen=True)
class ManifestForm:
    """A kind of manifest that is read as a job."""

    kind: str
    api_version: str
    old_api_versions: tuple[str, ...] = ()
    """Older versions, which are translated to `api_version`."""
    old_version_note: str = ""
    """What changes for a manifest of an old version; completes "<version> ..."."""
    keeps: tuple[str, ...] = ()
    """Keys of the manifest's metadata that the declared object keeps."""


@dataclass(frozen=True)
class QueueRequest:
    """A place where the fields of a job's own API ask for Volcano."""

    place: Place
    queue: str | None = None
    """The queue, if the place names one."""


class Job(Spec):
    """A training job of any kind."""

    MANIFESTS: ClassVar[tuple[ManifestForm, ...]] = ()
    """The manifests that are read as this kind, the current form first."""
    COMPONENT: ClassVar[str]
    """The type of the Pulumi component that declares the job."""
    NAME_LIMIT: ClassVar[int] = 35
    """The longest allowed name: pod names append a role and a number to it, and Kubernetes limits their length."""
    TAKES_POD_GROUP: ClassVar[bool] = False
    """Whether a hand-written PodGroup with the job's name makes the job a gang."""

    kind: str
    """The kind of job: PersiaJob, MPIJob, PaddleJob, Job or TrainingJob."""
    namespace: DnsLabel | None = Field(default=None, exclude=True)
    """The namespace of the job's objects; the environment's only namespace when absent."""
    queue: DnsLabel | None = Field(default=None, exclude=True)
    """The Volcano queue in which the job waits until all of its pods can start."""
    gang: bool = Field(default=False, exclude=True)
    """Starts all pods at once or none, in the queue `default` unless `queue` names another."""

    _translated: list[Finding] = PrivateAttr(default=[])
    _origins: dict[Place, Place] = PrivateAttr(default={})

    # What a kind has to provide.

    def workloads(self, name: str = NAME_WHILE_CHECKING, placements: Placements | None = None) -> list[Workload]:
        """Returns the pods of every role, in a fixed order.

        Args:
            name: The job's name.
            placements: The pool of each role.
        """
        raise NotImplementedError

    def objects(self, name: str, namespace: str, placements: Placements) -> ObjectGroup:
        """Returns the job's Kubernetes objects.

        Args:
            name: The job's name.
            namespace: The namespace of its objects.
            placements: The pool of each role.
        """
        raise NotImplementedError

    def view(self, name: str) -> JobView:
        """Returns where to find the job and its pods in a cluster, and how to read its own object."""
        raise NotImplementedError

    # What a kind may override.

    def needed_operators(self) -> dict[str, str]:
        """The operators that the job needs, each with the reason."""
        if self.needs_volcano or any(True for _ in self.queue_requests()):
            return {"volcano": "its pods wait for Volcano to schedule them"}
        return {}

    def queue_requests(self) -> Iterator[QueueRequest]:
        """Places where the kind's own fields, rather than `queue` and `gang`, ask for Volcano."""
        return iter(())

    def findings_beside_volcano(self) -> Iterator[Finding]:
        """Fields that have no effect when the environment has Volcano."""
        return iter(())

    def use_profiles(self, profiles: Mapping[str, RunSettings]) -> None:
        """Resolves profile names against the given profiles; a kind without profiles ignores them."""

    def unknown_profiles(self) -> Iterator[Finding]:
        """Profile names that the environment does not define."""
        return iter(())

    def settings_findings(self) -> Iterator[Finding]:
        """What is wrong with the settings of the roles taken together."""
        return iter(())

    def security_need(self) -> Need | None:
        """The Pod Security level that the pods need, and why; None if they fit the strictest one."""
        return security_need([load.template.spec for load in self.workloads()])

    def with_manifest_metadata(self, labels: dict[str, str], annotations: dict[str, str]) -> Self:  # noqa: ARG002
        """The job with the manifest metadata that its kind keeps."""
        return self

    @classmethod
    def findings_between(cls, jobs: "Mapping[str, tuple[str, Any]]") -> Iterator[Finding]:  # noqa: ARG003
        """Conflicts between several jobs of this kind, given by name with the namespace of each."""
        return iter(())

    def _remarks(self) -> Iterator[Finding]:
        """Fields that have no effect, or an effect that a reader may not expect."""
        return iter(())

    # What is the same for every kind.

    @classmethod
    def _read(cls, translation: Translation, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Validates a translated description; errors are reported at their places in the original."""
        try:
            job = handler(translation.data)
        except ValidationError as error:
            if translation.origins:
                findings = findings_from(error, cls, translation.data)
                refuse((traced(place, translation.origins), message) for place, message in findings)
            raise
        job._translated, job._origins = translation.notes, translation.origins
        return job

    def as_written(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Maps the places of findings back to the description as it was written, whatever its dialect."""
        yield from ((traced(place, self._origins), message) for place, message in findings)

    @property
    def needs_volcano(self) -> bool:
        """Whether `queue` or `gang` is set, so that Volcano schedules the pods."""
        return self.gang or self.queue is not None

    @property
    def runs_as_kind(self) -> str:
        """The kind of the object that the job is deployed as."""
        return self.kind

    @classmethod
    def name_findings(cls, name: str) -> Iterator[Finding]:
        """What is wrong with the job's name."""
        if len(name) > cls.NAME_LIMIT:
            yield (
                (),
                f"the name has {len(name)} characters, so pod names, which append a role and a number to it, would "
                f"be too long for Kubernetes; use at most {cls.NAME_LIMIT}",
            )

    def notes(self) -> Iterator[Finding]:
        """Notes on what was translated, and on fields with no effect or an unexpected one."""
        yield from self._translated
        yield from self.as_written(self._remarks())


@dataclass(frozen=True)
class DeployedJob:
    """A job that is expected in a cluster."""

    name: str
    namespace: str
    job: Job
    volcano_installed: bool
    """Whether the environment has Volcano, whose PodGroup may hold the job back."""
