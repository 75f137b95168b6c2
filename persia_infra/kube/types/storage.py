"""Types of the Kubernetes API: the group storage.

Generated from the OpenAPI documents of Kubernetes 1.36.3 by `make types`. Do not edit.
"""

# ruff: noqa: RUF012

from typing import Literal

from pydantic import Field

from persia_infra.kube.types.base import Boolean, Integer, KubeKind, KubeType, Time
from persia_infra.kube.types.meta import ObjectMeta
from persia_infra.kube.types.pods import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    NFSVolumeSource,
    NodeSelector,
    PersistentVolumeClaimSpec,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from persia_infra.spec.base import Quantity


class AzureFilePersistentVolumeSource(KubeType):
    read_only: Boolean | None = None
    secret_name: str
    secret_namespace: str | None = None
    share_name: str


class SecretReference(KubeType):
    name: str | None = None
    namespace: str | None = None


class CSIPersistentVolumeSource(KubeType):
    controller_expand_secret_ref: SecretReference | None = None
    controller_publish_secret_ref: SecretReference | None = None
    driver: str
    fs_type: str | None = None
    node_expand_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    read_only: Boolean | None = None
    volume_attributes: dict[str, str] = {}
    volume_handle: str


class CephFSPersistentVolumeSource(KubeType):
    monitors: list[str]
    path: str | None = None
    read_only: Boolean | None = None
    secret_file: str | None = None
    secret_ref: SecretReference | None = None
    user: str | None = None


class CinderPersistentVolumeSource(KubeType):
    fs_type: str | None = None
    read_only: Boolean | None = None
    secret_ref: SecretReference | None = None
    volume_id: str = Field(alias="volumeID")


class FlexPersistentVolumeSource(KubeType):
    driver: str
    fs_type: str | None = None
    options: dict[str, str] = {}
    read_only: Boolean | None = None
    secret_ref: SecretReference | None = None


class GlusterfsPersistentVolumeSource(KubeType):
    endpoints: str
    endpoints_namespace: str | None = None
    path: str
    read_only: Boolean | None = None


class ISCSIPersistentVolumeSource(KubeType):
    chap_auth_discovery: Boolean | None = None
    chap_auth_session: Boolean | None = None
    fs_type: str | None = None
    initiator_name: str | None = None
    iqn: str
    iscsi_interface: str | None = None
    lun: Integer
    portals: list[str] = []
    read_only: Boolean | None = None
    secret_ref: SecretReference | None = None
    target_portal: str


class LocalVolumeSource(KubeType):
    fs_type: str | None = None
    path: str


class ObjectReference(KubeType):
    api_version: str | None = None
    field_path: str | None = None
    kind: str | None = None
    name: str | None = None
    namespace: str | None = None
    resource_version: str | None = None
    uid: str | None = None


class RBDPersistentVolumeSource(KubeType):
    fs_type: str | None = None
    image: str
    keyring: str | None = None
    monitors: list[str]
    pool: str | None = None
    read_only: Boolean | None = None
    secret_ref: SecretReference | None = None
    user: str | None = None


class ScaleIOPersistentVolumeSource(KubeType):
    fs_type: str | None = None
    gateway: str
    protection_domain: str | None = None
    read_only: Boolean | None = None
    secret_ref: SecretReference
    ssl_enabled: Boolean | None = None
    storage_mode: str | None = None
    storage_pool: str | None = None
    system: str
    volume_name: str | None = None


class StorageOSPersistentVolumeSource(KubeType):
    fs_type: str | None = None
    read_only: Boolean | None = None
    secret_ref: ObjectReference | None = None
    volume_name: str | None = None
    volume_namespace: str | None = None


class VolumeNodeAffinity(KubeType):
    required: NodeSelector | None = None


class PersistentVolumeSpec(KubeType):
    access_modes: list[Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]] = []
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    capacity: dict[str, Quantity] = {}
    cephfs: CephFSPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    claim_ref: ObjectReference | None = None
    csi: CSIPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    mount_options: list[str] = []
    nfs: NFSVolumeSource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: Literal["Delete", "Recycle", "Retain"] | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = Field(default=None, alias="scaleIO")
    storage_class_name: str | None = None
    storageos: StorageOSPersistentVolumeSource | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: Literal["Block", "Filesystem"] | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


class PersistentVolumeStatus(KubeType):
    last_phase_transition_time: Time | None = None
    message: str | None = None
    phase: Literal["Available", "Bound", "Failed", "Pending", "Released"] | None = None
    reason: str | None = None


class PersistentVolume(KubeKind):
    api_version: Literal["v1"] = "v1"
    kind: Literal["PersistentVolume"] = "PersistentVolume"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: PersistentVolumeSpec | None = None
    status: PersistentVolumeStatus | None = None


class ModifyVolumeStatus(KubeType):
    status: Literal["InProgress", "Infeasible", "Pending"]
    target_volume_attributes_class_name: str | None = None


class PersistentVolumeClaimCondition(KubeType):
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str
    type: str


class PersistentVolumeClaimStatus(KubeType):
    access_modes: list[Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]] = []
    allocated_resource_statuses: dict[
        str,
        Literal[
            "ControllerResizeInProgress",
            "ControllerResizeInfeasible",
            "NodeResizeInProgress",
            "NodeResizeInfeasible",
            "NodeResizePending",
        ],
    ] = {}
    allocated_resources: dict[str, Quantity] = {}
    capacity: dict[str, Quantity] = {}
    conditions: list[PersistentVolumeClaimCondition] = []
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None
    phase: Literal["Bound", "Lost", "Pending"] | None = None


class PersistentVolumeClaim(KubeKind):
    api_version: Literal["v1"] = "v1"
    kind: Literal["PersistentVolumeClaim"] = "PersistentVolumeClaim"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec | None = None
    status: PersistentVolumeClaimStatus | None = None


class TopologySelectorLabelRequirement(KubeType):
    key: str
    values: list[str]


class TopologySelectorTerm(KubeType):
    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(KubeKind):
    allow_volume_expansion: Boolean | None = None
    allowed_topologies: list[TopologySelectorTerm] = []
    api_version: Literal["storage.k8s.io/v1"] = "storage.k8s.io/v1"
    kind: Literal["StorageClass"] = "StorageClass"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    mount_options: list[str] = []
    parameters: dict[str, str] = {}
    provisioner: str
    reclaim_policy: Literal["Delete", "Recycle", "Retain"] | None = None
    volume_binding_mode: Literal["Immediate", "WaitForFirstConsumer"] | None = None


# Imported last, because these rules import this module.
import persia_infra.kube.storage  # noqa: E402, F401
