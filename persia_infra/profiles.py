"""Settings laid over one another: a role's over its job's, and an administrator's profile over both."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from persia_infra.pod_security import confined
from persia_infra.pod_templates import SHARED_MEMORY, Affinity, Container, PodTemplate, Toleration
from persia_infra.pods import EnvVar, Resources, VolumeMount
from persia_infra.pools import Placement
from persia_infra.run_settings import RunResources, RunSettings
from persia_infra.spec import Place

_Entry = TypeVar("_Entry")


def over(winner: RunSettings, loser: RunSettings) -> tuple[RunSettings, list[Place]]:
    """Both together, and the places of what the loser said in vain."""
    lost: list[Place] = []
    resources = _resources_over(winner.resources.kubernetes, loser.resources.kubernetes, ("resources",), lost)
    taken = {volume.name for volume in winner.volumes} | {_path(mount) for mount in winner.mounts}
    volumes, mounts = [], []
    for index, volume in enumerate(loser.volumes):
        mount = volume.mount
        if volume.name in taken or (mount and _path(mount) in taken):
            if volume not in winner.volumes:
                lost.append(("volumes", index))
        else:
            volumes.append(volume)
    for index, mount in enumerate(loser.volume_mounts):
        if _path(mount) in taken or mount.name in taken:
            lost.append(("volumeMounts", index))
        else:
            mounts.append(mount)
    merged: dict[str, Any] = {
        "node_selector": _mapping_over(winner.node_selector, loser.node_selector, ("nodeSelector",), lost),
        "volumes": [*winner.volumes, *volumes],
        "volume_mounts": [*winner.volume_mounts, *mounts],
        "resources": RunResources(requests=resources.requests, limits=resources.limits),
        "secrets": _union(winner.secrets, loser.secrets),
        "envs": _variables_over([*winner.envs, *winner.env], loser, lost),
        "env": [],
        "tolerations": _union(winner.tolerations, loser.tolerations),
        "affinity": _affinity_over(winner.affinity, loser.affinity, lost),
    }
    for key in ("fs_group", "run_as_user", "run_as_group", "shared_memory"):
        ours, theirs = getattr(winner, key), getattr(loser, key)
        if key == "shared_memory" and SHARED_MEMORY in taken and ours is None:
            theirs = None
        if ours is not None and theirs is not None and ours != theirs:
            lost.append((RunSettings.model_fields[key].alias or key,))
        merged[key] = theirs if ours is None else ours
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
    main = _settled_main(pod.main, settings, lost)
    own = settings.pod_volumes(job)
    replaced = {volume.name for volume in own}
    security = {
        key: number
        for key, number in (
            ("fs_group", settings.fs_group),
            ("run_as_user", settings.run_as_user),
            ("run_as_group", settings.run_as_group),
        )
        if number is not None
    }
    for key in security:
        if getattr(pod.security_context, key) not in (None, security[key]):
            alias = type(pod.security_context).model_fields[key].alias
            lost.append(("spec", "securityContext", alias or key))
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
        "containers": [main, *pod.containers[1:]],
        "volumes": [*(volume for volume in pod.volumes if volume.name not in replaced), *own],
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
    taken = {_path(mount): mount for mount in settings.mounts}
    for index, mount in enumerate(main.volume_mounts):
        if taken.get(_path(mount), mount) != mount:
            lost.append((*place, "volumeMounts", index))
    given = {variable.name: variable for variable in settings.variables}
    for index, variable in enumerate(main.env):
        if given.get(variable.name, variable) != variable:
            lost.append((*place, "env", index))
    changes: dict[str, Any] = {
        "env": [*(one for one in main.env if one.name not in given), *given.values()],
        "env_from": _union(main.env_from, settings.variable_sources),
        "resources": _resources_over(settings.resources.kubernetes, main.resources, (*place, "resources"), lost),
        "volume_mounts": [*(one for one in main.volume_mounts if _path(one) not in taken), *settings.mounts],
    }
    return main.model_copy(update=_said(main, changes))


def _said(model: Any, changes: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """Without changes to what is already so: a key that nobody gave stays unsaid."""
    return {key: value for key, value in changes.items() if getattr(model, key) != value}


def _path(mount: VolumeMount) -> str:
    return mount.mount_path.rstrip("/") or "/"


def _union(first: Sequence[_Entry], second: Iterable[_Entry]) -> list[_Entry]:
    return [*first, *(entry for entry in second if entry not in first)]


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


def _variables_over(winner: list[EnvVar], loser: RunSettings, lost: list[Place]) -> list[EnvVar]:
    given = {variable.name: variable for variable in winner}
    kept = []
    for key, variables in (("envs", loser.envs), ("env", loser.env)):
        for index, variable in enumerate(variables):
            if variable.name not in given:
                kept.append(variable)
            elif given[variable.name] != variable:
                lost.append((key, index))
    return [*kept, *winner]


def _affinity_over(
    winner: Affinity | None, loser: Affinity | None, lost: list[Place], place: Place = ("affinity",)
) -> Affinity | None:
    if winner is None or loser is None:
        return winner or loser
    for key in winner.model_fields_set & loser.model_fields_set:
        if getattr(winner, key) != getattr(loser, key):
            lost.append((*place, Affinity.model_fields[key].alias or key))
    return loser.model_copy(update={key: getattr(winner, key) for key in winner.model_fields_set})
