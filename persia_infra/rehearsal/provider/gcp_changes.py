"""Decides which changes of a Google Cloud resource are updates in place and which are replacements.

The rules are those of pulumi-gcp. For node pools, machine type, disk type, disk size and image are changed in
place (Google then replaces the nodes in batches); GPUs, Spot, local SSDs, the service account and the initial node
count need a new pool.
"""

import ipaddress
import re
from collections.abc import Iterator
from typing import Any, Final

from persia_infra.rehearsal.provider.gcp_types import CLUSTER, NODE_POOL, ResourceType, last_segment
from persia_infra.rehearsal.provider.package import UNKNOWN, ChangeKind, Difference, Properties

_EVERYWHERE: Final = frozenset({"name", "namePrefix", "project", "region", "location", "zone", "network"})

_NODE_CONFIG: Final = frozenset(
    {
        "nodeConfig.advancedMachineFeatures",
        "nodeConfig.bootDiskKmsKey",
        "nodeConfig.confidentialNodes",
        "nodeConfig.enableConfidentialStorage",
        "nodeConfig.ephemeralStorageLocalSsdConfig",
        "nodeConfig.flexStart",
        "nodeConfig.guestAccelerators",
        "nodeConfig.gvnic",
        "nodeConfig.hostMaintenancePolicy",
        "nodeConfig.localNvmeSsdBlockConfig",
        "nodeConfig.localSsdCount",
        "nodeConfig.maxRunDuration",
        "nodeConfig.metadata",
        "nodeConfig.minCpuPlatform",
        "nodeConfig.nodeGroup",
        "nodeConfig.oauthScopes",
        "nodeConfig.preemptible",
        "nodeConfig.reservationAffinity",
        "nodeConfig.sandboxConfig",
        "nodeConfig.secondaryBootDisks",
        "nodeConfig.serviceAccount",
        "nodeConfig.shieldedInstanceConfig",
        "nodeConfig.soleTenantConfig",
        "nodeConfig.spot",
    }
)

_REPLACED_BY: Final[dict[str, frozenset[str]]] = {
    CLUSTER: _NODE_CONFIG
    | {
        "clusterIpv4Cidr",
        "confidentialNodes",
        "datapathProvider",
        "defaultMaxPodsPerNode",
        "description",
        "enableAutopilot",
        "enableKubernetesAlpha",
        "enableMultiNetworking",
        "enableTpu",
        "initialNodeCount",
        "ipAllocationPolicy.clusterIpv4CidrBlock",
        "ipAllocationPolicy.clusterSecondaryRangeName",
        "ipAllocationPolicy.podCidrOverprovisionConfig",
        "ipAllocationPolicy.servicesIpv4CidrBlock",
        "ipAllocationPolicy.servicesSecondaryRangeName",
        "masterAuth.clientCertificateConfig",
        "networkingMode",
        "nodePools",
        "privateClusterConfig.enablePrivateNodes",
        "privateClusterConfig.masterIpv4CidrBlock",
        "privateClusterConfig.privateEndpointSubnetwork",
        "subnetwork",
    },
    NODE_POOL: _NODE_CONFIG
    | {
        "cluster",
        "initialNodeCount",
        "maxPodsPerNode",
        "networkConfig.additionalNodeNetworkConfigs",
        "networkConfig.additionalPodNetworkConfigs",
        "networkConfig.createPodRange",
        "networkConfig.podCidrOverprovisionConfig",
        "networkConfig.podIpv4CidrBlock",
        "networkConfig.podRange",
        "networkConfig.subnetwork",
        "placementPolicy",
        "queuedProvisioning",
    },
    "gcp:compute/address:Address": frozenset({"address", "addressType", "purpose", "subnetwork"}),
    "gcp:compute/routerNat:RouterNat": frozenset({"router"}),
    "gcp:serviceaccount/account:Account": frozenset({"accountId"}),
    "gcp:serviceaccount/key:Key": frozenset({"serviceAccountId"}),
    "gcp:artifactregistry/repository:Repository": frozenset({"format", "repositoryId"}),
    "gcp:secretmanager/secret:Secret": frozenset({"replication", "secretId"}),
    "gcp:kms/cryptoKey:CryptoKey": frozenset({"keyRing", "purpose"}),
}


_REPLACING: Final[dict[str, ChangeKind]] = {
    "add": "add-replace",
    "delete": "delete-replace",
    "update": "update-replace",
}


def difference(kind: ResourceType, old: Properties, new: Properties) -> Difference:
    """Returns the differences between two sets of inputs.

    A resource whose name the user chose is deleted before its replacement is created, since both cannot exist at
    the same time; a resource with an automatic name is replaced first and deleted afterwards.
    """
    replaced_by = _EVERYWHERE | _REPLACED_BY.get(kind.token, frozenset())
    result = Difference()
    for path, before, after in _changes("", old, new):
        plain = re.sub(r"\[\d+\]", "", path)
        if plain.startswith("__") or _same_reference(plain, before, after):
            continue
        change = "add" if before is None else "delete" if after is None else "update"
        forced = kind.is_grant or any(
            plain == name or plain.startswith((name + ".", name + "[")) for name in replaced_by
        )
        if plain == "ipCidrRange":
            forced = not _widens(before, after)
        result.detailed[path] = _REPLACING[change] if forced else change
    if result.replaces:
        chosen = "name" in new and "name" not in (new.get("__defaults") or [])
        renamed = new.get("name") != old.get("name")
        result.delete_before_replace = kind.is_grant or (not renamed and chosen) or "name" not in kind.inputs
    return result


def _changes(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401
    if new is UNKNOWN or old is UNKNOWN:
        yield path, old, new
    elif _is_block(old, new):
        olds, news = old or {}, new or {}
        for key in sorted(map(str, {**olds, **news})):
            yield from _changes(_join(path, key), olds.get(key), news.get(key))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else None
            after = new[index] if index < len(new) else None
            if before is None or after is None:
                yield f"{path}[{index}]", before, after
            else:
                yield from _changes(f"{path}[{index}]", before, after)
    elif old != new:
        yield path, old, new


def _is_block(old: Any, new: Any) -> bool:  # noqa: ANN401
    """Whether to compare two values field by field: both are objects, or one is and the other is absent."""
    if isinstance(old, dict) and isinstance(new, dict):
        return True
    return bool((isinstance(new, dict) and new and old is None) or (isinstance(old, dict) and old and new is None))


def _join(path: str, key: str) -> str:
    if not re.fullmatch(r"\w+", key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def _same_reference(path: str, old: Any, new: Any) -> bool:  # noqa: ANN401
    """Whether two texts name the same resource, one by its self link and the other by its bare name."""
    if path.rpartition(".")[2] not in {"network", "subnetwork", "cluster", "router"}:
        return False
    if not isinstance(old, str) or not isinstance(new, str) or ("/" in old and "/" in new):
        return False
    return last_segment(old) == last_segment(new)


def _widens(old: Any, new: Any) -> bool:  # noqa: ANN401
    if not isinstance(old, str) or not isinstance(new, str):
        return False
    before, after = ipaddress.ip_network(old, strict=False), ipaddress.ip_network(new, strict=False)
    return before.version == after.version and before.subnet_of(after)  # type: ignore[arg-type]
