"""What the environment needs to know of a job of any kind: its pods, where they want to be, and how it was written."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, ValidationError

from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.kube.pod_security import Need
from persia_infra.kube.pods import Resources
from persia_infra.spec.base import DnsLabel, Finding, Place, Spec, refuse
from persia_infra.spec.errors import findings_from, traced


@dataclass(frozen=True)
class Workload:
    """Pods of one kind within a job."""

    role: str
    place: Place
    """Keys that lead from the job to this role's description."""
    replicas: int
    resources: Resources
    pool: str | None = None
    anywhere: bool = False
    """Small enough not to be asked about: without a pool of its own it goes wherever pods may."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that its nodes must have, besides those of the pool."""
    resources_at: Place = ("resources",)
    """Keys that lead from the role to where its resources are said."""


@dataclass(frozen=True)
class Translation:
    """A description in today's words, and how it was written."""

    data: dict[str, Any]
    notes: list[Finding]
    """One for each thing that was translated, at the place where it was written."""
    origins: dict[Place, Place]
    """Where that was, by the place that it has in today's words."""


class Job(Spec):
    """A training job."""

    NAME_LIMIT: ClassVar[int] = 35
    """Longer names leave no room for the longest role and a number within what a StatefulSet's pods may have."""

    kind: str
    namespace: DnsLabel | None = None
    queue: DnsLabel | None = Field(default=None, exclude=True)
    """The Volcano queue that the job waits in, with all its pods or none."""
    gang: bool = Field(default=False, exclude=True)
    """Starts all pods or none, in the queue `default` where no other is named."""

    _translated: list[Finding] = PrivateAttr(default=[])
    _origins: dict[Place, Place] = PrivateAttr(default={})

    @classmethod
    def _read(cls, translation: Translation, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """The job that a translated description is; what is wrong with it is said of the places where it stands."""
        try:
            job = handler(translation.data)
        except ValidationError as error:
            if translation.origins:
                found = findings_from(error, cls, translation.data)
                refuse((traced(place, translation.origins), said) for place, said in found)
            raise
        job._translated, job._origins = translation.notes, translation.origins
        return job

    def as_written(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings at the places where the description stands, whatever words it has."""
        yield from ((traced(place, self._origins), said) for place, said in findings)

    @property
    def needs_volcano(self) -> bool:
        """Whether its pods wait for Volcano to schedule them."""
        return self.gang or self.queue is not None

    @classmethod
    def name_findings(cls, name: str) -> Iterator[Finding]:
        """What is wrong with the name that a job is given."""
        if len(name) > cls.NAME_LIMIT:
            yield (
                (),
                f"the name has {len(name)} characters; with a role and a number after it the pods' names would be too "
                f"long for Kubernetes; use at most {cls.NAME_LIMIT}",
            )

    def workloads(self) -> list[Workload]:
        """Everything that runs, in a fixed order."""
        raise NotImplementedError

    def use_profiles(self, profiles: Mapping[str, RunSettings]) -> None:
        """Names of profiles mean these from now on; kinds that know no profiles need none of them."""

    def settings_findings(self) -> Iterator[Finding]:
        """Profiles that nobody described, and shares that would get in each other's way."""
        return iter(())

    def security_need(self) -> Need | None:
        """What its pods need beyond the strictest Pod Security, and why."""
        raise NotImplementedError

    def notes(self) -> Iterator[Finding]:
        """What was translated, and what in the description has no effect, or another one than elsewhere."""
        yield from self._translated
        yield from self.as_written(self._remarks())

    def _remarks(self) -> Iterator[Finding]:
        """The latter."""
        return iter(())
