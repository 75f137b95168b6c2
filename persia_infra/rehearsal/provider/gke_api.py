"""Turns the properties of clusters and node pools in pulumi-gcp into messages of the GKE API.

This finds properties that the API does not have, values of the wrong type, and unknown values of enumerations, and
reports them under the API's field names. The messages are those of the beta API, as in pulumi-gcp. Rules between
well-formed fields are in `gke_rules.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from persia_infra.rehearsal.provider.gke_messages import gke
from persia_infra.rehearsal.provider.package import UNKNOWN, Properties

_NETWORKING: Final = (
    "datapathProvider",
    "defaultSnatStatus",
    "disableL4LbFirewallReconciliation",
    "dnsConfig",
    "enableCiliumClusterwideNetworkPolicy",
    "enableFqdnNetworkPolicy",
    "enableMultiNetworking",
    "gatewayApiConfig",
    "inTransitEncryptionConfig",
    "networkPerformanceConfig",
    "privateIpv6GoogleAccess",
    "serviceExternalIpsConfig",
)

_RENAMED: Final[dict[str, dict[str, str]]] = {
    "Cluster": {
        **{name: f"networkConfig.{name}" for name in _NETWORKING},
        "allowNetAdmin": "autopilot.workloadPolicyConfig.allowNetAdmin",
        "autopilotClusterPolicyConfig": "autopilot.clusterPolicyConfig",
        "autopilotPrivilegedAdmissions": "autopilot.privilegedAdmissionConfig.allowlistPaths",
        "clusterAutoscaling": "autoscaling",
        "dataplaneOptimizationMode": "networkConfig.dataplaneV2Config.scalabilityMode",
        "defaultMaxPodsPerNode": "defaultMaxPodsConstraint.maxPodsPerNode",
        "enableAutopilot": "autopilot.enabled",
        "enableIntranodeVisibility": "networkConfig.enableIntraNodeVisibility",
        "enableL4IlbSubsetting": "networkConfig.enableL4ilbSubsetting",
        "enableLegacyAbac": "legacyAbac.enabled",
        "enableShieldedNodes": "shieldedNodes.enabled",
        "minMasterVersion": "initialClusterVersion",
        "nodeLocations": "locations",
    },
    "AddonsConfig": {"cloudrunConfig": "cloudRunConfig", "rayOperatorConfigs": "rayOperatorConfig"},
    "ClusterAutoscaling": {
        "autoProvisioningDefaults": "autoprovisioningNodePoolDefaults",
        "autoProvisioningLocations": "autoprovisioningLocations",
        "defaultComputeClassEnabled": "defaultComputeClassConfig.enabled",
        "enabled": "enableNodeAutoprovisioning",
    },
    "AutoprovisioningNodePoolDefaults": {"diskSize": "diskSizeGb"},
    "LoggingConfig": {"enableComponents": "componentConfig.enableComponents"},
    "MonitoringConfig": {
        "enableComponents": "componentConfig.enableComponents",
        "managedPrometheus": "managedPrometheusConfig",
    },
    "MaintenancePolicy": {
        name: f"window.{name}"
        for name in (
            "dailyMaintenanceWindow",
            "maintenanceExclusions",
            "recurringMaintenanceWindow",
            "recurringWindow",
        )
    },
    "RecurringTimeWindow": {"startTime": "window.startTime", "endTime": "window.endTime"},
    "TimeWindow": {"exclusionOptions": "maintenanceExclusionOptions"},
    "NodeConfigDefaults": {
        "insecureKubeletReadonlyPortEnabled": "nodeKubeletConfig.insecureKubeletReadonlyPortEnabled",
        "loggingVariant": "loggingConfig.variantConfig.variant",
    },
    "Filter": {"eventTypes": "eventType"},
    "ResourceUsageExportConfig": {"enableResourceConsumptionMetering": "consumptionMeteringConfig.enabled"},
    "NodePool": {
        "maintenancePolicies": "maintenancePolicy",
        "maxPodsPerNode": "maxPodsConstraint.maxPodsPerNode",
        "nodeConfig": "config",
        "nodeCount": "initialNodeCount",
        "nodeDrainConfigs": "nodeDrainConfig",
        "nodeLocations": "locations",
    },
    "NodePoolMaintenancePolicy": {"exclusionUntilEndOfSupports": "exclusionUntilEndOfSupport"},
    "AdditionalPodNetworkConfig": {"maxPodsPerNode": "maxPodsPerNode.maxPodsPerNode"},
    "PodCIDROverprovisionConfig": {"disabled": "disable"},
    "NodeConfig": {
        "gpudirectStrategy": "gpuDirectConfig.gpuDirectStrategy",
        "guestAccelerators": "accelerators",
        "loggingVariant": "loggingConfig.variantConfig.variant",
        "nodeImageConfigs": "nodeImageConfig",
    },
    "AcceleratorConfig": {"count": "acceleratorCount", "type": "acceleratorType"},
    "LinuxNodeConfig": {"hugepagesConfig": "hugepages"},
    "PrivateRegistryAccessConfig": {"certificateAuthorityDomainConfigs": "certificateAuthorityDomainConfig"},
    "RegistryHeader": {"values": "value"},
    "HostConfig": {"cas": "ca", "clients": "client", "headers": "header"},
    "WindowsNodeConfig": {"osversion": "osVersion"},
}
"""By message of the API, the properties that have another name or place there."""

_PROVIDERS_OWN: Final[dict[str, frozenset[str]]] = {
    "Cluster": frozenset(
        {
            "deletionPolicy",
            "deletionProtection",
            "desiredEmulatedVersion",
            "ignoreNodeCountChanges",
            "networkingMode",
            "nodeVersion",
            "project",
            "removeDefaultNodePool",
            "skipNodePoolRefresh",
        }
    ),
    "Fleet": frozenset({"membershipId", "membershipLocation"}),
    "NodePool": frozenset(
        {
            "cluster",
            "deletionPolicy",
            "ignoreNodeCountChanges",
            "location",
            "managedInstanceGroupUrls",
            "namePrefix",
            "project",
        }
    ),
    "AdditionalNodeNetworkConfig": frozenset({"stackType"}),
    "NodeConfig": frozenset({"effectiveTaints"}),
    "TimeWindow": frozenset({"exclusionName"}),
}
"""By message of the API, the properties that are not part of the request that creates it."""

_WELL_KNOWN: Final = {
    "google.protobuf.BoolValue": "true or false",
    "google.protobuf.Duration": 'a number of seconds such as "600s"',
    "google.protobuf.Timestamp": 'a time such as "2030-01-01T00:00:00Z"',
}
_INTEGERS: Final = frozenset(
    {FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64}
)
_FRACTIONS: Final = frozenset({FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT})


@dataclass(frozen=True)
class BadField:
    """A field that the API refuses; `path` is the API's: `nodePool.config.accelerators[0].gpuPartitionSize`."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class Malformed(Exception):
    """Properties that do not form a valid message."""

    def __init__(self, fields: Sequence[BadField]) -> None:
        super().__init__("; ".join(map(str, fields)))
        self.fields = tuple(fields)


