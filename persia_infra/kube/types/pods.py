"""Types of the Kubernetes API: pods.

Generated from the OpenAPI documents of Kubernetes 1.36.3 by `make types`. Do not edit.
"""

# ruff: noqa: RUF012

from typing import Literal

from pydantic import Field

from persia_infra.kube.types.base import Boolean, Integer, KubeType
from persia_infra.kube.types.meta import LabelSelector, ObjectMeta
from persia_infra.spec.base import Quantity


class NodeSelectorRequirement(KubeType):
    key: str
    operator: Literal["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"]
    values: list[str] = []


class NodeSelectorTerm(KubeType):
    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(KubeType):
    node_selector_terms: list[NodeSelectorTerm]


class PreferredSchedulingTerm(KubeType):
    preference: NodeSelectorTerm
    weight: Integer


class NodeAffinity(KubeType):
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] = []
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(KubeType):
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []
    namespace_selector: LabelSelector | None = None
    namespaces: list[str] = []
    topology_key: str


class WeightedPodAffinityTerm(KubeType):
    pod_affinity_term: PodAffinityTerm
    weight: Integer


class PodAffinity(KubeType):
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []


class PodAntiAffinity(KubeType):
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []


class Affinity(KubeType):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class ContainerPort(KubeType):
    container_port: Integer
    host_ip: str | None = Field(default=None, alias="hostIP")
    host_port: Integer | None = None
    name: str | None = None
    protocol: Literal["SCTP", "TCP", "UDP"] | None = None


class ContainerResizePolicy(KubeType):
    resource_name: str
    restart_policy: str


class ContainerRestartRuleOnExitCodes(KubeType):
    operator: str
    values: list[Integer] = []


class ContainerRestartRule(KubeType):
    action: str
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class ConfigMapEnvSource(KubeType):
    name: str | None = None
    optional: Boolean | None = None


class SecretEnvSource(KubeType):
    name: str | None = None
    optional: Boolean | None = None


class EnvFromSource(KubeType):
    config_map_ref: ConfigMapEnvSource | None = None
    prefix: str | None = None
    secret_ref: SecretEnvSource | None = None


class ConfigMapKeySelector(KubeType):
    key: str
    name: str | None = None
    optional: Boolean | None = None


class FileKeySelector(KubeType):
    key: str
    optional: Boolean | None = None
    path: str
    volume_name: str


class ObjectFieldSelector(KubeType):
    api_version: str | None = None
    field_path: str


class ResourceFieldSelector(KubeType):
    container_name: str | None = None
    divisor: Quantity | None = None
    resource: str


class SecretKeySelector(KubeType):
    key: str
    name: str | None = None
    optional: Boolean | None = None


class EnvVarSource(KubeType):
    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class EnvVar(KubeType):
    name: str
    value: str | None = None
    value_from: EnvVarSource | None = None


class ExecAction(KubeType):
    command: list[str] = []


class HTTPHeader(KubeType):
    name: str
    value: str


class HTTPGetAction(KubeType):
    host: str | None = None
    http_headers: list[HTTPHeader] = []
    path: str | None = None
    port: Integer | str
    scheme: Literal["HTTP", "HTTPS"] | None = None


class SleepAction(KubeType):
    seconds: Integer


class TCPSocketAction(KubeType):
    host: str | None = None
    port: Integer | str


class LifecycleHandler(KubeType):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TCPSocketAction | None = None


