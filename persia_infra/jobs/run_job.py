"""The common part of jobs that consist of pod templates: settings, profiles, queue and gang.

Keys that only this library knows are marked `exclude=True`: they are not part of the kind's own API, so they never
reach the API server, and schemas derived from these models leave them out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import Field, PrivateAttr

from persia_infra.jobs.job import NAME_WHILE_CHECKING, Job, Placements, QueueRequest, Workload
from persia_infra.jobs.settings.pods import final_pod
from persia_infra.jobs.settings.profiles import over
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.jobs.settings.run_volumes import Share
from persia_infra.jobs.shares import VOLCANO, all_shares, claims_of, share_findings, share_objects
from persia_infra.kube.objects import Body, KubeObject, ObjectGroup, metadata, object_labels
from persia_infra.kube.pod_templates import SHARED_MEMORY, PodTemplate, main_container
from persia_infra.kube.pods import mount_folder, mounts_at
from persia_infra.kube.requests import container_requests, gpus, template_requests
from persia_infra.spec.base import DnsLabel, Finding, Place, PodCount, Spec


class RoleSpec(Spec):
    """The pods of one role: their number and template, and what this library adds to them."""

    replicas: PodCount | None = Field(default=None, ge=0)
    """The number of pods."""
    template: PodTemplate
    """The pod template, as in Kubernetes."""
    pool: DnsLabel | None = Field(default=None, exclude=True)
    """The node pool of the pods; needed when more than one pool could take them."""
    settings: RunSettings = Field(default=RunSettings.defaults(), exclude=True)
    """Run settings of this role; they take precedence over those of the job."""
    profile: DnsLabel | None = Field(default=None, exclude=True)
    """A profile of the environment; its values take precedence over all other settings."""


@dataclass(frozen=True)
class RunRole:
    """One role of a job, independent of how the job's kind describes it."""

    name: str
    place: Place
    spec: RoleSpec
    replicas: int
    trains: bool = True
    """Whether the job's hardware settings apply to it; not so for a role that only starts the others."""


class RunJob(Job):
    """A job whose roles are pod templates."""

    APP: ClassVar[str]
    """The value of the label `app.kubernetes.io/name` of its objects."""
    RESOURCES_AT: ClassVar[Place] = ("template", "spec", "containers")
    """Keys that lead from a role to where its resources are described."""

    settings: RunSettings = Field(default=RunSettings.defaults(), exclude=True)
    """Run settings of every role; those of a role take precedence."""
    profile: DnsLabel | None = Field(default=None, exclude=True)
    """A profile of the environment; its values take precedence over all other settings."""

    _profiles: Mapping[str, RunSettings] = PrivateAttr(default={})

    # What a kind has to provide.

    def run_roles(self) -> list[RunRole]:
        """Returns the roles that the job has, in a fixed order."""
        raise NotImplementedError

    def object_spec(self, templates: Mapping[str, Body]) -> Body:
        """Returns the `spec` of the job's object, with the final pod template of each role."""
        raise NotImplementedError

    def _object_annotations(self) -> Mapping[str, str]:
        """Annotations of the job's object."""
        return {}

    def _finish(self, template: PodTemplate, role: RunRole, name: str) -> PodTemplate:  # noqa: ARG002
        """The template with the kind's own additions to the pods of a role."""
        return template

    def _group_objects(self, name: str, namespace: str, labels: Mapping[str, str]) -> list[KubeObject]:  # noqa: ARG002
        """Objects that have to exist before the job's own object, in addition to claims."""
        return []

    # What is the same for every kind.

    def workloads(self, name: str = NAME_WHILE_CHECKING, placements: Placements | None = None) -> list[Workload]:
        """Returns the pods of every role."""
        loads = []
        for role in self.run_roles():
            template = self.pod_template(role, name, placements)
            load = Workload(role.name, role.place, role.replicas, template, role.spec.pool)
            loads.append(replace(load, anywhere=not role.trains and not load.gpus, resources_at=self.RESOURCES_AT))
        return loads

    def pod_template(self, role: RunRole, name: str, placements: Placements | None = None) -> PodTemplate:
        """The final pod template of a role."""
        placement = (placements or {}).get(role.name)
        template, _ = final_pod(role.spec.template, self._settings_of(role), job=name, placement=placement)
        return _labelled(self._finish(template, role, name), object_labels(self.APP, name, role.name))

    def objects(self, name: str, namespace: str, placements: Placements) -> ObjectGroup:
        """Returns the job's object, the claims of its shares and, if the kind declares one itself, its gang."""
        labels = object_labels(self.APP, name, "job")
        shares = share_objects(self.shares(name), namespace, labels)
        group = self._group_objects(name, namespace, labels)
        templates = {load.role: load.template.as_kubernetes() for load in self.workloads(name, placements)}
        body = {
            "apiVersion": self.MANIFESTS[0].api_version,
            "kind": self.kind,
            "metadata": metadata(name, namespace, labels, self._object_annotations()),
            "spec": self.object_spec(templates),
        }
        job = KubeObject("", body, (*claims_of(shares), *group))
        return ObjectGroup(self.COMPONENT, (*shares, *group, job))

    def use_profiles(self, profiles: Mapping[str, RunSettings]) -> None:
        """Resolves profile names against the given profiles."""
        self._profiles = profiles

    def unknown_profiles(self) -> Iterator[Finding]:
        """Profile names that the environment does not define."""
        named: list[tuple[Place, str | None]] = [((), self.profile)]
        named += [(role.place, role.spec.profile) for role in self.run_roles()]
        known = ", ".join(self._profiles) or "none"
        for place, profile in named:
            if profile is not None and profile not in self._profiles:
                yield (*place, "profile"), f"the environment has no profile {profile!r}; known: {known}"

    def settings_findings(self) -> Iterator[Finding]:
        """Shares that would use the same claim."""
        yield from share_findings({role.place: self._settings_of(role) for role in self.run_roles()})

    def shares(self, name: str) -> list[Share]:
        """The shares outside the cluster that the job's pods mount, each once."""
        return all_shares(name, [self._settings_of(role) for role in self.run_roles()])

    def queue_requests(self) -> Iterator[QueueRequest]:
        """Templates that name Volcano as their scheduler."""
        for role in self.run_roles():
            if role.spec.template.spec.scheduler_name == VOLCANO:
                yield QueueRequest((*role.place, "template", "spec", "schedulerName"))

    def _remarks(self) -> Iterator[Finding]:
        for role in self.run_roles():
            yield from self._override_notes(role)
        if self.profile is not None and self.profile in self._profiles:
            _, overridden = over(self._profiles[self.profile], self.settings)
            yield from ((("settings", *place), _profile_wins(self.profile)) for place in overridden)

    def _override_notes(self, role: RunRole) -> Iterator[Finding]:
        name = role.spec.profile or self.profile
        profile = self._profile_of(role)
        _, overridden = over(profile, role.spec.settings)
        yield from (((*role.place, "settings", *place), _profile_wins(name)) for place in overridden)
        _, by_profile = final_pod(role.spec.template, profile, job=NAME_WHILE_CHECKING)
        _, by_any = final_pod(role.spec.template, self._settings_of(role), job=NAME_WHILE_CHECKING)
        for place in by_any:
            message = _profile_wins(name) if place in by_profile else "is overridden by the run's settings"
            yield (*role.place, "template", *place), message

    def _profile_of(self, role: RunRole) -> RunSettings:
        if role.spec.profile is not None:
            return self._profiles.get(role.spec.profile, RunSettings.defaults())
        profile = self._profiles.get(self.profile or "", RunSettings.defaults())
        return profile if role.trains else profile.shared

    def _settings_of(self, role: RunRole) -> RunSettings:
        of_job = self.settings if role.trains else self.settings.shared
        merged, _ = over(role.spec.settings, of_job)
        merged, _ = over(self._profile_of(role), merged)
        return merged