def cluster_message(inputs: Properties) -> gke.Cluster:
    """Returns the message that would create the cluster, without values that are not known yet.

    Raises:
        Malformed: Some fields are wrong; the error names all of them.
    """
    cluster = gke.Cluster()
    _fill(gke.Cluster.pb(cluster), inputs, "cluster")
    return cluster


def node_pool_message(inputs: Properties) -> gke.NodePool:
    """Returns the message that would create the node pool, like `cluster_message`."""
    pool = gke.NodePool()
    _fill(gke.NodePool.pb(pool), inputs, "nodePool")
    return pool


def api_fields(message: Descriptor, name: str) -> list[FieldDescriptor] | None:
    """Finds the place of a property in the API.

    Returns:
        The fields on the way there; empty for a property that is not sent, None for an unknown property.
    """
    if name in _PROVIDERS_OWN.get(message.name, ()):
        return []
    fields: list[FieldDescriptor] = []
    here: Descriptor | None = message
    for part in _RENAMED.get(message.name, {}).get(name, name).split("."):
        field = here and next((field for field in here.fields if part in (field.json_name, field.name)), None)
        if not field:
            return None
        fields.append(field)
        here = field.message_type
    return fields


def _fill(message: Message, inputs: Properties, path: str) -> None:
    body: dict[str, Any] = {}
    bad = list(_convert(cast("Descriptor", message.DESCRIPTOR), inputs, path, body))
    if not bad:
        try:
            json_format.ParseDict(body, message)
        except json_format.ParseError as error:
            bad = [BadField(path, str(error))]
    if bad:
        raise Malformed(bad)


