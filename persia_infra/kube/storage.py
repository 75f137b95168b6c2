"""PersistentVolumes and their claims as manifests beside jobs bring them.

They are checked and declared as they are; storage that a job needs of its own is described in its settings.
"""

from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from persia_infra.jobs.settings.run_volumes import AccessMode
from persia_infra.kube.pods import CsiVolume, HostPathVolume, NfsVolume, Resources
from persia_infra.spec.base import DnsLabel, Finding, Quantity, Spec, refuse


class _Storage(Spec):
    namespace: DnsLabel | None = Field(default=None, exclude=True)
    labels: dict[str, str] = Field(default={}, exclude=True)
    """Of the object, by which a claim may select a volume."""
    access_modes: list[AccessMode] = Field(min_length=1)
    volume_mode: Literal["Filesystem", "Block"] | None = None
    storage_class_name: str | None = None

    def notes(self) -> Iterator[Finding]:
        """What Kubernetes does with it that its author may not expect."""
        return iter(())

    def object_spec(self) -> dict[str, Any]:
        """The keys that were given, in Kubernetes' spelling."""
        return self.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)


class PersistentVolumeSpec(_Storage):
    """Storage that is there already."""

    kind: Literal["PersistentVolume"] = Field(default="PersistentVolume", exclude=True)
    capacity: dict[str, Quantity]
    persistent_volume_reclaim_policy: Literal["Retain", "Delete", "Recycle"] | None = None
    mount_options: list[str] | None = None
    claim_ref: dict[str, Any] | None = None
    node_affinity: dict[str, Any] | None = None
    nfs: NfsVolume | None = None
    host_path: HostPathVolume | None = None
    csi: CsiVolume | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        if "storage" not in self.capacity:
            yield ("capacity", "storage"), "is required and missing"
        if sum(source is not None for source in (self.nfs, self.host_path, self.csi)) != 1:
            yield (), "needs exactly one of nfs, hostPath and csi, or there is nothing to mount"

    def notes(self) -> Iterator[Finding]:
        """What Kubernetes does with it that its author may not expect."""
        if self.persistent_volume_reclaim_policy == "Recycle":
            yield (
                ("persistentVolumeReclaimPolicy",),
                "Recycle deletes every file on the volume when its claim goes, and Kubernetes has deprecated it; "
                "write Retain to keep them",
            )
        if self.nfs and self.access_modes == ["ReadWriteOnce"]:
            yield (
                ("accessModes",),
                "ReadWriteOnce says that one node mounts it, which NFS does not enforce; "
                "write ReadWriteMany where the pods of several nodes share it",
            )


class ClaimSpec(_Storage):
    """A claim on storage."""

    kind: Literal["PersistentVolumeClaim"] = Field(default="PersistentVolumeClaim", exclude=True)
    resources: Resources
    volume_name: str | None = None
    selector: dict[str, Any] | None = None
    data_source: dict[str, Any] | None = None
    data_source_ref: dict[str, Any] | None = None
    volume_attributes_class_name: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if "storage" not in self.resources.requests:
            refuse([(("resources", "requests", "storage"), "is required and missing; write how much is claimed")])
        return self
