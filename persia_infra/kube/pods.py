"""Rules for what containers are given: resources, variables, volumes and mounts.

The types are Kubernetes' own. The rules say what the API server would refuse anyway, or what must not be in a stack.
"""

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator

from persia_infra.kube.literal_secrets import holds_secret
from persia_infra.kube.types.base import constrain, rule_for
from persia_infra.kube.types.pods import (
    ConfigMapEnvSource,
    ConfigMapKeySelector,
    Container,
    EnvVar,
    LocalObjectReference,
    PersistentVolumeClaimSpec,
    PodSpec,
    SecretEnvSource,
    SecretKeySelector,
    Volume,
    VolumeMount,
    VolumeResourceRequirements,
)
from persia_infra.kube.types.pods import ConfigMapVolumeSource as ConfigMapVolume
from persia_infra.kube.types.pods import CSIVolumeSource as CsiVolume
from persia_infra.kube.types.pods import EmptyDirVolumeSource as EmptyDirVolume
from persia_infra.kube.types.pods import EnvFromSource as EnvFrom
from persia_infra.kube.types.pods import EnvVarSource as EnvSource
from persia_infra.kube.types.pods import EphemeralVolumeSource as EphemeralVolume
from persia_infra.kube.types.pods import HostPathVolumeSource as HostPathVolume
from persia_infra.kube.types.pods import NFSVolumeSource as NfsVolume
from persia_infra.kube.types.pods import PersistentVolumeClaimVolumeSource as ClaimVolume
from persia_infra.kube.types.pods import ResourceRequirements as Resources
from persia_infra.kube.types.pods import SecretVolumeSource as SecretVolume
from persia_infra.spec.base import DnsLabel, Finding, Image, matching
from persia_infra.spec.quantity import parse_quantity

__all__ = [
    "ABOVE_ZERO",
    "GPU",
    "AbsolutePath",
    "ClaimVolume",
    "ConfigMapVolume",
    "CsiVolume",
    "EmptyDirVolume",
    "EnvSource",
    "EnvVar",
    "EphemeralVolume",
    "HostPathVolume",
    "MountPath",
    "NfsServer",
    "NfsVolume",
    "ObjectName",
    "Resources",
    "SecretVolume",
    "SubPath",
    "Volume",
    "VolumeMount",
    "duplicate_names",
    "mount_findings",
    "mount_folder",
    "mounts_at",
    "resource_findings",
]

GPU = "nvidia.com/gpu"

_MISSING = "is required and missing"
_USUAL_SOURCES = (
    *("hostPath", "persistentVolumeClaim", "nfs", "emptyDir", "configMap", "secret", "csi", "gcePersistentDisk"),
    *("ephemeral", "projected", "downwardAPI"),
)


def _above_zero(value: str) -> str:
    if value and parse_quantity(value) <= 0:
        raise ValueError("leaves no room at all; write more than zero")
    return value


def _no_step_up(value: str) -> str:
    if ".." in value.split("/"):
        raise ValueError("has '..' in it, which Kubernetes refuses; write the path without it")
    return value


def _below(value: str) -> str:
    if value.startswith("/"):
        raise ValueError("must be a path below the volume's root; remove the '/' at its start")
    return _no_step_up(value)


ABOVE_ZERO = AfterValidator(_above_zero)
ObjectName = Annotated[
    str,
    matching(
        r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        "name of a Kubernetes object; use lower-case letters, digits, '-' and '.'",
    ),
]
"""The name of an object that exists already; unlike names chosen here, it may have dots."""
AbsolutePath = Annotated[str, matching(r"/.*", "absolute path; start it with '/'"), AfterValidator(_no_step_up)]
MountPath = Annotated[str, matching(r"/[^:]*", "absolute path; start it with '/' and leave out ':'")]
NfsServer = Annotated[str, matching(r"[A-Za-z0-9_.:\[\]-]+", "server name or address; leave out spaces and '/'")]
SubPath = Annotated[str, AfterValidator(_below)]
_VariableName = Annotated[
    str, matching(r"[A-Za-z_.-][A-Za-z0-9_.-]*", "name of a variable; use letters, digits and '_'")
]
_Medium = Annotated[
    str,
    matching(r"(Memory|HugePages(-.+)?)?", "medium; write Memory, or leave it out"),
]

