"""Merges settings: a role's take precedence over its job's, and an administrator's profile over both."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from persia_infra.jobs.settings.run_settings import RunResources, RunSettings, SecretRef
from persia_infra.kube.affinity import Affinity
from persia_infra.kube.pod_templates import (
    SHARED_MEMORY,
)
from persia_infra.kube.pods import EnvVar, Resources, mount_folder
from persia_infra.spec.base import Place

_Entry = TypeVar("_Entry")


def over(winner: RunSettings, loser: RunSettings) -> tuple[RunSettings, list[Place]]:
    """Merges two settings, and returns the places in `loser` that are overridden as well."""
    overridden: list[Place] = []
    resources = resources_over(winner.resources.kubernetes, loser.resources.kubernetes, ("resources",), overridden)
    taken = {volume.name for volume in winner.volumes} | {mount_folder(mount) for mount in winner.mounts}
    volumes, mounts = [], []
    for index, volume in enumerate(loser.volumes):
        mount = volume.mount
        if volume.name in taken or (mount and mount_folder(mount) in taken):
            taken.add(volume.name)
            if volume not in winner.volumes:
                overridden.append(("volumes", index))
        else:
            volumes.append(volume)
    for index, mount in enumerate(loser.volume_mounts):
        if mount_folder(mount) in taken or mount.name in taken:
            if mount not in winner.volume_mounts:
                overridden.append(("volumeMounts", index))
        else:
            mounts.append(mount)
    given = {variable.name: variable for variable in winner.variables}
    merged: dict[str, Any] = {
        "node_selector": mapping_over(winner.node_selector, loser.node_selector, ("nodeSelector",), overridden),
        "volumes": [*winner.volumes, *volumes],
        "volume_mounts": [*winner.volume_mounts, *mounts],
        "resources": RunResources(requests=resources.requests, limits=resources.limits),
        "secrets": _secrets_over(winner.secrets, loser.secrets, given, overridden),
        "envs": [*_variables_under(given, loser, overridden), *winner.envs, *winner.env],
        "env": [],
        "tolerations": union(winner.tolerations, loser.tolerations),
        "affinity": affinity_over(winner.affinity, loser.affinity, overridden),
    }
    for key in ("fs_group", "run_as_user", "run_as_group", "shared_memory"):
        ours, theirs = getattr(winner, key), getattr(loser, key)
        decided = ours is not None or (key == "shared_memory" and SHARED_MEMORY in taken)
        if decided and theirs not in (None, ours):
            overridden.append((RunSettings.model_fields[key].alias or key,))
        merged[key] = ours if decided else theirs
    return loser.model_copy(update=merged), overridden


def union(first: Sequence[_Entry], second: Iterable[_Entry]) -> list[_Entry]:
    return [*first, *(entry for entry in second if entry not in first)]


def last(winner: Sequence[_Entry], loser: Iterable[_Entry]) -> list[_Entry]:
    """Both lists, the winner's at the end: if two sources set the same variable, Kubernetes uses the later one."""
    return [*(entry for entry in loser if entry not in winner), *winner]


def mapping_over(
    winner: dict[str, str], loser: dict[str, str], place: Place, overridden: list[Place]
) -> dict[str, str]:
    overridden += [(*place, key) for key, value in loser.items() if winner.get(key, value) != value]
    return {**loser, **winner}


def resources_over(winner: Resources, loser: Resources, place: Place, overridden: list[Place]) -> Resources:
    """Merges resources; request and limit belong together, so whoever sets one of them decides both."""
    decided = {*winner.requests, *winner.limits}
    kept: dict[str, dict[str, str]] = {}
    for group, ours, theirs in (
        ("requests", winner.requests, loser.requests),
        ("limits", winner.limits, loser.limits),
    ):
        overridden += [
            (*place, group, name) for name, text in theirs.items() if name in decided and ours.get(name) != text
        ]
        kept[group] = {**{name: text for name, text in theirs.items() if name not in decided}, **ours}
    return Resources.model_validate({group: amounts for group, amounts in kept.items() if amounts})


def _variables_under(given: Mapping[str, EnvVar], loser: RunSettings, overridden: list[Place]) -> list[EnvVar]:
    kept = []
    for key, variables in (("envs", loser.envs), ("env", loser.env)):
        for index, variable in enumerate(variables):
            if variable.name not in given:
                kept.append(variable)
            elif given[variable.name] != variable:
                overridden.append((key, index))
    return kept


def _secrets_over(
    winner: Sequence[SecretRef], loser: Sequence[SecretRef], given: Mapping[str, EnvVar], overridden: list[Place]
) -> list[SecretRef]:
    """Both lists, without the loser's single keys whose variables the winner sets in any way."""
    dropped = [index for index, secret in enumerate(loser) if secret.env in given]
    overridden += [("secrets", index) for index in dropped if loser[index] not in winner]
    return last(winner, (secret for index, secret in enumerate(loser) if index not in dropped))


def affinity_over(
    winner: Affinity | None, loser: Affinity | None, overridden: list[Place], place: Place = ("affinity",)
) -> Affinity | None:
    if winner is None or loser is None:
        return winner or loser
    for key in winner.model_fields_set & loser.model_fields_set:
        if getattr(winner, key) != getattr(loser, key):
            overridden.append((*place, Affinity.model_fields[key].alias or key))
    return loser.model_copy(update={key: getattr(winner, key) for key in winner.model_fields_set})