class Lifecycle(KubeType):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: (
        Literal[
            "SIGABRT",
            "SIGALRM",
            "SIGBUS",
            "SIGCHLD",
            "SIGCLD",
            "SIGCONT",
            "SIGFPE",
            "SIGHUP",
            "SIGILL",
            "SIGINT",
            "SIGIO",
            "SIGIOT",
            "SIGKILL",
            "SIGPIPE",
            "SIGPOLL",
            "SIGPROF",
            "SIGPWR",
            "SIGQUIT",
            "SIGRTMAX",
            "SIGRTMAX-1",
            "SIGRTMAX-10",
            "SIGRTMAX-11",
            "SIGRTMAX-12",
            "SIGRTMAX-13",
            "SIGRTMAX-14",
            "SIGRTMAX-2",
            "SIGRTMAX-3",
            "SIGRTMAX-4",
            "SIGRTMAX-5",
            "SIGRTMAX-6",
            "SIGRTMAX-7",
            "SIGRTMAX-8",
            "SIGRTMAX-9",
            "SIGRTMIN",
            "SIGRTMIN+1",
            "SIGRTMIN+10",
            "SIGRTMIN+11",
            "SIGRTMIN+12",
            "SIGRTMIN+13",
            "SIGRTMIN+14",
            "SIGRTMIN+15",
            "SIGRTMIN+2",
            "SIGRTMIN+3",
            "SIGRTMIN+4",
            "SIGRTMIN+5",
            "SIGRTMIN+6",
            "SIGRTMIN+7",
            "SIGRTMIN+8",
            "SIGRTMIN+9",
            "SIGSEGV",
            "SIGSTKFLT",
            "SIGSTOP",
            "SIGSYS",
            "SIGTERM",
            "SIGTRAP",
            "SIGTSTP",
            "SIGTTIN",
            "SIGTTOU",
            "SIGURG",
            "SIGUSR1",
            "SIGUSR2",
            "SIGVTALRM",
            "SIGWINCH",
            "SIGXCPU",
            "SIGXFSZ",
        ]
        | None
    ) = None


class GRPCAction(KubeType):
    port: Integer
    service: str | None = None


class Probe(KubeType):
    exec: ExecAction | None = None
    failure_threshold: Integer | None = None
    grpc: GRPCAction | None = None
    http_get: HTTPGetAction | None = None
    initial_delay_seconds: Integer | None = None
    period_seconds: Integer | None = None
    success_threshold: Integer | None = None
    tcp_socket: TCPSocketAction | None = None
    termination_grace_period_seconds: Integer | None = None
    timeout_seconds: Integer | None = None


class ResourceClaim(KubeType):
    name: str
    request: str | None = None


class ResourceRequirements(KubeType):
    claims: list[ResourceClaim] = []
    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}


class AppArmorProfile(KubeType):
    localhost_profile: str | None = None
    type: Literal["Localhost", "RuntimeDefault", "Unconfined"]


class Capabilities(KubeType):
    add: list[str] = []
    drop: list[str] = []


class SELinuxOptions(KubeType):
    level: str | None = None
    role: str | None = None
    type: str | None = None
    user: str | None = None


class SeccompProfile(KubeType):
    localhost_profile: str | None = None
    type: Literal["Localhost", "RuntimeDefault", "Unconfined"]


class WindowsSecurityContextOptions(KubeType):
    gmsa_credential_spec: str | None = None
    gmsa_credential_spec_name: str | None = None
    host_process: Boolean | None = None
    run_as_user_name: str | None = None


class SecurityContext(KubeType):
    allow_privilege_escalation: Boolean | None = None
    app_armor_profile: AppArmorProfile | None = None
    capabilities: Capabilities | None = None
    privileged: Boolean | None = None
    proc_mount: Literal["Default", "Unmasked"] | None = None
    read_only_root_filesystem: Boolean | None = None
    run_as_group: Integer | None = None
    run_as_non_root: Boolean | None = None
    run_as_user: Integer | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    windows_options: WindowsSecurityContextOptions | None = None


class VolumeDevice(KubeType):
    device_path: str
    name: str


class VolumeMount(KubeType):
    mount_path: str
    mount_propagation: Literal["Bidirectional", "HostToContainer", "None"] | None = None
    name: str
    read_only: Boolean | None = None
    recursive_read_only: str | None = None
    sub_path: str | None = None
    sub_path_expr: str | None = None


class Container(KubeType):
    args: list[str] = []
    command: list[str] = []
    env: list[EnvVar] = []
    env_from: list[EnvFromSource] = []
    image: str | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: str
    ports: list[ContainerPort] = []
    readiness_probe: Probe | None = None
    resize_policy: list[ContainerResizePolicy] = []
    resources: ResourceRequirements = Field(default_factory=ResourceRequirements)
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = []
    security_context: SecurityContext = Field(default_factory=SecurityContext)
    startup_probe: Probe | None = None
    stdin: Boolean | None = None
    stdin_once: Boolean | None = None
    termination_message_path: str | None = None
    termination_message_policy: Literal["FallbackToLogsOnError", "File"] | None = None
    tty: Boolean | None = None
    volume_devices: list[VolumeDevice] = []
    volume_mounts: list[VolumeMount] = []
    working_dir: str | None = None