constrain(DnsLabel, (Container, "name"), (Volume, "name"))
constrain(Image, (Container, "image"))
constrain(_VariableName, (EnvVar, "name"))
constrain(
    ObjectName,
    *((model, "name") for model in (ConfigMapKeySelector, SecretKeySelector, ConfigMapEnvSource, SecretEnvSource)),
    *((model, "name") for model in (LocalObjectReference, ConfigMapVolume)),
    *((SecretVolume, "secret_name"), (ClaimVolume, "claim_name")),
)
constrain(AbsolutePath, (HostPathVolume, "path"), (NfsVolume, "path"))
constrain(NfsServer, (NfsVolume, "server"))
constrain(_Medium, (EmptyDirVolume, "medium"))
constrain(Annotated[str, ABOVE_ZERO], (EmptyDirVolume, "size_limit"))
constrain(MountPath, (VolumeMount, "mount_path"))
constrain(SubPath, (VolumeMount, "sub_path"), (VolumeMount, "sub_path_expr"))


@rule_for(Resources)
@rule_for(VolumeResourceRequirements)
def _resources(resources: Resources | VolumeResourceRequirements) -> Iterator[Finding]:
    return resource_findings(resources.requests, resources.limits)


def resource_findings(requests: Mapping[str, str], limits: Mapping[str, str]) -> Iterator[Finding]:
    """Yields what Kubernetes would refuse in a container's resources, at `requests` or `limits` and the name."""
    for name, text in requests.items():
        limit = limits.get(name)
        if limit is not None and parse_quantity(text) > parse_quantity(limit):
            yield (
                ("requests", name),
                f"{text} is more than the limit of {limit}, which Kubernetes refuses; "
                "lower the request or raise the limit",
            )
    for group, amounts in (("requests", requests), ("limits", limits)):
        for name, text in amounts.items():
            if parse_quantity(text) < 0:
                yield (group, name), f"{text} is negative; write zero or more"
    request, limit = requests.get(GPU), limits.get(GPU)
    if limit is not None and parse_quantity(limit) % 1:
        yield ("limits", GPU), f"{limit} is not a whole number of GPUs; a container gets whole GPUs only"
    if request is not None and (limit is None or parse_quantity(request) < parse_quantity(limit)):
        yield (
            ("requests", GPU),
            "GPUs cannot be overcommitted, so Kubernetes refuses a request that is not also the limit; "
            f"set the limit to {request} as well",
        )


@rule_for(ConfigMapKeySelector)
@rule_for(SecretKeySelector)
@rule_for(ConfigMapEnvSource)
@rule_for(SecretEnvSource)
@rule_for(LocalObjectReference)
@rule_for(ConfigMapVolume)
def _has_name(
    reference: ConfigMapKeySelector | SecretKeySelector | ConfigMapEnvSource | SecretEnvSource | ConfigMapVolume,
) -> Iterator[Finding]:
    if reference.name is None:
        yield ("name",), _MISSING


@rule_for(SecretVolume)
def _has_secret(volume: SecretVolume) -> Iterator[Finding]:
    if volume.secret_name is None:
        yield ("secretName",), _MISSING


@rule_for(EnvSource)
def _one_source_of_value(source: EnvSource) -> Iterator[Finding]:
    if len(source.model_fields_set) != 1:
        yield (), "needs exactly one of secretKeyRef, configMapKeyRef, fieldRef, resourceFieldRef, fileKeyRef"


