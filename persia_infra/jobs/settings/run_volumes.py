"""Volumes of run settings: in the platform's form (`volume_type`, `mount_path`, `spec`) or in Kubernetes' own.

A share outside the cluster is mounted through a PersistentVolume and a claim rather than directly, so
that its pods can run under the strictest Pod Security level.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic.alias_generators import to_snake

from persia_infra.kube.pods import (
    ABOVE_ZERO,
    AbsolutePath,
    ClaimVolume,
    ConfigMapVolume,
    CsiVolume,
    EmptyDirVolume,
    EphemeralVolume,
    HostPathVolume,
    NfsServer,
    NfsVolume,
    ObjectName,
    SecretVolume,
    SubPath,
    Volume,
    VolumeMount,
)
from persia_infra.spec.base import DnsLabel, Finding, Quantity, Spec, matching, refuse
from persia_infra.spec.errors import findings_from

GCS_FUSE_DRIVER = "gcsfuse.csi.storage.gke.io"

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]


class NewClaim(Spec):
    """A disk that is created and deleted together with its pod."""

    size: Annotated[Quantity, ABOVE_ZERO]
    """Size of the disk, such as 100Gi."""
    storage_class: ObjectName | None = None
    """The StorageClass of the disk; the cluster's default when absent."""
    access_mode: AccessMode = "ReadWriteOnce"
    """How pods may mount the disk."""


class ExistingClaim(Spec):
    """A PersistentVolumeClaim that already exists in the namespace and outlives the run."""

    claim_name: ObjectName
    """The name of a PersistentVolumeClaim in the job's namespace."""


class NamedObject(Spec):
    """A ConfigMap or Secret that already exists in the namespace."""

    name: ObjectName
    """The name of the ConfigMap or Secret in the job's namespace."""
    optional: bool | None = None
    """Starts the pod even if the object does not exist."""


class NfsShare(Spec):
    """A folder on an NFS server."""

    server: NfsServer
    """Name or address of the NFS server."""
    path: AbsolutePath
    """The exported folder, as an absolute path."""
    mount_options: list[str] = Field(default=[])
    """Options for mounting, such as `nfsvers=4.1`."""