class EphemeralContainer(KubeType):
    args: list[str] = []
    command: list[str] = []
    env: list[EnvVar] = []
    env_from: list[EnvFromSource] = []
    image: str | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: str
    ports: list[ContainerPort] = []
    readiness_probe: Probe | None = None
    resize_policy: list[ContainerResizePolicy] = []
    resources: ResourceRequirements = Field(default_factory=ResourceRequirements)
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = []
    security_context: SecurityContext = Field(default_factory=SecurityContext)
    startup_probe: Probe | None = None
    stdin: Boolean | None = None
    stdin_once: Boolean | None = None
    target_container_name: str | None = None
    termination_message_path: str | None = None
    termination_message_policy: Literal["FallbackToLogsOnError", "File"] | None = None
    tty: Boolean | None = None
    volume_devices: list[VolumeDevice] = []
    volume_mounts: list[VolumeMount] = []
    working_dir: str | None = None


class HostAlias(KubeType):
    hostnames: list[str] = []
    ip: str


class LocalObjectReference(KubeType):
    name: str | None = None


class PodDNSConfigOption(KubeType):
    name: str | None = None
    value: str | None = None


class PodDNSConfig(KubeType):
    nameservers: list[str] = []
    options: list[PodDNSConfigOption] = []
    searches: list[str] = []


class PodOS(KubeType):
    name: str


class PodReadinessGate(KubeType):
    condition_type: str


class PodResourceClaim(KubeType):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(KubeType):
    name: str


class PodSchedulingGroup(KubeType):
    pod_group_name: str | None = None


class Sysctl(KubeType):
    name: str
    value: str


class PodSecurityContext(KubeType):
    app_armor_profile: AppArmorProfile | None = None
    fs_group: Integer | None = None
    fs_group_change_policy: Literal["Always", "OnRootMismatch"] | None = None
    run_as_group: Integer | None = None
    run_as_non_root: Boolean | None = None
    run_as_user: Integer | None = None
    se_linux_change_policy: str | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    supplemental_groups: list[Integer] = []
    supplemental_groups_policy: Literal["Merge", "Strict"] | None = None
    sysctls: list[Sysctl] = []
    windows_options: WindowsSecurityContextOptions | None = None


class Toleration(KubeType):
    effect: Literal["NoExecute", "NoSchedule", "PreferNoSchedule"] | None = None
    key: str | None = None
    operator: Literal["Equal", "Exists", "Gt", "Lt"] | None = None
    toleration_seconds: Integer | None = None
    value: str | None = None


class TopologySpreadConstraint(KubeType):
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    max_skew: Integer
    min_domains: Integer | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]


class AWSElasticBlockStoreVolumeSource(KubeType):
    fs_type: str | None = None
    partition: Integer | None = None
    read_only: Boolean | None = None
    volume_id: str = Field(alias="volumeID")


class AzureDiskVolumeSource(KubeType):
    caching_mode: Literal["None", "ReadOnly", "ReadWrite"] | None = None
    disk_name: str
    disk_uri: str = Field(alias="diskURI")
    fs_type: str | None = None
    kind: Literal["Dedicated", "Managed", "Shared"] | None = None
    read_only: Boolean | None = None


class AzureFileVolumeSource(KubeType):
    read_only: Boolean | None = None
    secret_name: str
    share_name: str


class CSIVolumeSource(KubeType):
    driver: str
    fs_type: str | None = None
    node_publish_secret_ref: LocalObjectReference | None = None
    read_only: Boolean | None = None
    volume_attributes: dict[str, str] = {}


class CephFSVolumeSource(KubeType):
    monitors: list[str]
    path: str | None = None
    read_only: Boolean | None = None
    secret_file: str | None = None
    secret_ref: LocalObjectReference | None = None
    user: str | None = None


class CinderVolumeSource(KubeType):
    fs_type: str | None = None
    read_only: Boolean | None = None
    secret_ref: LocalObjectReference | None = None
    volume_id: str = Field(alias="volumeID")


class KeyToPath(KubeType):
    key: str
    mode: Integer | None = None
    path: str


