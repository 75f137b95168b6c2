"""Volumes of runs: the platform's form (`volume_type`, `mount_path`, `spec`), or Kubernetes' own.

A share that lies outside the cluster is mounted through a PersistentVolume and a claim rather than directly, so
that its pods can live under the strictest Pod Security.
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
    """A disk of the pod's own, made with it and removed with it."""

    size: Annotated[Quantity, ABOVE_ZERO]
    storage_class: ObjectName | None = None
    access_mode: AccessMode = "ReadWriteOnce"


class ExistingClaim(Spec):
    """A claim that is in the namespace already, and outlives the run."""

    claim_name: ObjectName


class NamedObject(Spec):
    """A ConfigMap or Secret that is in the namespace already."""

    name: ObjectName
    optional: bool | None = None


class NfsShare(Spec):
    """A folder of an NFS server."""

    server: NfsServer
    path: AbsolutePath
    mount_options: list[str] = Field(default=[])


class GcsBucket(Spec):
    """A bucket of Cloud Storage, mounted with GKE's FUSE driver."""

    bucket: Annotated[str, matching(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", "no name of a bucket; leave out gs://")]
    mount_options: str | None = None
    only_dir: str | None = None


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
    found = to_snake(value)
    if found not in _SPECS:
        raise ValueError(f"is no kind of volume; write one of {', '.join(_SPECS)}")
    return found


@dataclass(frozen=True)
class Share:
    """A PersistentVolume and the claim on it, for a share outside the cluster."""

    name: str
    """Of the claim, in the job's namespace."""
    volume: str
    server: str
    path: str
    read_only: bool
    mount_options: tuple[str, ...]


class RunVolume(Spec):
    """One volume, and where the run sees it."""

    name: DnsLabel
    volume_type: Annotated[str, AfterValidator(_volume_type)] | None = None
    spec: dict[str, Any] | None = None
    mount_path: Annotated[str, matching(r"/[^:]*", "no absolute path; start it with '/' and leave out ':'")] | None = (
        None
    )
    read_only: bool | None = None
    sub_path: SubPath | None = None
    host_path: HostPathVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    nfs: NfsVolume | None = None
    empty_dir: EmptyDirVolume | None = None
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    csi: CsiVolume | None = None
    ephemeral: EphemeralVolume | None = None

    @property
    def mount(self) -> VolumeMount | None:
        """Where the main container sees it, if it says so itself."""
        if self.mount_path is None:
            return None
        optional = {"read_only": self.read_only, "sub_path": self.sub_path}
        given = {key: value for key, value in optional.items() if value is not None}
        return VolumeMount(name=self.name, mount_path=self.mount_path, **given)

    @property
    def is_gcs_fuse(self) -> bool:
        """Whether GKE's FUSE driver mounts it, whichever way it is written."""
        return self.volume_type == "gcs_fuse" or (self.csi is not None and self.csi.driver == GCS_FUSE_DRIVER)

    def share(self, job: str) -> Share | None:
        """The volume and claim that it needs besides itself."""
        name = f"{job}-{self.name}"
        match self._described():
            case NfsShare() as nfs:
                return Share(name, self.name, nfs.server, nfs.path, bool(self.read_only), tuple(nfs.mount_options))
            case NfsVolume() as nfs:
                return Share(name, self.name, nfs.server, nfs.path, bool(self.read_only or nfs.read_only), ())
        return None

    def source(self, job: str) -> Volume:
        """The volume as the pod has it."""
        match self._described():
            case NfsShare() | NfsVolume():
                claim = {"claimName": f"{job}-{self.name}", **({"readOnly": True} if self.read_only else {})}
                found: dict[str, Any] = {"persistentVolumeClaim": claim}
            case NewClaim() as new:
                wanted: dict[str, Any] = {
                    "accessModes": [new.access_mode],
                    "resources": {"requests": {"storage": new.size}},
                }
                if new.storage_class:
                    wanted["storageClassName"] = new.storage_class
                found = {"ephemeral": {"volumeClaimTemplate": {"spec": wanted}}}
            case ExistingClaim() as claim:
                found = {"persistentVolumeClaim": {"claimName": claim.claim_name}}
            case NamedObject() as named:
                key = "name" if self.volume_type == "config_map" else "secretName"
                source = {key: named.name, **({"optional": named.optional} if named.optional is not None else {})}
                found = {"configMap" if key == "name" else "secret": source}
            case GcsBucket() as bucket:
                found = {"csi": _gcs_fuse(bucket, read_only=bool(self.read_only))}
            case described:
                key = self.volume_type or next(iter(self._sources))
                found = {key: described.model_dump(exclude_unset=True, exclude_none=True)}
        return Volume.model_validate({"name": self.name, **found})

    @property
    def _sources(self) -> dict[str, Spec]:
        """Kubernetes' sources that are given."""
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
                yield ("spec",), f"needs a volume_type beside it; write one of {', '.join(_SPECS)}"
            elif len(sources) != 1:
                yield (
                    (),
                    "needs exactly one source; write volume_type and spec, or one source as in Kubernetes",
                )
            return
        for key in sources:
            yield (key,), "is given besides volume_type, so nobody can tell which should win; remove one"
        data = self.spec or {}
        model = _model(self.volume_type, data)
        try:
            model.model_validate(data)
        except ValidationError as error:
            yield from ((("spec", *place), said) for place, said in findings_from(error, model, data))
        if self.mount_path is None:
            yield ("mount_path",), "is missing, so no program would see the volume; add it"


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
