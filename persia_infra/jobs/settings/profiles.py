"""Settings laid over one another: a role's over its job's, and an administrator's profile over both."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic.alias_generators import to_camel

from persia_infra.gke.pools import Placement
from persia_infra.jobs.settings.run_settings import RunResources, RunSettings, SecretRef
from persia_infra.kube.affinity import Affinity
from persia_infra.kube.pod_security import confined
from persia_infra.kube.pod_templates import (
    SHARED_MEMORY,
    Container,
    ContainerSecurity,
    PodSecurity,
    PodTemplate,
    Toleration,
)
from persia_infra.kube.pods import EnvVar, Resources
from persia_infra.spec.base import Place

_Entry = TypeVar("_Entry")


def over(winner: RunSettings, loser: RunSettings) -> tuple[RunSettings, list[Place]]:
    """Both together, and the places of what the loser said in vain."""
    lost: list[Place] = []
    resources = _resources_over(winner.resources.kubernetes, loser.resources.kubernetes, ("resources",), lost)
    taken = {volume.name for volume in winner.volumes} | {mount.folder for mount in winner.mounts}
    volumes, mounts = [], []
    for index, volume in enumerate(loser.volumes):
        mount = volume.mount
        if volume.name in taken or (mount and mount.folder in taken):
            taken.add(volume.name)
            if volume not in winner.volumes:
                lost.append(("volumes", index))
        else:
            volumes.append(volume)
    for index, mount in enumerate(loser.volume_mounts):
        if mount.folder in taken or mount.name in taken:
            if mount not in winner.volume_mounts:
                lost.append(("volumeMounts", index))
        else:
            mounts.append(mount)
    given = {variable.name: variable for variable in winner.variables}
    merged: dict[str, Any] = {
        "node_selector": _mapping_over(winner.node_selector, loser.node_selector, ("nodeSelector",), lost),
        "volumes": [*winner.volumes, *volumes],
        "volume_mounts": [*winner.volume_mounts, *mounts],
        "resources": RunResources(requests=resources.requests, limits=resources.limits),
        "secrets": _secrets_over(winner.secrets, loser.secrets, given, lost),
        "envs": [*_variables_under(given, loser, lost), *winner.envs, *winner.env],
        "env": [],
        "tolerations": _union(winner.tolerations, loser.tolerations),
        "affinity": _affinity_over(winner.affinity, loser.affinity, lost),
    }
    for key in ("fs_group", "run_as_user", "run_as_group", "shared_memory"):
        ours, theirs = getattr(winner, key), getattr(loser, key)
        decided = ours is not None or (key == "shared_memory" and SHARED_MEMORY in taken)
        if decided and theirs not in (None, ours):
            lost.append((RunSettings.model_fields[key].alias or key,))
        merged[key] = ours if decided else theirs
    return loser.model_copy(update=merged), lost


def settled(
    template: PodTemplate, settings: RunSettings, *, job: str, placement: Placement | None = None
) -> tuple[PodTemplate, list[Place]]:
    """A template with a run's settings and its pool in it, and the places in it that the settings overrode.

    Args:
        template: As it was given.
        settings: All that apply, profiles included; they win over the template.
        job: The name of the job, after which its claims are called.
        placement: The pool of its pods.
    """
    lost: list[Place] = []
    pod = template.spec
    containers = [_settled_main(pod.main, settings, lost), *pod.containers[1:]]
    own = {volume.name: volume for volume in settings.pod_volumes(job)}
    for index, volume in enumerate(pod.volumes):
        if own.get(volume.name, volume) != volume:
            lost.append(("spec", "volumes", index))
    wanted = {key: getattr(settings, key) for key in ("fs_group", "run_as_user", "run_as_group")}
    security = {key: number for key, number in wanted.items() if number is not None}
    lost += _other_users(pod.security_context, security, ("spec", "securityContext"))
    for place, container in pod.all_containers:
        lost += _other_users(container.security_context, security, ("spec", *place, "securityContext"))
    selector = _mapping_over(settings.node_selector, pod.node_selector, ("spec", "nodeSelector"), lost)
    tolerations = [*pod.tolerations, *(one for one in settings.tolerations if one not in pod.tolerations)]
    if placement:
        selector = {**selector, **placement.node_selector}
        tolerated = [
            Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
            for taint in placement.taints
        ]
        tolerations += [one for one in tolerated if one not in tolerations]
    changes: dict[str, Any] = {
        "containers": [_as_the_pod(one, security) for one in containers],
        "init_containers": [_as_the_pod(one, security) for one in pod.init_containers],
        "volumes": [*(volume for volume in pod.volumes if volume.name not in own), *own.values()],
        "node_selector": selector,
        "tolerations": tolerations,
        "affinity": _affinity_over(settings.affinity, pod.affinity, lost, ("spec", "affinity")),
        "security_context": pod.security_context.model_copy(update=security) if security else pod.security_context,
    }
    update: dict[str, Any] = {"spec": pod.model_copy(update=_said(pod, changes))}
    if settings.annotations:
        annotations = {**template.metadata.annotations, **settings.annotations}
        update["metadata"] = template.metadata.model_copy(update={"annotations": annotations})
    return confined(template.model_copy(update=update)), lost


def _settled_main(main: Container, settings: RunSettings, lost: list[Place]) -> Container:
    place: Place = ("spec", "containers", 0)
    taken = {mount.folder: mount for mount in settings.mounts}
    for index, mount in enumerate(main.volume_mounts):
        if taken.get(mount.folder, mount) != mount:
            lost.append((*place, "volumeMounts", index))
    given = {variable.name: variable for variable in settings.variables}
    for index, variable in enumerate(main.env):
        if given.get(variable.name, variable) != variable:
            lost.append((*place, "env", index))
    changes: dict[str, Any] = {
        "env": [*(one for one in main.env if one.name not in given), *given.values()],
        "env_from": _last(settings.variable_sources, main.env_from),
        "resources": _resources_over(settings.resources.kubernetes, main.resources, (*place, "resources"), lost),
        "volume_mounts": [*(one for one in main.volume_mounts if one.folder not in taken), *settings.mounts],
    }
    return main.model_copy(update=_said(main, changes))


def _said(model: Any, changes: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """Without changes to what is already so: a key that nobody gave stays unsaid."""
    return {key: value for key, value in changes.items() if getattr(model, key) != value}


def _other_users(security: PodSecurity | ContainerSecurity, wanted: Mapping[str, int], place: Place) -> Iterator[Place]:
    for key, number in wanted.items():
        if getattr(security, key, None) not in (None, number):
            yield *place, to_camel(key)


def _as_the_pod(container: Container, wanted: Mapping[str, int]) -> Container:
    """Without users of its own where the pod's is decided: a container's would win over that."""
    security = container.security_context
    cleared = {key: None for key in wanted if getattr(security, key, None) is not None}
    if not cleared:
        return container
    return container.model_copy(update={"security_context": security.model_copy(update=cleared)})


def _union(first: Sequence[_Entry], second: Iterable[_Entry]) -> list[_Entry]:
    return [*first, *(entry for entry in second if entry not in first)]


def _last(winner: Sequence[_Entry], loser: Iterable[_Entry]) -> list[_Entry]:
    """Both, the winner's at the end: of two sources with the same variable, Kubernetes takes the later one."""
    return [*(entry for entry in loser if entry not in winner), *winner]