@rule_for(EnvVar)
def _one_value(variable: EnvVar) -> Iterator[Finding]:
    if variable.value is not None and variable.value_from is not None:
        yield (), "has both value and valueFrom, which Kubernetes refuses; keep one"
    if variable.value is not None and holds_secret(variable.name, variable.value):
        yield (
            ("value",),
            f"the value of {variable.name} looks like a secret, and would be readable in the stack, its state and "
            "every rendering; put it into a Secret of the namespace, and name that in valueFrom.secretKeyRef",
        )


@rule_for(EnvFrom)
def _one_set_of_variables(source: EnvFrom) -> Iterator[Finding]:
    if (source.secret_ref is None) == (source.config_map_ref is None):
        yield (), "needs exactly one of secretRef and configMapRef"


@rule_for(EphemeralVolume)
def _has_claim(volume: EphemeralVolume) -> Iterator[Finding]:
    if volume.volume_claim_template is None:
        yield ("volumeClaimTemplate",), _MISSING


@rule_for(PersistentVolumeClaimSpec, "access_modes")
def _some_access_mode(modes: Sequence[str]) -> Iterator[Finding]:
    if not modes:
        yield (), "is empty; give at least one"


@rule_for(PersistentVolumeClaimSpec)
def _claims_storage(claim: PersistentVolumeClaimSpec) -> Iterator[Finding]:
    if "access_modes" not in claim.model_fields_set:
        yield ("accessModes",), _MISSING
    if "storage" not in claim.resources.requests:
        yield ("resources", "requests", "storage"), f"{_MISSING}; write how much is claimed"


@rule_for(Volume)
def _one_source(volume: Volume) -> Iterator[Finding]:
    if len(volume.model_fields_set - {"name"}) != 1:
        yield (), f"needs exactly one source; write one of {', '.join(_USUAL_SOURCES)}"


@rule_for(Container, "env")
def _variables_once(variables: Sequence[EnvVar]) -> Iterator[Finding]:
    return duplicate_names(variables, "variable")


@rule_for(PodSpec)
def _names_once_and_mounts_declared(pod: PodSpec) -> Iterator[Finding]:
    for place, message in duplicate_names(pod.volumes, "volume"):
        yield ("volumes", *place), message
    declared = {volume.name for volume in pod.volumes}
    names: set[str] = set()
    for key, containers in (("initContainers", pod.init_containers), ("containers", pod.containers)):
        for index, container in enumerate(containers):
            if container.name in names:
                yield (key, index, "name"), f"container {container.name!r} is given twice; remove one"
            names.add(container.name)
            for place, message in mount_findings(container.volume_mounts, declared):
                yield (key, index, "volumeMounts", *place), message


def mount_folder(mount: VolumeMount) -> str:
    """Returns the mount's path in a form that is the same for all spellings of the same place."""
    return "/" + posixpath.normpath(mount.mount_path).lstrip("/")


def mounts_at(container: Container, path: str) -> bool:
    """Returns whether a container has a mount at this path already."""
    return any(mount_folder(mount) == path for mount in container.volume_mounts)


def mount_findings(mounts: Sequence[VolumeMount], declared: Collection[str]) -> Iterator[Finding]:
    """Yields what is wrong with a container's mounts.

    Args:
        mounts: The container's `volumeMounts`.
        declared: Names of the volumes that the pod has.
    """
    seen: dict[str, int] = {}
    for index, mount in enumerate(mounts):
        path = mount_folder(mount)
        if path in seen:
            yield (
                (index, "mountPath"),
                f"{path} is mounted twice (also by entry {seen[path]}), so one would hide the other; remove one",
            )
        seen.setdefault(path, index)
        if mount.name not in declared:
            known = ", ".join(sorted(declared)) or "none"
            yield (
                (index, "name"),
                f"no volume {mount.name!r} is declared, so the pod would be refused; declared: {known}",
            )


def duplicate_names(entries: Sequence[EnvVar] | Sequence[Volume], what: str) -> Iterator[Finding]:
    """Yields entries whose name was used before; the API server refuses such lists."""
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if entry.name in seen:
            yield (index, "name"), f"{what} {entry.name!r} is given twice; remove one"
        seen.add(entry.name)