class ConfigMapVolumeSource(KubeType):
    default_mode: Integer | None = None
    items: list[KeyToPath] = []
    name: str | None = None
    optional: Boolean | None = None


class DownwardAPIVolumeFile(KubeType):
    field_ref: ObjectFieldSelector | None = None
    mode: Integer | None = None
    path: str
    resource_field_ref: ResourceFieldSelector | None = None


class DownwardAPIVolumeSource(KubeType):
    default_mode: Integer | None = None
    items: list[DownwardAPIVolumeFile] = []


class EmptyDirVolumeSource(KubeType):
    medium: str | None = None
    size_limit: Quantity | None = None


class TypedLocalObjectReference(KubeType):
    api_group: str | None = None
    kind: str
    name: str


class TypedObjectReference(KubeType):
    api_group: str | None = None
    kind: str
    name: str
    namespace: str | None = None


class VolumeResourceRequirements(KubeType):
    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}


class PersistentVolumeClaimSpec(KubeType):
    access_modes: list[Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]] = []
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    resources: VolumeResourceRequirements = Field(default_factory=VolumeResourceRequirements)
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: Literal["Block", "Filesystem"] | None = None
    volume_name: str | None = None


class PersistentVolumeClaimTemplate(KubeType):
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec


class EphemeralVolumeSource(KubeType):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class FCVolumeSource(KubeType):
    fs_type: str | None = None
    lun: Integer | None = None
    read_only: Boolean | None = None
    target_wwns: list[str] = Field(default=[], alias="targetWWNs")
    wwids: list[str] = []


class FlexVolumeSource(KubeType):
    driver: str
    fs_type: str | None = None
    options: dict[str, str] = {}
    read_only: Boolean | None = None
    secret_ref: LocalObjectReference | None = None


class FlockerVolumeSource(KubeType):
    dataset_name: str | None = None
    dataset_uuid: str | None = Field(default=None, alias="datasetUUID")


class GCEPersistentDiskVolumeSource(KubeType):
    fs_type: str | None = None
    partition: Integer | None = None
    pd_name: str
    read_only: Boolean | None = None


class GitRepoVolumeSource(KubeType):
    directory: str | None = None
    repository: str
    revision: str | None = None


class GlusterfsVolumeSource(KubeType):
    endpoints: str
    path: str
    read_only: Boolean | None = None


class HostPathVolumeSource(KubeType):
    path: str
    type: (
        Literal["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"]
        | None
    ) = None


class ISCSIVolumeSource(KubeType):
    chap_auth_discovery: Boolean | None = None
    chap_auth_session: Boolean | None = None
    fs_type: str | None = None
    initiator_name: str | None = None
    iqn: str
    iscsi_interface: str | None = None
    lun: Integer
    portals: list[str] = []
    read_only: Boolean | None = None
    secret_ref: LocalObjectReference | None = None
    target_portal: str


class ImageVolumeSource(KubeType):
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    reference: str | None = None


class NFSVolumeSource(KubeType):
    path: str
    read_only: Boolean | None = None
    server: str


class PersistentVolumeClaimVolumeSource(KubeType):
    claim_name: str
    read_only: Boolean | None = None


class PhotonPersistentDiskVolumeSource(KubeType):
    fs_type: str | None = None
    pd_id: str = Field(alias="pdID")


class PortworxVolumeSource(KubeType):
    fs_type: str | None = None
    read_only: Boolean | None = None
    volume_id: str = Field(alias="volumeID")


class ClusterTrustBundleProjection(KubeType):
    label_selector: LabelSelector | None = None
    name: str | None = None
    optional: Boolean | None = None
    path: str
    signer_name: str | None = None


class ConfigMapProjection(KubeType):
    items: list[KeyToPath] = []
    name: str | None = None
    optional: Boolean | None = None


class DownwardAPIProjection(KubeType):
    items: list[DownwardAPIVolumeFile] = []


class PodCertificateProjection(KubeType):
    certificate_chain_path: str | None = None
    credential_bundle_path: str | None = None
    key_path: str | None = None
    key_type: str
    max_expiration_seconds: Integer | None = None
    signer_name: str
    user_annotations: dict[str, str] = {}


class SecretProjection(KubeType):
    items: list[KeyToPath] = []
    name: str | None = None
    optional: Boolean | None = None