def _mapping_over(winner: dict[str, str], loser: dict[str, str], place: Place, lost: list[Place]) -> dict[str, str]:
    lost += [(*place, key) for key, value in loser.items() if winner.get(key, value) != value]
    return {**loser, **winner}


def _resources_over(winner: Resources, loser: Resources, place: Place, lost: list[Place]) -> Resources:
    """Request and limit of one resource belong together: whoever says one of them decides about both."""
    decided = {*winner.requests, *winner.limits}
    kept: dict[str, dict[str, str]] = {}
    for group, ours, theirs in (
        ("requests", winner.requests, loser.requests),
        ("limits", winner.limits, loser.limits),
    ):
        lost += [(*place, group, name) for name, text in theirs.items() if name in decided and ours.get(name) != text]
        kept[group] = {**{name: text for name, text in theirs.items() if name not in decided}, **ours}
    return Resources.model_validate({group: amounts for group, amounts in kept.items() if amounts})


def _variables_under(given: Mapping[str, EnvVar], loser: RunSettings, lost: list[Place]) -> list[EnvVar]:
    kept = []
    for key, variables in (("envs", loser.envs), ("env", loser.env)):
        for index, variable in enumerate(variables):
            if variable.name not in given:
                kept.append(variable)
            elif given[variable.name] != variable:
                lost.append((key, index))
    return kept


def _secrets_over(
    winner: Sequence[SecretRef], loser: Sequence[SecretRef], given: Mapping[str, EnvVar], lost: list[Place]
) -> list[SecretRef]:
    """Without the loser's single keys whose variables the winner gives, from a Secret or otherwise."""
    dropped = [index for index, one in enumerate(loser) if one.env in given]
    lost += [("secrets", index) for index in dropped if loser[index] not in winner]
    return _last(winner, (one for index, one in enumerate(loser) if index not in dropped))


def _affinity_over(
    winner: Affinity | None, loser: Affinity | None, lost: list[Place], place: Place = ("affinity",)
) -> Affinity | None:
    if winner is None or loser is None:
        return winner or loser
    for key in winner.model_fields_set & loser.model_fields_set:
        if getattr(winner, key) != getattr(loser, key):
            lost.append((*place, Affinity.model_fields[key].alias or key))
    return loser.model_copy(update={key: getattr(winner, key) for key in winner.model_fields_set})
