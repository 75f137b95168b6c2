"""Roles of a PERSIA job with their settings and profiles in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from persia_infra.jobs.persia.roles import NnWorker, Role
from persia_infra.jobs.settings.profiles import over, settled
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.kube.pod_templates import (
    SHARED_MEMORY,
    Capabilities,
    Container,
    ContainerSecurity,
    EnvFrom,
    PodSecurity,
    PodSpec,
    PodTemplate,
    SeccompProfile,
)
from persia_infra.kube.pods import Volume
from persia_infra.spec.base import Place

_PLACES = {
    ("spec", "containers", 0, "env"): "env",
    ("spec", "containers", 0, "resources"): "resources",
    ("spec", "containers", 0, "volumeMounts"): "volumeMounts",
}


@dataclass(frozen=True)
class SettledRole:
    """What the pods of a role will be like."""

    role: Role
    settings: RunSettings
    """All that apply."""
    volumes: list[Volume]
    """All of them, the job's included."""
    variable_sources: list[EnvFrom]
    annotations: dict[str, str]
    pod: PodSpec
    """The same as Pod Security sees it."""
    overridden: list[Place]
    """Keys of the role whose values do not count; `volumes` are the job's."""


def settled_role(
    key: str, role: Role, volumes: Sequence[Volume], profiles: Mapping[str, RunSettings], *, job: str
) -> SettledRole:
    """A role with its settings, and its profile's over them.

    Args:
        key: The role's name.
        role: As it was described.
        volumes: The job's.
        profiles: The environment's.
        job: The job's name, after which its claims are called.
    """
    profile = profiles.get(role.profile or "", RunSettings())
    settings, lost = over(profile, role.settings)
    template, in_template = settled(_as_template(key, role, volumes), settings, job=job)
    pod = template.spec
    changed = role.model_copy(
        update={
            "env": pod.main.env,
            "resources": pod.main.resources,
            "volume_mounts": pod.main.volume_mounts,
            "node_selector": pod.node_selector,
            "tolerations": pod.tolerations,
            "affinity": pod.affinity,
            "security_context": pod.security_context,
        }
    )
    overridden = [*(("settings", *place) for place in lost), *map(_place, in_template)]
    if (
        isinstance(role, NnWorker)
        and role.shared_memory
        and any(one.folder == SHARED_MEMORY for one in settings.mounts)
    ):
        overridden.append(("sharedMemory",))
    return SettledRole(changed, settings, pod.volumes, pod.main.env_from, settings.annotations, pod, overridden)


def _as_template(key: str, role: Role, volumes: Sequence[Volume]) -> PodTemplate:
    """Not validated again: what is wrong with the role has been said already, in its own words."""
    container = Container.model_construct(
        name=key,
        env=role.env,
        env_from=[],
        resources=role.resources,
        volume_mounts=role.volume_mounts,
        security_context=ContainerSecurity(allow_privilege_escalation=False, capabilities=Capabilities(drop=["ALL"])),
        ports=None,
    )
    security = role.security_context or PodSecurity()
    if security.seccomp_profile is None:
        security = security.model_copy(update={"seccomp_profile": SeccompProfile(type="RuntimeDefault")})
    pod = PodSpec.model_construct(
        containers=[container],
        init_containers=[],
        volumes=list(volumes),
        node_selector=role.node_selector,
        tolerations=role.tolerations,
        affinity=role.affinity,
        security_context=security,
    )
    return PodTemplate.model_construct(spec=pod)


def _place(in_template: Place) -> Place:
    for prefix, key in _PLACES.items():
        if in_template[: len(prefix)] == prefix:
            return (key, *in_template[len(prefix) :])
    return in_template[1:]
