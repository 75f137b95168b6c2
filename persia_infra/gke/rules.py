"""Rules that involve several of the cluster, its network and its pools; jobs play no part in them."""

import ipaddress
from collections.abc import Iterator
from math import ceil, log2
from typing import TYPE_CHECKING

from persia_infra.gke.network import pod_addresses_per_node
from persia_infra.gke.pools import NodePoolSpec
from persia_infra.spec.base import Finding, Place

if TYPE_CHECKING:  # environment.py imports this module
    from persia_infra.environment import EnvironmentSpec

_POOL_NAME_LIMIT = 24
"""GKE allows 40 characters, which include the stack's name and a suffix that makes the name unique."""


def gke_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    """Yields the findings about the cluster, its network and its pools."""
    yield from _zone_findings(spec)
    yield from _address_findings(spec)
    yield from _control_plane_findings(spec)
    yield from _pool_findings(spec)


def _zone_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    zone_lists: list[tuple[Place, list[str]]] = [(("cluster", "zones"), spec.cluster.zones)]
    zone_lists += [(("pools", name, "zones"), pool.zones or []) for name, pool in spec.pools.items()]
    for place, zones in zone_lists:
        for index, zone in enumerate(zones):
            if not zone.startswith(f"{spec.region}-"):
                yield (
                    (*place, index),
                    f"{zone} is not in the region {spec.region}, and a GKE cluster cannot span regions; "
                    f"write a zone such as {spec.region}-a",
                )
    for name, pool in spec.pools.items():
        zones = spec.zones_of(pool)
        if pool.count is not None and pool.count % len(zones):
            yield (
                ("pools", name, "count"),
                f"{pool.count} nodes cannot be spread evenly over {len(zones)} zones, but GKE creates a fixed count "
                f"in equal parts; write a multiple of {len(zones)}, or give the pool one zone",
            )
        if pool.compact_placement and len(zones) > 1:
            yield (
                ("pools", name, "compactPlacement"),
                f"needs a single zone, but the pool has {len(zones)}, so GKE would refuse it; "
                f"write zones: [{zones[0]}]",
            )


def _address_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    network = spec.network
    if network.existing:
        return
    nodes = sum(map(_nodes_during_upgrade, spec.pools.values()))
    if nodes > network.node_addresses:
        yield (
            ("network", "nodesCidr"),
            f"has addresses for {network.node_addresses} nodes, but the pools can grow to {nodes} nodes in total "
            f"during upgrades; widen it to a /{32 - ceil(log2(nodes + 4))}",
        )
    addresses = sum(_nodes_during_upgrade(pool) * pod_addresses_per_node(pool.max_pods) for pool in spec.pools.values())
    if addresses > network.pod_addresses:
        yield (
            ("network", "podsCidr"),
            f"has {network.pod_addresses} addresses, but the pools' {nodes} nodes need {addresses} for their pods "
            f"(256 per node with 110 pods); widen it to a /{32 - ceil(log2(addresses))}, or lower the pools' maxPods",
        )


def _nodes_during_upgrade(pool: NodePoolSpec) -> int:
    """Returns the most nodes that a pool can have, including those that an upgrade adds."""
    if pool.upgrades.strategy == "BLUE_GREEN":
        return 2 * pool.max_nodes
    return pool.max_nodes + pool.surge[0]


def _control_plane_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    control_plane = ipaddress.IPv4Network(spec.cluster.control_plane_cidr)
    for key, address_range in spec.network.ranges.items():
        if address_range.overlaps(control_plane):
            yield (
                ("cluster", "controlPlaneCidr"),
                f"overlaps network.{key}, so nodes could not reach the control plane; choose another range",
            )
    if spec.cluster.secrets_key:
        location = spec.cluster.secrets_key.split("/")[3]
        if location != spec.region:
            yield (
                ("cluster", "secretsKey"),
                f"is in {location}, but GKE accepts keys in the cluster's own region only; use a key in {spec.region}",
            )


def _accepts_any_pod(pool: NodePoolSpec) -> bool:
    return pool.max_nodes > 0 and all(taint.effect == "PreferNoSchedule" for taint in pool.all_taints)


def _pool_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    if not any(_accepts_any_pod(pool) for pool in spec.pools.values()):
        yield (
            ("pools",),
            "no pool with nodes is free of taints, so GKE's own pods (DNS, metrics) would stay Pending; "
            "add a small one without GPUs, such as system: {machineType: e2-standard-4, count: 1}",
        )
    for name, pool in spec.pools.items():
        if len(name) > _POOL_NAME_LIMIT:
            yield (
                ("pools", name),
                f"the name has {len(name)} characters, which is too long for GKE once the stack's name and a suffix "
                f"are added; use at most {_POOL_NAME_LIMIT}",
            )
        if (pool.networks or pool.network_profile) and not spec.cluster.multi_networking:
            yield (
                ("pools", name, "networks" if pool.networks else "networkProfile"),
                "needs a cluster with several networks, which cannot be turned on later; "
                "write multiNetworking: true in cluster",
            )
