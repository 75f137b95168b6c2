"""What jobs that are made of pod templates have in common: settings, profiles, queue and gang.

Keys that only this library knows are marked `exclude=True`: they are no part of the kind's own API, so they never
reach the API server, and a schema that is derived from these models leaves them out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field, PrivateAttr

from persia_infra.gke.pools import Placement
from persia_infra.jobs.job import Job, Workload
from persia_infra.jobs.settings.profiles import over, settled
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.jobs.settings.run_volumes import Share
from persia_infra.kube.pod_security import Need, security_need
from persia_infra.kube.pod_templates import SHARED_MEMORY, PodTemplate
from persia_infra.spec.base import DnsLabel, Finding, Place, PodCount, Spec

VOLCANO = "volcano"


class RoleSpec(Spec):
    """Pods of one role: how many, made from what, and what this library adds to them."""

    replicas: PodCount | None = Field(default=None, ge=0)
    template: PodTemplate
    pool: DnsLabel | None = Field(default=None, exclude=True)
    settings: RunSettings = Field(default=RunSettings(), exclude=True)
    profile: DnsLabel | None = Field(default=None, exclude=True)


@dataclass(frozen=True)
class RunRole:
    """One role of a job, whatever the job's kind calls it."""

    name: str
    place: Place
    spec: RoleSpec
    replicas: int
    trains: bool = True
    """Takes the job's hardware settings; one that only starts the others does not."""


class RunJob(Job):
    """A job whose roles are pod templates."""

    RESOURCES_AT: ClassVar[Place] = ("template", "spec", "containers")
    """Keys that lead from a role to where its resources are said."""

    namespace: DnsLabel | None = Field(default=None, exclude=True)
    settings: RunSettings = Field(default=RunSettings(), exclude=True)
    """For every role; what a role says itself wins."""
    profile: DnsLabel | None = Field(default=None, exclude=True)
    """Of the environment's profiles; what it says wins over everything else."""

    _profiles: Mapping[str, RunSettings] = PrivateAttr(default={})

    def run_roles(self) -> list[RunRole]:
        """The roles that are there, in a fixed order."""
        raise NotImplementedError

    def object_spec(self, job: str, placements: Mapping[str, Placement]) -> dict[str, Any]:
        """The `spec` of the object that the kind's operator reads."""
        raise NotImplementedError

    def use_profiles(self, profiles: Mapping[str, RunSettings]) -> None:
        """Names of profiles mean these from now on."""
        self._profiles = profiles

    def settings_findings(self) -> Iterator[Finding]:
        """Profiles that nobody described, and shares that would get in each other's way."""
        yield from share_findings({role.place: self._settings_of(role) for role in self.run_roles()})
        named: list[tuple[Place, str | None]] = [((), self.profile)]
        named += [(role.place, role.spec.profile) for role in self.run_roles()]
        for place, profile in named:
            if profile is not None and profile not in self._profiles:
                known = ", ".join(self._profiles) or "none"
                yield (*place, "profile"), f"no profile {profile!r} is described by the environment; known: {known}"

    def template_of(self, role: RunRole, job: str, placement: Placement | None = None) -> PodTemplate:
        """The role's pods as they will be."""
        template, _ = settled(role.spec.template, self._settings_of(role), job=job, placement=placement)
        return template

    def shares(self, job: str) -> list[Share]:
        """Volumes outside the cluster that its pods claim, each once."""
        return all_shares(job, [self._settings_of(role) for role in self.run_roles()])

    def workloads(self) -> list[Workload]:
        """The roles."""
        found = []
        for role in self.run_roles():
            template = self.template_of(role, "job")
            found.append(
                Workload(
                    role.name,
                    role.place,
                    role.replicas,
                    template.resources,
                    role.spec.pool,
                    anywhere=not role.trains and not template.resources.gpus,
                    node_selector=template.spec.node_selector,
                    resources_at=self.RESOURCES_AT,
                )
            )
        return found

    def security_need(self) -> Need | None:
        """What its pods need beyond the strictest Pod Security."""
        return security_need([self.template_of(role, "job").spec for role in self.run_roles()])

    def _remarks(self) -> Iterator[Finding]:
        """What profiles and settings override."""
        for role in self.run_roles():
            yield from self._override_notes(role)
        if self.profile is not None and self.profile in self._profiles:
            _, lost = over(self._profiles[self.profile], self.settings)
            yield from ((("settings", *place), self._wins(self.profile)) for place in lost)

    def _override_notes(self, role: RunRole) -> Iterator[Finding]:
        name = role.spec.profile or self.profile
        profile = self._profile_of(role)
        _, lost = over(profile, role.spec.settings)
        yield from (((*role.place, "settings", *place), self._wins(name)) for place in lost)
        _, by_profile = settled(role.spec.template, profile, job="job")
        _, by_any = settled(role.spec.template, self._settings_of(role), job="job")
        for place in by_any:
            said = self._wins(name) if place in by_profile else "the run's settings say otherwise, and win"
            yield (*role.place, "template", *place), said

    @staticmethod
    def _wins(profile: str | None) -> str:
        return f"the profile {profile!r} says otherwise, and wins over what a run asks for"

    def _profile_of(self, role: RunRole) -> RunSettings:
        if role.spec.profile is not None:
            return self._profiles.get(role.spec.profile, RunSettings())
        found = self._profiles.get(self.profile or "", RunSettings())
        return found if role.trains else found.shared

    def _settings_of(self, role: RunRole) -> RunSettings:
        of_job = self.settings if role.trains else self.settings.shared
        merged, _ = over(role.spec.settings, of_job)
        merged, _ = over(self._profile_of(role), merged)
        return merged


