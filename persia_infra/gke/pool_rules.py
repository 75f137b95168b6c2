"""Options of a node pool that Google Cloud would refuse or silently ignore.

Each function checks one topic and yields its findings with the key to change. Facts about machine families are in
`machine_families.py`. Rules that involve other parts of the environment (zones, other pools, the cluster) are in
`rules.py`.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from persia_infra.gke.drivers import driver_findings
from persia_infra.gke.machine_families import FLEX_START_COMPACT_FAMILIES, GPU_DIRECT
from persia_infra.gke.machines import UnknownMachine, WrongAccelerator, machine, offered_gpus
from persia_infra.spec.base import Finding

if TYPE_CHECKING:  # pools.py imports this module
    from persia_infra.gke.pools import NodePoolSpec

_LONGEST_RUN_SECONDS = 7 * 24 * 3600
_MOST_UPGRADED_AT_ONCE = 20
_MOST_EXTRA_NETWORKS = 9
_RESERVATION = re.compile(r"(projects/[^/]+/reservations/)?[a-z]([-a-z0-9]*[a-z0-9])?")
_RESERVED_LABEL = re.compile(r"([a-z0-9.-]+\.)?(kubernetes|k8s)\.io/")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def machine_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    """Checks the machine type, its size and the GPUs attached to it; most other rules need these to be right."""
    try:
        bare = machine(pool.machine_type)
    except UnknownMachine as error:
        if pool.size is None:
            yield (
                ("machineType",),
                f"{error} (for a type newer than this catalogue, add its size: {{vcpus: …, memoryGib: …}})",
            )
            return
        bare = pool.size.machine(pool.machine_type)
    else:
        if pool.size is not None:
            yield (
                ("size",),
                f"{pool.machine_type} is in the catalogue, so a second size could contradict it; remove size",
            )
    if pool.accelerators is None:
        return
    try:
        bare.with_accelerator(pool.accelerators.type, pool.accelerators.count)
    except WrongAccelerator as error:
        yield ("accelerators",), str(error)


def size_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    """Checks that the pool has exactly one of a fixed number of nodes and autoscaling."""
    if pool.count is None and pool.autoscaling is None:
        yield (
            ("count",),
            "is missing and so is autoscaling, so the pool has no size; "
            "write count: 2, or autoscaling: {min: 0, max: 2}",
        )
    if pool.count is not None and pool.autoscaling is not None:
        yield ("count",), "cannot be combined with autoscaling: each would undo the other's changes; remove one of them"


def placement_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    """Checks what cannot be combined with compact placement."""
    if not pool.compact_placement:
        return
    if not pool.machine.facts.compact_placement:
        yield (
            ("compactPlacement",),
            f"{pool.machine.family} machines cannot be placed close together, so GKE would refuse the pool; "
            "remove it, or use another machine family",
        )
    if pool.upgrades.strategy == "BLUE_GREEN":
        yield (
            ("upgrades", "strategy"),
            "BLUE_GREEN cannot be combined with compactPlacement, so GKE would refuse the pool; write SURGE",
        )
    if pool.queued_provisioning:
        yield (
            ("compactPlacement",),
            "cannot be combined with queuedProvisioning, which places the nodes itself; remove one of them",
        )


def provisioning_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    """Checks Spot, reservations, flex-start and queued provisioning, of which a pool can use at most one."""
    if pool.spot and pool.reservation:
        yield (
            ("reservation",),
            "cannot be combined with spot: Spot machines never come from a reservation, so you would pay for it "
            "without using it; remove one of them",
        )
    for key, enabled in (("queuedProvisioning", pool.queued_provisioning), ("flexStart", pool.flex_start)):
        if not enabled:
            continue
        if pool.spot:
            yield (key,), "cannot be combined with spot, so GKE would refuse the pool; remove one of them"
        if pool.reservation:
            yield (
                ("reservation",),
                f"cannot be combined with {key}, which does not use reserved capacity; remove one of them",
            )
        if pool.autoscaling is None:
            yield (
                (key,),
                "needs autoscaling instead of count, because machines are created only when a job asks for them; "
                "write autoscaling: {min: 0, max: …}",
            )
    if pool.queued_provisioning and pool.autoscaling and pool.autoscaling.min:
        yield (
            ("autoscaling", "min"),
            f"{pool.autoscaling.min} is not possible with queuedProvisioning, which creates nodes only for a queued "
            "request; write 0",
        )
    if pool.flex_start and pool.compact_placement and not pool.machine.facts.flex_start_compact_placement:
        yield (
            ("compactPlacement",),
            f"cannot be combined with flexStart on {pool.machine_type}, only on "
            f"{', '.join(FLEX_START_COMPACT_FAMILIES)} machines; remove one of them",
        )
    if pool.max_run_duration and int(pool.max_run_duration[:-1]) > _LONGEST_RUN_SECONDS:
        yield (
            ("maxRunDuration",),
            f"is above seven days, the longest that Google Cloud allows; write at most {_LONGEST_RUN_SECONDS}s",
        )
    if pool.reservation is not None and not _RESERVATION.fullmatch(pool.reservation):
        yield (
            ("reservation",),
            "is not a valid name of a reservation, so GKE would refuse the pool; write its name, or "
            "projects/PROJECT/reservations/NAME for a shared one",
        )


def gpu_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    """Checks GPU sharing, partitions and drivers, and that pools without GPUs have none of them."""
    if not pool.has_gpus:
        for field in ("gpu_sharing", "gpu_partition", "gpu_direct", "driver"):
            if field in pool.model_fields_set and getattr(pool, field) is not None:
                key = type(pool).model_fields[field].alias or field
                yield (key,), f"has no effect on {pool.machine_type}, which has no GPUs; remove it"
        return
    if pool.gpu_partition:
        try:
            offered_gpus(pool.machine, partition=pool.gpu_partition)
        except WrongAccelerator as error:
            yield ("gpuPartition",), str(error)
        if pool.gpu_sharing and pool.gpu_sharing.strategy == "MPS":
            yield (
                ("gpuSharing", "strategy"),
                "MPS cannot be combined with gpuPartition, so GKE would refuse the pool; "
                "write TIME_SHARING, or remove gpuPartition",
            )
    yield from driver_findings(pool.driver, pool.image, partitioned=pool.gpu_partition is not None)


def disk_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    """Checks the boot disk and the local SSDs against what the machine type supports."""
    facts = pool.machine.facts
    if pool.disk_type:
        hyperdisk = pool.disk_type.startswith("hyperdisk")
        if not hyperdisk and not facts.boots_from_persistent_disk:
            yield (
                ("diskType",),
                f"{pool.machine_type} boots from Hyperdisk only, so the nodes would never start; "
                "write hyperdisk-balanced, or remove diskType",
            )
        if hyperdisk and not facts.boots_from_hyperdisk:
            yield (
                ("diskType",),
                f"{pool.machine.family} machines do not boot from Hyperdisk, so the nodes would never start; "
                "write pd-balanced, or remove diskType",
            )
    if pool.local_ssds is None:
        return
    own_ssds = pool.machine.local_ssds
    if own_ssds and pool.local_ssds.count != own_ssds:
        yield (
            ("localSsds", "count"),
            f"{pool.machine_type} always has {own_ssds} local SSDs, so GKE would refuse the pool; "
            f"write {own_ssds}, or remove localSsds",
        )
    elif not own_ssds and not facts.takes_local_ssds:
        yield (
            ("localSsds",),
            f"{pool.machine.family} machines have no local SSDs, so the nodes would never start; remove it",
        )


def upgrade_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    """Checks that the options of an upgrade strategy belong to it and leave it able to make progress."""
    upgrades = pool.upgrades
    blue_green = upgrades.strategy == "BLUE_GREEN"
    for key, value, belongs in (
        ("maxSurge", upgrades.max_surge, not blue_green),
        ("maxUnavailable", upgrades.max_unavailable, not blue_green),
        ("batchNodes", upgrades.batch_nodes, blue_green),
        ("soakSeconds", upgrades.soak_seconds, blue_green),
    ):
        if value is not None and not belongs:
            yield ("upgrades", key), f"has no effect with strategy: {upgrades.strategy}; remove it"
    if blue_green:
        if pool.flex_start or pool.queued_provisioning:
            yield (
                ("upgrades", "strategy"),
                "BLUE_GREEN needs a second set of machines at once, which flexStart and queuedProvisioning cannot "
                "provide; write SURGE",
            )
        return
    surge, unavailable = pool.surge
    if not surge and not unavailable:
        yield ("upgrades",), "maxSurge and maxUnavailable are both 0, so no node could ever be upgraded; raise one"
    if surge + unavailable > _MOST_UPGRADED_AT_ONCE:
        yield (
            ("upgrades",),
            f"maxSurge and maxUnavailable add up to {surge + unavailable}, above GKE's limit of "
            f"{_MOST_UPGRADED_AT_ONCE}; lower them",
        )


def network_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    """Checks GPUDirect and additional network interfaces."""
    if pool.gpu_direct and pool.has_gpus:
        gpu_direct = GPU_DIRECT[pool.gpu_direct]
        if not gpu_direct.supports(pool.machine_type):
            yield (
                ("gpuDirect",),
                f"{pool.gpu_direct} is not available on {pool.machine_type}, so GPUs would not use it; remove it, or "
                f"use {' or '.join(gpu_direct.machine_types)}",
            )
        elif not pool.networks and not pool.network_profile:
            yield (
                ("gpuDirect",),
                "needs additional network interfaces; write networkProfile: auto to let GKE create them, "
                "or list them in networks",
            )
        elif pool.networks and gpu_direct.interfaces and len(pool.networks) != gpu_direct.interfaces:
            yield (
                ("networks",),
                f"{pool.gpu_direct} uses {gpu_direct.interfaces} additional interfaces, but {len(pool.networks)} are "
                f"listed; list {gpu_direct.interfaces}",
            )
    if pool.networks and pool.network_profile:
        yield (
            ("networks",),
            "cannot be combined with networkProfile: auto, which creates its own networks; remove one of them",
        )
    if len(pool.networks) > _MOST_EXTRA_NETWORKS:
        yield (
            ("networks",),
            f"lists {len(pool.networks)} networks, but a machine has at most {_MOST_EXTRA_NETWORKS} in addition to "
            "its first; remove some",
        )


def label_findings(pool: "NodePoolSpec", own_label: str) -> Iterator[Finding]:
    """Checks that labels are valid and not already set by Kubernetes, GKE or this library."""
    for key, value in pool.labels.items():
        if key == own_label or _RESERVED_LABEL.match(key):
            yield ("labels", key), "is set by Kubernetes, GKE or this library; choose another key"
        elif not _LABEL_VALUE.fullmatch(value):
            yield (
                ("labels", key),
                "is not a valid label value, so Kubernetes would refuse the nodes; use at most 63 letters, digits, "
                "'-', '_' and '.', with a letter or digit at both ends",
            )


def taint_findings(pool: "NodePoolSpec", gpu_key: str) -> Iterator[Finding]:
    """Checks that no taint is given twice, including the one that every GPU pool has."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(pool.taints):
        if pool.has_gpus and taint.key == gpu_key:
            yield (
                ("taints", index),
                f"pools with GPUs already have the taint {gpu_key}, and GKE refuses a second one; remove it",
            )
        elif (taint.key, taint.effect) in seen:
            yield (
                ("taints", index),
                f"a taint {taint.key} with the effect {taint.effect} is already listed, and GKE refuses a second one; "
                "remove it",
            )
        seen.add((taint.key, taint.effect))