class ServiceAccountTokenProjection(KubeType):
    audience: str | None = None
    expiration_seconds: Integer | None = None
    path: str


class VolumeProjection(KubeType):
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    config_map: ConfigMapProjection | None = None
    downward_api: DownwardAPIProjection | None = Field(default=None, alias="downwardAPI")
    pod_certificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(KubeType):
    default_mode: Integer | None = None
    sources: list[VolumeProjection] = []


class QuobyteVolumeSource(KubeType):
    group: str | None = None
    read_only: Boolean | None = None
    registry: str
    tenant: str | None = None
    user: str | None = None
    volume: str


class RBDVolumeSource(KubeType):
    fs_type: str | None = None
    image: str
    keyring: str | None = None
    monitors: list[str]
    pool: str | None = None
    read_only: Boolean | None = None
    secret_ref: LocalObjectReference | None = None
    user: str | None = None


class ScaleIOVolumeSource(KubeType):
    fs_type: str | None = None
    gateway: str
    protection_domain: str | None = None
    read_only: Boolean | None = None
    secret_ref: LocalObjectReference
    ssl_enabled: Boolean | None = None
    storage_mode: str | None = None
    storage_pool: str | None = None
    system: str
    volume_name: str | None = None


class SecretVolumeSource(KubeType):
    default_mode: Integer | None = None
    items: list[KeyToPath] = []
    optional: Boolean | None = None
    secret_name: str | None = None


class StorageOSVolumeSource(KubeType):
    fs_type: str | None = None
    read_only: Boolean | None = None
    secret_ref: LocalObjectReference | None = None
    volume_name: str | None = None
    volume_namespace: str | None = None


class VsphereVirtualDiskVolumeSource(KubeType):
    fs_type: str | None = None
    storage_policy_id: str | None = Field(default=None, alias="storagePolicyID")
    storage_policy_name: str | None = None
    volume_path: str


class Volume(KubeType):
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = Field(default=None, alias="downwardAPI")
    empty_dir: EmptyDirVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    image: ImageVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    name: str
    nfs: NFSVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = Field(default=None, alias="scaleIO")
    secret: SecretVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


class PodSpec(KubeType):
    active_deadline_seconds: Integer | None = None
    affinity: Affinity | None = None
    automount_service_account_token: Boolean | None = None
    containers: list[Container]
    dns_config: PodDNSConfig | None = None
    dns_policy: Literal["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"] | None = None
    enable_service_links: Boolean | None = None
    ephemeral_containers: list[EphemeralContainer] = []
    host_aliases: list[HostAlias] = []
    host_ipc: Boolean | None = Field(default=None, alias="hostIPC")
    host_network: Boolean | None = None
    host_pid: Boolean | None = Field(default=None, alias="hostPID")
    host_users: Boolean | None = None
    hostname: str | None = None
    hostname_override: str | None = None
    image_pull_secrets: list[LocalObjectReference] = []
    init_containers: list[Container] = []
    node_name: str | None = None
    node_selector: dict[str, str] = {}
    os: PodOS | None = None
    overhead: dict[str, Quantity] = {}
    preemption_policy: Literal["Never", "PreemptLowerPriority"] | None = None
    priority: Integer | None = None
    priority_class_name: str | None = None
    readiness_gates: list[PodReadinessGate] = []
    resource_claims: list[PodResourceClaim] = []
    resources: ResourceRequirements | None = None
    restart_policy: Literal["Always", "Never", "OnFailure"] | None = None
    runtime_class_name: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[PodSchedulingGate] = []
    scheduling_group: PodSchedulingGroup | None = None
    security_context: PodSecurityContext = Field(default_factory=PodSecurityContext)
    service_account: str | None = None
    service_account_name: str | None = None
    set_hostname_as_fqdn: Boolean | None = Field(default=None, alias="setHostnameAsFQDN")
    share_process_namespace: Boolean | None = None
    subdomain: str | None = None
    termination_grace_period_seconds: Integer | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    volumes: list[Volume] = []


class PodTemplateSpec(KubeType):
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: PodSpec


# Imported last, because these rules import this module.
import persia_infra.kube.affinity  # noqa: E402
import persia_infra.kube.pod_templates  # noqa: E402
import persia_infra.kube.pods  # noqa: E402, F401
