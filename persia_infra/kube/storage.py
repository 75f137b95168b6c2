"""PersistentVolumes and their claims, as manifests bring them next to jobs.

They are checked and declared as they are; storage that a job needs for itself is described in its settings.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from persia_infra.kube.types import storage as types
from persia_infra.kube.types.base import KubeType, rule_for
from persia_infra.kube.types.pods import PersistentVolumeClaimSpec
from persia_infra.spec.base import DnsLabel, Finding

_NOT_A_SOURCE = frozenset(
    (
        *("access_modes", "capacity", "claim_ref", "mount_options", "node_affinity", "storage_class_name"),
        *("persistent_volume_reclaim_policy", "volume_attributes_class_name", "volume_mode"),
    )
)


class _Manifest(KubeType):
    """What this library notes about the object around a `spec`; it is not written into the spec."""

    namespace: DnsLabel | None = Field(default=None, exclude=True)
    """The namespace of a claim; by default the one that its file is declared into."""
    labels: dict[str, str] = Field(default={}, exclude=True)
    """Labels of the object, by which a claim may select a volume."""

    def notes(self) -> Iterator[Finding]:
        """Yields what Kubernetes does with the object that its author may not expect."""
        return iter(())


class PersistentVolumeSpec(types.PersistentVolumeSpec, _Manifest):
    """Storage that exists already."""

    kind: Literal["PersistentVolume"] = Field(default="PersistentVolume", exclude=True)
    """The kind of the object."""

    def notes(self) -> Iterator[Finding]:
        """Yields what Kubernetes does with the volume that its author may not expect."""
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


class ClaimSpec(PersistentVolumeClaimSpec, _Manifest):
    """A claim on storage."""

    kind: Literal["PersistentVolumeClaim"] = Field(default="PersistentVolumeClaim", exclude=True)
    """The kind of the object."""


@rule_for(types.PersistentVolumeSpec, "access_modes")
def _some_access_mode(modes: Sequence[str]) -> Iterator[Finding]:
    if not modes:
        yield (), "is empty; give at least one"


@rule_for(types.PersistentVolumeSpec)
def _volume(volume: types.PersistentVolumeSpec) -> Iterator[Finding]:
    if "access_modes" not in volume.model_fields_set:
        yield ("accessModes",), "is required and missing"
    if "storage" not in volume.capacity:
        yield ("capacity", "storage"), "is required and missing"
    own_fields = types.PersistentVolumeSpec.model_fields.keys() - _NOT_A_SOURCE
    if len(volume.model_fields_set & own_fields) != 1:
        yield (), "needs exactly one source, such as nfs, hostPath or csi, or there is nothing to mount"
