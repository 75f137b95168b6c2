"""Translates older dialects of PersiaJob to the current format.

It knows the resource definitions of November 2021 (`trainer`, `middlewareServer`, …), of early December 2021
(`globalConfigPath`, …) and the current one. The result is validated elsewhere, by the spec.
"""

from collections.abc import Mapping
from typing import Any

from persia_infra.jobs.job import Translation
from persia_infra.spec.base import Finding, Place, refuse
from persia_infra.spec.errors import traced

NATS_URL = "PERSIA_NATS_URL"
ROLES = ("embeddingParameterServer", "embeddingWorker", "nnWorker", "dataloader")

_PATHS = {
    "globalConfigPath": "PERSIA_GLOBAL_CONFIG",
    "embeddingConfigPath": "PERSIA_EMBEDDING_CONFIG",
    "nnWorkerPyEntryPath": "PERSIA_NN_WORKER_ENTRY",
    "trainerPyEntryPath": "PERSIA_NN_WORKER_ENTRY",
    "dataLoaderPyEntryPath": "PERSIA_DATALOADER_ENTRY",
}
_ROLES = {
    "embeddingServer": "embeddingParameterServer",
    "middlewareServer": "embeddingWorker",
    "trainer": "nnWorker",
}
_VARIABLES = {"PERSIA_NATS_IP": NATS_URL, "MIDDLEWARE_SERVICE": "EMBEDDING_WORKER_SERVICE"}
_UNREAD_VARIABLES = {"PERSIA_MODEL_CONFIG", "ENABLE_CUDA"}


def in_todays_words(described: Mapping[str, Any]) -> Translation:
    """Returns a job's description in the current format.

    Raises:
        PydanticCustomError: An old and a new key are given for the same field.
    """
    job = {key: value for key, value in described.items() if value is not None}
    notes: list[Finding] = []
    origins: dict[Place, Place] = {}
    refuse(_doubled(job))
    paths = {old: new for old, new in _PATHS.items() if old in job}
    if paths:
        values = {new: job.pop(old) for old, new in paths.items()}
        given = job.get("persiaEnv", {})
        job["persiaEnv"] = {**given, **values} if isinstance(given, Mapping) else given
        origins |= {("persiaEnv", new): (old,) for old, new in paths.items()}
        notes += [
            ((old,), f"is the name from before December 2021; it was read as persiaEnv.{new}")
            for old, new in paths.items()
        ]
    for old, new in _ROLES.items():
        if old in job:
            job[new] = job.pop(old)
            origins[new,] = (old,)
            notes.append(((old,), f"is the old name of the role; it was read as {new}"))
    for role in ROLES:
        if isinstance(job.get(role), Mapping):
            job[role] = _role(job[role], traced((role,), origins), notes)
    if isinstance(job.get("env"), list):
        job["env"] = _variables(job["env"], ("env",), notes)
    return Translation(job, notes, origins)


def _doubled(job: Mapping[str, Any]) -> list[Finding]:
    paths = job.get("persiaEnv")
    given = paths if isinstance(paths, Mapping) else {}
    conflict = "cannot be combined with {}, the new name of the same field; remove one of them"
    findings: list[Finding] = [
        ((old,), conflict.format(f"persiaEnv.{new}")) for old, new in _PATHS.items() if old in job and new in given
    ]
    if "trainerPyEntryPath" in job and "nnWorkerPyEntryPath" in job:
        findings.append((("trainerPyEntryPath",), conflict.format("nnWorkerPyEntryPath")))
    return findings + [((old,), conflict.format(new)) for old, new in _ROLES.items() if old in job and new in job]


def _role(described: Mapping[str, Any], place: Place, notes: list[Finding]) -> dict[str, Any]:
    role = {key: value for key, value in described.items() if value is not None}
    if isinstance(role.get("env"), list):
        role["env"] = _variables(role["env"], (*place, "env"), notes)
    mounts = role.get("volumeMounts")
    for index, mount in enumerate(mounts if isinstance(mounts, list) else ()):
        if isinstance(mount, Mapping) and "read_only" in mount:
            notes.append(
                (
                    (*place, "volumeMounts", index, "read_only"),
                    "was read as readOnly and takes effect here; PERSIA's resource definition drops it, "
                    "which leaves the volume writable",
                )
            )
    return role


def _variables(described: list[Any], place: Place, notes: list[Finding]) -> list[Any]:
    translated = []
    for index, variable in enumerate(described):
        name = variable.get("name") if isinstance(variable, Mapping) else None
        if not isinstance(name, str):
            pass
        elif name in _VARIABLES:
            variable = {**variable, "name": _VARIABLES[name]}
            notes.append(
                (
                    (*place, index, "name"),
                    f"PERSIA has not read {name} since December 2021; it was read as {_VARIABLES[name]}",
                )
            )
        elif name in _UNREAD_VARIABLES:
            notes.append(((*place, index, "name"), f"{name} has no effect: no version of PERSIA reads it"))
        translated.append(variable)
    return translated