def _convert(message: Descriptor, given: Mapping[str, Any], path: str, body: dict[str, Any]) -> Iterator[BadField]:
    for name, value in given.items():
        if value is None or name.startswith("__"):
            continue
        fields = api_fields(message, name)
        if fields is None:
            yield BadField(f"{path}.{name}", f"the API's {message.name} has no such field")
            continue
        if not fields:
            continue
        place = ".".join([path, *(field.json_name for field in fields)])
        converted: list[Any] = []
        yield from _value(fields[-1], value, place, converted)
        if converted:
            inside = body
            for field in fields[:-1]:
                inside = inside.setdefault(field.json_name, {})
            inside[fields[-1].json_name] = converted[0]


def _value(field: FieldDescriptor, value: Any, path: str, into: list[Any]) -> Iterator[BadField]:  # noqa: ANN401
    if value is UNKNOWN:
        return
    entry = field.message_type if field.message_type and field.message_type.GetOptions().map_entry else None
    if entry:
        yield from _map(entry, value, path, into)
    elif field.is_repeated:
        if not isinstance(value, list | tuple):
            yield BadField(path, "must be a list")
            return
        items: list[Any] = []
        for index, item in enumerate(value):
            yield from _single(field, item, f"{path}[{index}]", items)
        into.append(items)
    elif isinstance(value, list | tuple) and len(value) <= 1:
        # The provider writes some single blocks as a list.
        if value:
            yield from _single(field, value[0], path, into)
    else:
        yield from _single(field, value, path, into)


def _map(entry: Descriptor, value: Any, path: str, into: list[Any]) -> Iterator[BadField]:  # noqa: ANN401
    held = entry.fields_by_name["value"]
    pairs: Mapping[str, Any]
    if held.message_type and isinstance(value, list | tuple):
        # Maintenance exclusions: a list of blocks that carry their name.
        pairs = {str(block.get("exclusionName", index)): block for index, block in enumerate(value)}
    elif isinstance(value, Mapping):
        pairs = value
    else:
        yield BadField(path, "must be a mapping of keys to values")
        return
    items: dict[str, Any] = {}
    for key, item in pairs.items():
        converted: list[Any] = []
        yield from _value(held, item, f'{path}["{key}"]', converted)
        if converted:
            items[str(key)] = converted[0]
    into.append(items)


def _single(field: FieldDescriptor, value: Any, path: str, into: list[Any]) -> Iterator[BadField]:  # noqa: ANN401
    if value is UNKNOWN or value is None:
        return
    if field.message_type:
        if field.message_type.full_name in _WELL_KNOWN:
            yield from _well_known(field.message_type, value, path, into)
        elif isinstance(value, Mapping):
            block: dict[str, Any] = {}
            yield from _convert(field.message_type, value, path, block)
            into.append(block)
        else:
            yield BadField(path, "must be a block of fields")
        return
    reason = _wrong_scalar(field, value)
    if reason:
        yield BadField(path, reason)
        return
    into.append(value == "TRUE" if field.type == FieldDescriptor.TYPE_BOOL and isinstance(value, str) else value)


def _wrong_scalar(field: FieldDescriptor, value: Any) -> str | None:  # noqa: ANN401
    if field.enum_type:
        words = [word.name for word in field.enum_type.values if not word.name.endswith("UNSPECIFIED")]
        if not isinstance(value, str) or value not in field.enum_type.values_by_name:
            return f"{value!r} is not a valid {field.enum_type.name}: use one of {', '.join(words)}"
    elif field.type == FieldDescriptor.TYPE_BOOL:
        # One property of the provider (the kubelet's read-only port) writes its booleans as words.
        if not isinstance(value, bool) and value not in ("TRUE", "FALSE"):
            return "must be true or false"
    elif field.type in _INTEGERS:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            return "must be a whole number"
        bits = 31 if field.type == FieldDescriptor.TYPE_INT32 else 63
        if not -(2**bits) <= value < 2**bits:
            return f"{value} is out of range"
    elif field.type in _FRACTIONS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "must be a number"
    elif not isinstance(value, str):
        return "must be text"
    return None


def _well_known(kind: Descriptor, value: Any, path: str, into: list[Any]) -> Iterator[BadField]:  # noqa: ANN401
    try:
        json_format.ParseDict(value, GetMessageClass(kind)())
    except (json_format.ParseError, TypeError, ValueError, AttributeError):
        yield BadField(path, f"must be {_WELL_KNOWN[kind.full_name]}")
    else:
        into.append(value)