def network_findings(job: RunJob, instead: str = "") -> Iterator[Finding]:
    """Pods that ask for their node's network; `instead` ends the fix, where the kind has words of its own for it."""
    for role in job.run_roles():
        if role.spec.template.spec.host_network:
            yield (
                (*role.place, "template", "spec", "hostNetwork"),
                "gives the pod its node's network, where no NetworkPolicy holds and Google Cloud takes the pod for the "
                f"node itself; remove it{instead}",
            )


def scheduler_findings(job: RunJob) -> Iterator[Finding]:
    """Pods that ask for another scheduler than the gang's."""
    for role in job.run_roles():
        if job.needs_volcano and role.spec.template.spec.scheduler_name not in (None, VOLCANO):
            yield (
                (*role.place, "template", "spec", "schedulerName"),
                "is not Volcano, but the job asks for a queue or gang, which only Volcano knows; remove one",
            )


def with_shared_memory(settings: RunSettings, template: PodTemplate) -> RunSettings:
    """Settings that give a pod with GPUs room for its worker processes, unless somebody saw to it already.

    The container runtime gives 64 MiB, in which the data loaders of deep learning frameworks fail.
    """
    gpus = settings.resources.kubernetes.gpus or template.resources.gpus
    seen_to = settings.shared_memory is not None or template.spec.mounts_at(SHARED_MEMORY)
    seen_to = seen_to or any(mount.folder == SHARED_MEMORY for mount in settings.mounts)
    return settings if seen_to or not gpus else settings.model_copy(update={"shared_memory": ""})


def all_shares(job: str, settings: Iterable[RunSettings]) -> list[Share]:
    """Volumes outside the cluster that these settings mount, each once."""
    shares = (volume.share(job) for one in settings for volume in one.volumes)
    return list({share.name: share for share in shares if share is not None}.values())


def share_findings(settings: Mapping[Place, RunSettings]) -> Iterator[Finding]:
    """Shares of one name that are not the same: a job has one claim for each name."""
    seen: dict[str, Share] = {}
    for place, one in settings.items():
        for volume in one.volumes:
            share = volume.share("job")
            if share and seen.setdefault(share.name, share) != share:
                yield (
                    (*place, "settings"),
                    f"its volume {volume.name!r} is another share than the volume of that name elsewhere in the job, "
                    "and the two would have one claim; rename one",
                )


def dumped(spec: Spec) -> dict[str, Any]:
    """The keys of the kind's own API that were given, in its spelling."""
    return spec.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
