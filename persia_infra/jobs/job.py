"""What the environment needs to know of a job of any kind: its pods, and where they want to be."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import Field

from persia_infra.pod_security import Need
from persia_infra.pods import Resources
from persia_infra.run_settings import RunSettings
from persia_infra.spec import DnsLabel, Finding, Place, Spec


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
        """What in the description has no effect, or another one than elsewhere."""
        return iter(())
