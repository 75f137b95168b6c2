"""Types of the Kubernetes API: the group core.

Generated from the OpenAPI documents of Kubernetes 1.36.3 by `make types`. Do not edit.
"""

# ruff: noqa: RUF012

from typing import Literal

from pydantic import Field

from persia_infra.kube.types.base import Boolean, Integer, KubeKind, KubeType, Time
from persia_infra.kube.types.meta import Condition, ObjectMeta
from persia_infra.kube.types.pods import LocalObjectReference
from persia_infra.kube.types.storage import ObjectReference
from persia_infra.spec.base import Quantity


class ConfigMap(KubeKind):
    api_version: Literal["v1"] = "v1"
    binary_data: dict[str, str] = {}
    data: dict[str, str] = {}
    immutable: Boolean | None = None
    kind: Literal["ConfigMap"] = "ConfigMap"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)


class Secret(KubeKind):
    api_version: Literal["v1"] = "v1"
    data: dict[str, str] = {}
    immutable: Boolean | None = None
    kind: Literal["Secret"] = "Secret"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    string_data: dict[str, str] = {}
    type: str | None = None


class ServicePort(KubeType):
    app_protocol: str | None = None
    name: str | None = None
    node_port: Integer | None = None
    port: Integer
    protocol: Literal["SCTP", "TCP", "UDP"] | None = None
    target_port: Integer | str | None = None


class ClientIPConfig(KubeType):
    timeout_seconds: Integer | None = None


class SessionAffinityConfig(KubeType):
    client_ip: ClientIPConfig | None = Field(default=None, alias="clientIP")


class ServiceSpec(KubeType):
    allocate_load_balancer_node_ports: Boolean | None = None
    cluster_ip: str | None = Field(default=None, alias="clusterIP")
    cluster_ips: list[str] = Field(default=[], alias="clusterIPs")
    external_ips: list[str] = Field(default=[], alias="externalIPs")
    external_name: str | None = None
    external_traffic_policy: Literal["Cluster", "Local"] | None = None
    health_check_node_port: Integer | None = None
    internal_traffic_policy: Literal["Cluster", "Local"] | None = None
    ip_families: list[Literal["", "IPv4", "IPv6"]] = []
    ip_family_policy: Literal["PreferDualStack", "RequireDualStack", "SingleStack"] | None = None
    load_balancer_class: str | None = None
    load_balancer_ip: str | None = Field(default=None, alias="loadBalancerIP")
    load_balancer_source_ranges: list[str] = []
    ports: list[ServicePort] = []
    publish_not_ready_addresses: Boolean | None = None
    selector: dict[str, str] = {}
    session_affinity: Literal["ClientIP", "None"] | None = None
    session_affinity_config: SessionAffinityConfig | None = None
    traffic_distribution: str | None = None
    type: Literal["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"] | None = None


class PortStatus(KubeType):
    error: str | None = None
    port: Integer
    protocol: Literal["SCTP", "TCP", "UDP"]


class LoadBalancerIngress(KubeType):
    hostname: str | None = None
    ip: str | None = None
    ip_mode: str | None = None
    ports: list[PortStatus] = []


class LoadBalancerStatus(KubeType):
    ingress: list[LoadBalancerIngress] = []


class ServiceStatus(KubeType):
    conditions: list[Condition] = []
    load_balancer: LoadBalancerStatus = Field(default_factory=LoadBalancerStatus)


class Service(KubeKind):
    api_version: Literal["v1"] = "v1"
    kind: Literal["Service"] = "Service"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: ServiceSpec | None = None
    status: ServiceStatus | None = None


class ServiceAccount(KubeKind):
    api_version: Literal["v1"] = "v1"
    automount_service_account_token: Boolean | None = None
    image_pull_secrets: list[LocalObjectReference] = []
    kind: Literal["ServiceAccount"] = "ServiceAccount"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    secrets: list[ObjectReference] = []


class NamespaceSpec(KubeType):
    finalizers: list[str] = []


class NamespaceCondition(KubeType):
    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str
    type: str


class NamespaceStatus(KubeType):
    conditions: list[NamespaceCondition] = []
    phase: Literal["Active", "Terminating"] | None = None


class Namespace(KubeKind):
    api_version: Literal["v1"] = "v1"
    kind: Literal["Namespace"] = "Namespace"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: NamespaceSpec | None = None
    status: NamespaceStatus | None = None


class ScopedResourceSelectorRequirement(KubeType):
    operator: Literal["DoesNotExist", "Exists", "In", "NotIn"]
    scope_name: Literal[
        "BestEffort",
        "CrossNamespacePodAffinity",
        "NotBestEffort",
        "NotTerminating",
        "PriorityClass",
        "Terminating",
        "VolumeAttributesClass",
    ]
    values: list[str] = []


class ScopeSelector(KubeType):
    match_expressions: list[ScopedResourceSelectorRequirement] = []


class ResourceQuotaSpec(KubeType):
    hard: dict[str, Quantity] = {}
    scope_selector: ScopeSelector | None = None
    scopes: list[
        Literal[
            "BestEffort",
            "CrossNamespacePodAffinity",
            "NotBestEffort",
            "NotTerminating",
            "PriorityClass",
            "Terminating",
            "VolumeAttributesClass",
        ]
    ] = []


class ResourceQuotaStatus(KubeType):
    hard: dict[str, Quantity] = {}
    used: dict[str, Quantity] = {}


class ResourceQuota(KubeKind):
    api_version: Literal["v1"] = "v1"
    kind: Literal["ResourceQuota"] = "ResourceQuota"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: ResourceQuotaSpec | None = None
    status: ResourceQuotaStatus | None = None


class LimitRangeItem(KubeType):
    default: dict[str, Quantity] = {}
    default_request: dict[str, Quantity] = {}
    max: dict[str, Quantity] = {}
    max_limit_request_ratio: dict[str, Quantity] = {}
    min: dict[str, Quantity] = {}
    type: str


class LimitRangeSpec(KubeType):
    limits: list[LimitRangeItem]


class LimitRange(KubeKind):
    api_version: Literal["v1"] = "v1"
    kind: Literal["LimitRange"] = "LimitRange"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: LimitRangeSpec