def _profile_wins(profile: str | None) -> str:
    return f"is overridden by the profile {profile!r}, which takes precedence over the settings of a run"


def _labelled(template: PodTemplate, labels: Mapping[str, str]) -> PodTemplate:
    """The template with these labels added; its own labels take precedence."""
    described = template.metadata.model_copy(update={"labels": {**labels, **template.metadata.labels}})
    return template.model_copy(update={"metadata": described})


def network_findings(job: RunJob, instead: str = "") -> Iterator[Finding]:
    """Pods that ask for their node's network; `instead` adds the alternative that the kind offers to the fix."""
    for role in job.run_roles():
        if role.spec.template.spec.host_network:
            yield (
                (*role.place, "template", "spec", "hostNetwork"),
                "gives the pod its node's network, where no NetworkPolicy applies and Google Cloud treats the pod as "
                f"the node itself; remove it{instead}",
            )


def scheduler_findings(job: RunJob) -> Iterator[Finding]:
    """Pods that name a different scheduler than the gang's."""
    for role in job.run_roles():
        if job.needs_volcano and role.spec.template.spec.scheduler_name not in (None, VOLCANO):
            yield (
                (*role.place, "template", "spec", "schedulerName"),
                "is not Volcano, but the job asks for a queue or gang, which only Volcano supports; remove one",
            )


def with_shared_memory(settings: RunSettings, template: PodTemplate) -> RunSettings:
    """The settings with shared memory for the worker processes of a pod with GPUs, unless it already has some.

    The container runtime's default of 64 MiB is too small for the data loaders of deep learning frameworks.
    """
    has_gpus = gpus(container_requests(settings.resources.kubernetes)) or gpus(template_requests(template))
    has_own = settings.shared_memory is not None or mounts_at(main_container(template.spec), SHARED_MEMORY)
    has_own = has_own or any(mount_folder(mount) == SHARED_MEMORY for mount in settings.mounts)
    return settings if has_own or not has_gpus else settings.model_copy(update={"shared_memory": ""})


def dumped(spec: Spec) -> dict[str, Any]:
    """The keys of the kind's own API that were given, in its spelling."""
    return spec.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