class GcsBucket(Spec):
    """A Cloud Storage bucket, mounted with GKE's FUSE driver."""

    bucket: Annotated[str, matching(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", "bucket name; leave out gs://")]
    """The name of the Cloud Storage bucket, without gs://."""
    mount_options: str | None = None
    """Comma-separated options of Cloud Storage FUSE; implicit-dirs by default."""
    only_dir: str | None = None
    """The folder of the bucket to mount; the whole bucket when absent."""


_SPECS: dict[str, type[Spec]] = {
    "persistent_volume_claim": NewClaim,
    "config_map": NamedObject,
    "secret": NamedObject,
    "nfs": NfsShare,
    "empty_dir": EmptyDirVolume,
    "host_path": HostPathVolume,
    "gcs_fuse": GcsBucket,
}


def _volume_type(value: str) -> str:
    volume_type = to_snake(value)
    if volume_type not in _SPECS:
        raise ValueError(f"is not a valid volume type; write one of {', '.join(_SPECS)}")
    return volume_type


@dataclass(frozen=True)
class Share:
    """A PersistentVolume and the claim on it, for a share outside the cluster."""

    name: str
    """The name of the claim, in the job's namespace."""
    volume: str
    server: str
    path: str
    read_only: bool
    mount_options: tuple[str, ...]


class RunVolume(Spec):
    """A volume and the path at which it is mounted."""

    name: DnsLabel
    """The name of the volume, unique within the pod."""
    volume_type: Annotated[str, AfterValidator(_volume_type)] | None = None
    """The type of the volume in the platform's terms, such as `nfs` or `gcs_fuse`; needs `spec`."""
    spec: dict[str, Any] | None = None
    """The details of the volume, according to `volumeType`."""
    mount_path: Annotated[str, matching(r"/[^:]*", "absolute path; start it with '/' and leave out ':'")] | None = None
    """Absolute path at which the volume is mounted in the main container."""
    read_only: bool | None = None
    """Mounts the volume read-only."""
    sub_path: SubPath | None = None
    """The folder inside the volume to mount; its root when absent."""
    host_path: HostPathVolume | None = None
    """A folder of the node, as in Kubernetes."""
    persistent_volume_claim: ClaimVolume | None = None
    """An existing PersistentVolumeClaim, as in Kubernetes."""
    nfs: NfsVolume | None = None
    """An NFS share, as in Kubernetes."""
    empty_dir: EmptyDirVolume | None = None
    """An empty folder that lives as long as the pod, as in Kubernetes."""
    config_map: ConfigMapVolume | None = None
    """The files of a ConfigMap, as in Kubernetes."""
    secret: SecretVolume | None = None
    """The files of a Secret, as in Kubernetes."""
    csi: CsiVolume | None = None
    """A volume of a CSI driver, as in Kubernetes."""
    ephemeral: EphemeralVolume | None = None
    """A disk that is created and removed with the pod, as in Kubernetes."""

    @property
    def mount(self) -> VolumeMount | None:
        """The mount in the main container, if the volume has a mount path of its own."""
        if self.mount_path is None:
            return None
        optional = {"read_only": self.read_only, "sub_path": self.sub_path}
        given = {key: value for key, value in optional.items() if value is not None}
        return VolumeMount(name=self.name, mount_path=self.mount_path, **given)

    def share(self, job: str) -> Share | None:
        """The PersistentVolume and claim for an NFS share; None for any other volume."""
        name = f"{job}-{self.name}"
        match self._described():
            case NfsShare() as nfs:
                return Share(name, self.name, nfs.server, nfs.path, bool(self.read_only), tuple(nfs.mount_options))
            case NfsVolume() as nfs:
                return Share(name, self.name, nfs.server, nfs.path, bool(self.read_only or nfs.read_only), ())
        return None

    def source(self, job: str) -> Volume:
        """The volume as part of a pod."""
        match self._described():
            case NfsShare() | NfsVolume():
                claim = {"claimName": f"{job}-{self.name}", **({"readOnly": True} if self.read_only else {})}
                source: dict[str, Any] = {"persistentVolumeClaim": claim}
            case NewClaim() as new:
                wanted: dict[str, Any] = {
                    "accessModes": [new.access_mode],
                    "resources": {"requests": {"storage": new.size}},
                }
                if new.storage_class:
                    wanted["storageClassName"] = new.storage_class
                source = {"ephemeral": {"volumeClaimTemplate": {"spec": wanted}}}
            case ExistingClaim() as claim:
                source = {"persistentVolumeClaim": {"claimName": claim.claim_name}}
            case NamedObject() as named:
                key = "name" if self.volume_type == "config_map" else "secretName"
                reference = {key: named.name, **({"optional": named.optional} if named.optional is not None else {})}
                source = {"configMap" if key == "name" else "secret": reference}
            case GcsBucket() as bucket:
                source = {"csi": _gcs_fuse(bucket, read_only=bool(self.read_only))}
            case described:
                key = self.volume_type or next(iter(self._sources))
                source = {key: described.model_dump(exclude_unset=True, exclude_none=True)}
        return Volume.model_validate({"name": self.name, **source})

    @property
    def _sources(self) -> dict[str, Spec]:
        """The given volume sources in Kubernetes' own form."""
        ours = {"name", "volume_type", "spec", "mount_path", "read_only", "sub_path"}
        named = {key: getattr(self, key) for key in type(self).model_fields if key not in ours}
        return {key: source for key, source in named.items() if source is not None}

    def _described(self) -> Spec:
        if self.volume_type is None:
            return next(iter(self._sources.values()))
        return _model(self.volume_type, self.spec or {}).model_validate(self.spec or {})

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        sources = self._sources
        if self.volume_type is None:
            if self.spec is not None:
                yield ("spec",), f"needs a volume_type as well; write one of {', '.join(_SPECS)}"
            elif len(sources) != 1:
                yield (
                    (),
                    "needs exactly one source; write volume_type and spec, or one source as in Kubernetes",
                )
            return
        for key in sources:
            yield (key,), "cannot be combined with volume_type, because a volume has only one source; remove one"
        data = self.spec or {}
        model = _model(self.volume_type, data)
        try:
            model.model_validate(data)
        except ValidationError as error:
            yield from ((("spec", *place), message) for place, message in findings_from(error, model, data))
        if self.mount_path is None:
            yield ("mount_path",), "is missing, so no program could use the volume; add it"


def _model(volume_type: str, spec: Mapping[str, Any]) -> type[Spec]:
    if volume_type == "persistent_volume_claim" and ("claim_name" in spec or "claimName" in spec):
        return ExistingClaim
    return _SPECS[volume_type]


def _gcs_fuse(bucket: GcsBucket, *, read_only: bool) -> dict[str, Any]:
    options = [bucket.mount_options or "implicit-dirs", *([f"only-dir={bucket.only_dir}"] if bucket.only_dir else [])]
    return {
        "driver": GCS_FUSE_DRIVER,
        "readOnly": read_only,
        "volumeAttributes": {"bucketName": bucket.bucket, "mountOptions": ",".join(options)},
    }
