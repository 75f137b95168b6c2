"""What every pod of every job is described with, in Kubernetes' own words.

Only the volume sources that training jobs use are known; anything else is refused rather than passed on.
"""

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from persia_infra.kube.literal_secrets import holds_secret
from persia_infra.spec.base import DnsLabel, Finding, Quantity, Spec, matching, refuse
from persia_infra.spec.quantity import parse_quantity

GPU = "nvidia.com/gpu"

_HOST_PATH_TYPES = (
    *("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File"),
    *("Socket", "CharDevice", "BlockDevice"),
)


def _above_zero(value: str) -> str:
    if value and parse_quantity(value) <= 0:
        raise ValueError("leaves no room at all; write more than zero")
    return value


def _no_step_up(value: str) -> str:
    if ".." in value.split("/"):
        raise ValueError("has '..' in it, which Kubernetes refuses; write the path that is meant")
    return value


def _below(value: str) -> str:
    if value.startswith("/"):
        raise ValueError("must be a path below the volume's own root; leave out the '/' at its start")
    return _no_step_up(value)


def _host_path_type(value: str) -> str:
    if value not in _HOST_PATH_TYPES:
        raise ValueError(f"not one of the values it can have; write {', '.join(filter(None, _HOST_PATH_TYPES))}")
    return value


ABOVE_ZERO = AfterValidator(_above_zero)
ObjectName = Annotated[
    str,
    matching(
        r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        "no name that an object of Kubernetes can have; use lower-case letters, digits, '-' and '.'",
    ),
]
"""Of an object that is there already, whose maker may have used dots."""
AbsolutePath = Annotated[str, matching(r"/.*", "no absolute path; start it with '/'"), AfterValidator(_no_step_up)]
NfsServer = Annotated[
    str, matching(r"[A-Za-z0-9_.:\[\]-]+", "no name or address of a server; leave out spaces and '/'")
]
SubPath = Annotated[str, AfterValidator(_below)]


class Resources(Spec):
    """What one container asks for (`requests`) and may use at most (`limits`)."""

    requests: dict[str, Quantity] = Field(default={})
    limits: dict[str, Quantity] = Field(default={})

    @property
    def effective_requests(self) -> dict[str, Decimal]:
        """What the scheduler counts: a limit without a request is a request as well."""
        return {name: parse_quantity(text) for name, text in {**self.limits, **self.requests}.items()}

    @property
    def gpus(self) -> int:
        """Whole GPUs of one container."""
        return int(parse_quantity(self.limits.get(GPU, "0")))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(resource_findings(self.requests, self.limits))
        return self


def resource_findings(requests: Mapping[str, str], limits: Mapping[str, str]) -> Iterator[Finding]:
    """What Kubernetes would refuse in a container's resources, each at `requests` or `limits` and the name."""
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
        yield ("limits", GPU), f"{limit} is no whole number of GPUs; a container gets whole ones only"
    if request is not None and (limit is None or parse_quantity(request) < parse_quantity(limit)):
        yield (
            ("requests", GPU),
            "GPUs cannot be overcommitted, so Kubernetes refuses a request that is not also the limit; "
            f'write limits: {{"{GPU}": "{request}"}}',
        )


class Named(Spec):
    """A Secret or ConfigMap that is in the namespace already."""

    name: ObjectName


class KeyRef(Named):
    """One key of it."""

    key: str
    optional: bool | None = None


class FieldRef(Spec):
    """A field of the pod itself."""

    field_path: str
    api_version: str | None = None


class ResourceFieldRef(Spec):
    """What a container of the pod asks for, or may use at most."""

    resource: str
    container_name: str | None = None
    divisor: Quantity | None = None


class EnvSource(Spec):
    """Where the value of a variable comes from."""

    secret_key_ref: KeyRef | None = None
    config_map_key_ref: KeyRef | None = None
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("needs exactly one of secretKeyRef, configMapKeyRef, fieldRef, resourceFieldRef")
        return self


class EnvVar(Spec):
    """An environment variable, given as text or taken from elsewhere."""

    name: Annotated[str, matching(r"[A-Za-z_.-][A-Za-z0-9_.-]*", "no name of a variable; use letters, digits and '_'")]
    value: str | None = None
    value_from: EnvSource | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if self.value is not None and self.value_from is not None:
            raise ValueError("has both value and valueFrom, which Kubernetes refuses; keep one")
        if self.value is not None and holds_secret(self.name, self.value):
            said = (
                f"the value of {self.name} looks like a secret, and would be readable in the stack, its state and "
                "every rendering; put it into a Secret of the namespace, and name that in valueFrom.secretKeyRef"
            )
            refuse([(("value",), said)])
        return self


