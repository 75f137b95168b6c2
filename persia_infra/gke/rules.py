"""What holds between a cluster, its network and its pools, whatever the jobs are."""

import ipaddress
from collections.abc import Iterator
from math import ceil, log2
from typing import TYPE_CHECKING

from persia_infra.gke.network import pod_addresses_of_node
from persia_infra.spec.base import Finding, Place

if TYPE_CHECKING:
    from persia_infra.environment import EnvironmentSpec
    from persia_infra.gke.pools import NodePoolSpec

_POOL_NAME_LIMIT = 24
"""GKE takes 40 characters, and the stack's name and an ending that makes it unique come on top."""


def gke_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    """All of them."""
    yield from _zone_findings(spec)
    yield from _address_findings(spec)
    yield from _control_plane_findings(spec)
    yield from _pool_findings(spec)


def _zone_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    everywhere: list[tuple[Place, list[str]]] = [(("cluster", "zones"), spec.cluster.zones)]
    everywhere += [(("pools", name, "zones"), pool.zones or []) for name, pool in spec.pools.items()]
    for place, zones in everywhere:
        for index, zone in enumerate(zones):
            if not zone.startswith(f"{spec.region}-"):
                yield (
                    (*place, index),
                    f"{zone} is not in the region {spec.region}, which one GKE cluster cannot span; "
                    f"write a zone such as {spec.region}-a",
                )
    for name, pool in spec.pools.items():
        zones = spec.zones_of(pool)
        if pool.count is not None and pool.count % len(zones):
            yield (
                ("pools", name, "count"),
                f"{pool.count} nodes cannot be spread evenly over {len(zones)} zones, as GKE does with a fixed "
                "size; write a multiple of it, or give the pool one zone",
            )
        if pool.compact_placement and len(zones) > 1:
            yield (
                ("pools", name, "compactPlacement"),
                f"needs a single zone, and the pool has {len(zones)}, so GKE would refuse it; "
                f"write zones: [{zones[0]}]",
            )


def _address_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    network = spec.network
    if network.existing:
        return
    nodes = sum(map(_most_nodes, spec.pools.values()))
    if nodes > network.node_addresses:
        yield (
            ("network", "nodesCidr"),
            f"has addresses for {network.node_addresses} nodes, but the pools may grow to {nodes} together, "
            f"upgrades included; widen it to a /{32 - ceil(log2(nodes + 4))}",
        )
    addresses = sum(_most_nodes(pool) * pod_addresses_of_node(pool.max_pods) for pool in spec.pools.values())
    if addresses > network.pod_addresses:
        yield (
            ("network", "podsCidr"),
            f"has {network.pod_addresses} addresses, but the pools' {nodes} nodes take {addresses} for their pods "
            f"(256 for a node of 110 pods); widen it to a /{32 - ceil(log2(addresses))}, or lower the pools' maxPods",
        )


def _most_nodes(pool: "NodePoolSpec") -> int:
    """With the nodes that an upgrade adds."""
    if pool.upgrades.strategy == "BLUE_GREEN":
        return 2 * pool.max_nodes
    return pool.max_nodes + pool.surge[0]


def _control_plane_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    control_plane = ipaddress.IPv4Network(spec.cluster.control_plane_cidr)
    for key, taken in spec.network.ranges.items():
        if taken.overlaps(control_plane):
            yield (
                ("cluster", "controlPlaneCidr"),
                f"overlaps network.{key}, so nodes could not reach the control plane; choose another range",
            )
    if spec.cluster.secrets_key:
        location = spec.cluster.secrets_key.split("/")[3]
        if location != spec.region:
            yield (
                ("cluster", "secretsKey"),
                f"is in {location}, and GKE takes keys of the cluster's own region only; use one in {spec.region}",
            )


def _takes_any_pod(pool: "NodePoolSpec") -> bool:
    return pool.max_nodes > 0 and all(taint.effect == "PreferNoSchedule" for taint in pool.all_taints)


def _pool_findings(spec: "EnvironmentSpec") -> Iterator[Finding]:
    if not any(_takes_any_pod(pool) for pool in spec.pools.values()):
        yield (
            ("pools",),
            "all have taints, so GKE's own pods (DNS, metrics) would stay Pending; "
            "add a small one without GPUs, such as system: {machineType: e2-standard-4, count: 1}",
        )
    for name, pool in spec.pools.items():
        if len(name) > _POOL_NAME_LIMIT:
            yield (
                ("pools", name),
                f"the name has {len(name)} characters; with the stack's name before and an ending after it, it would "
                f"be too long for GKE; use at most {_POOL_NAME_LIMIT}",
            )
        if (pool.networks or pool.network_profile) and not spec.cluster.multi_networking:
            yield (
                ("pools", name, "networks" if pool.networks else "networkProfile"),
                "needs a cluster with several networks, which cannot be turned on later; "
                "write cluster.multiNetworking: true",
            )