class VolumeMount(Spec):
    """Where a container sees a volume."""

    name: str
    mount_path: Annotated[str, matching(r"/[^:]*", "no absolute path; start it with '/' and leave out ':'")]
    read_only: bool | None = None
    sub_path: SubPath | None = None
    sub_path_expr: SubPath | None = None
    mount_propagation: Literal["None", "HostToContainer", "Bidirectional"] | None = None

    @property
    def folder(self) -> str:
        """The path in the one way in which two that are the same place are the same text."""
        return "/" + posixpath.normpath(self.mount_path).lstrip("/")


class HostPathVolume(Spec):
    """A folder or file of the node."""

    path: AbsolutePath
    type: Annotated[str, AfterValidator(_host_path_type)] | None = None


class ClaimVolume(Spec):
    """A PersistentVolumeClaim that is in the namespace already."""

    claim_name: ObjectName
    read_only: bool | None = None


class NfsVolume(Spec):
    """A share of an NFS server."""

    server: NfsServer
    path: AbsolutePath
    read_only: bool | None = None


class EmptyDirVolume(Spec):
    """A folder that lives as long as its pod."""

    medium: Literal["", "Memory"] | None = None
    size_limit: Annotated[Quantity, ABOVE_ZERO] | None = None


class KeyToPath(Spec):
    """The file name that one key is given."""

    key: str
    path: str
    mode: int | None = None


class ConfigMapVolume(Spec):
    """A ConfigMap that is in the namespace already, as files."""

    name: ObjectName
    items: list[KeyToPath] | None = None
    default_mode: int | None = None
    optional: bool | None = None


class SecretVolume(Spec):
    """A Secret that is in the namespace already, as files."""

    secret_name: ObjectName
    items: list[KeyToPath] | None = None
    default_mode: int | None = None
    optional: bool | None = None


class CsiVolume(Spec):
    """An inline volume of a storage driver, such as GCS FUSE."""

    driver: str
    fs_type: str | None = None
    node_publish_secret_ref: Named | None = None
    read_only: bool | None = None
    volume_attributes: dict[str, str] | None = None


class DiskVolume(Spec):
    """A disk of Compute Engine that is there already; a PersistentVolumeClaim is the usual way."""

    pd_name: str
    fs_type: str | None = None
    partition: int | None = None
    read_only: bool | None = None


class ClaimTemplate(Spec):
    """A claim that Kubernetes makes for one pod, and removes with it."""

    metadata: dict[str, Any] | None = None
    spec: dict[str, Any]


class EphemeralVolume(Spec):
    """A disk that lives as long as its pod."""

    volume_claim_template: ClaimTemplate


class Volume(Spec):
    """A named volume with exactly one source."""

    name: DnsLabel
    host_path: HostPathVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    nfs: NfsVolume | None = None
    empty_dir: EmptyDirVolume | None = None
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    csi: CsiVolume | None = None
    gce_persistent_disk: DiskVolume | None = None
    ephemeral: EphemeralVolume | None = None
    projected: dict[str, Any] | None = None
    downward_api: dict[str, Any] | None = Field(default=None, alias="downwardAPI")

    @model_validator(mode="after")
    def _exactly_one_source(self) -> Self:
        if len(self.model_fields_set - {"name"}) != 1:
            sources = ", ".join(
                field.alias or name for name, field in type(self).model_fields.items() if name != "name"
            )
            raise ValueError(f"needs exactly one source; write one of {sources}")
        return self


def mount_findings(mounts: Sequence[VolumeMount], declared: Collection[str]) -> Iterator[Finding]:
    """What is wrong with a container's mounts.

    Args:
        mounts: The container's `volumeMounts`.
        declared: Names of the volumes that the pod has.
    """
    seen: dict[str, int] = {}
    for index, mount in enumerate(mounts):
        path = mount.folder
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
    """Entries whose name was used before; the API server refuses such lists."""
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if entry.name in seen:
            yield (index, "name"), f"{what} {entry.name!r} is given twice; remove one"
        seen.add(entry.name)
