"""What Google Cloud refuses or silently drops in node pools, said before anything is rented.

One function for each subject; each yields its findings with the key to blame. What needs the rest of the
environment (zones, other pools, the cluster) is checked there.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from persia_infra.gke.drivers import driver_findings
from persia_infra.gke.machines import UnknownMachine, WrongAccelerator, machine, offered_gpus
from persia_infra.spec.base import Finding

if TYPE_CHECKING:
    from persia_infra.gke.pools import NodePoolSpec

_LONGEST_RUN_SECONDS = 7 * 24 * 3600
_NO_COMPACT_PLACEMENT = frozenset({"e2", "n1"})
_FLEX_START_COMPACT = re.compile(r"a3-ultragpu-|a4-|h4d-")
_NO_LOCAL_SSDS = frozenset({"e2", "m2", "c4", "m4", "n4"})
_HYPERDISK_ONLY = re.compile(r"(a3-ultragpu|a4|a4x|c4|g4|m4|n4)-")
_NO_HYPERDISK = frozenset({"a2", "c2", "c2d", "e2", "g2", "n1", "n2", "n2d"})
_GPUDIRECT = {
    "TCPX": (re.compile(r"a3-highgpu-8g"), 4),
    "TCPXO": (re.compile(r"a3-megagpu-8g"), 8),
    "RDMA": (re.compile(r"(a3-ultragpu-8g|a4-highgpu-8g|a4x-highgpu-4g)"), None),
}
_RESERVED_LABEL = re.compile(r"([a-z0-9.-]+\.)?(kubernetes|k8s)\.io/")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def needs_hyperdisk(machine_type: str) -> bool:
    """Whether the machine boots from Hyperdisk only."""
    return _HYPERDISK_ONLY.match(machine_type) is not None


def machine_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    """The machine type, its size, and the GPUs attached to it; nothing else can be said while this is wrong."""
    try:
        found = machine(pool.machine_type)
    except UnknownMachine as error:
        if pool.size is None:
            yield ("machineType",), f"{error} (a type newer than this catalogue needs its size: vcpus, memoryGib, …)"
            return
        found = pool.size.machine(pool.machine_type)
    else:
        if pool.size is not None:
            yield (
                ("size",),
                f"{pool.machine_type} is in the catalogue, and two sizes could contradict each other; remove this one",
            )
    if pool.accelerators is None:
        return
    try:
        found.with_accelerator(pool.accelerators.type, pool.accelerators.count)
    except WrongAccelerator as error:
        yield ("accelerators",), str(error)


def size_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    if pool.count is None and pool.autoscaling is None:
        yield (
            ("count",),
            "is missing and so is autoscaling, so the pool has no size; "
            "write count: 2, or autoscaling: {min: 0, max: 2}",
        )
    if pool.count is not None and pool.autoscaling is not None:
        yield ("count",), "is given besides autoscaling, and each would undo the other's changes; keep one"


def placement_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    if not pool.compact_placement:
        return
    if pool.machine.family in _NO_COMPACT_PLACEMENT:
        yield (
            ("compactPlacement",),
            f"{pool.machine.family} machines cannot be placed close together, so GKE would refuse the pool; "
            "remove it, or take another family",
        )
    if pool.upgrades.strategy == "BLUE_GREEN":
        yield (
            ("upgrades", "strategy"),
            "BLUE_GREEN is not available with compactPlacement, so GKE would refuse the pool; write SURGE",
        )
    if pool.queued_provisioning:
        yield (
            ("compactPlacement",),
            "is not available with queuedProvisioning, which places the nodes itself; remove one",
        )


def provisioning_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    """Spot, reservations, flex-start and queued provisioning: at most one way to get a machine."""
    if pool.spot and pool.reservation:
        yield (
            ("reservation",),
            "Spot machines never come from a reservation, which would be paid for and stay unused; remove one of both",
        )
    for key, on in (("queuedProvisioning", pool.queued_provisioning), ("flexStart", pool.flex_start)):
        if not on:
            continue
        if pool.spot:
            yield (key,), "is not available for Spot machines, so GKE would refuse the pool; remove one"
        if pool.reservation:
            yield (
                ("reservation",),
                f"cannot be used with {key}, which takes machines from another pool of capacity; remove one",
            )
        if pool.autoscaling is None:
            yield (
                (key,),
                "needs autoscaling instead of count: the machines come when a job asks for them; "
                "write autoscaling: {min: 0, max: …}",
            )
    if pool.queued_provisioning and pool.autoscaling and pool.autoscaling.min:
        yield (
            ("autoscaling", "min"),
            f"{pool.autoscaling.min} nodes could never be there without a queued request; write 0",
        )
    if pool.flex_start and pool.compact_placement and not _FLEX_START_COMPACT.match(pool.machine_type):
        yield (
            ("compactPlacement",),
            f"is not available with flexStart on {pool.machine_type} (only a3-ultragpu, a4 and h4d); remove one",
        )
    if pool.max_run_duration and int(pool.max_run_duration[:-1]) > _LONGEST_RUN_SECONDS:
        yield ("maxRunDuration",), "is above seven days, the longest that Google Cloud allows; write at most 604800s"
    if pool.reservation is not None and not re.fullmatch(
        r"(projects/[^/]+/reservations/)?[a-z]([-a-z0-9]*[a-z0-9])?", pool.reservation
    ):
        yield (
            ("reservation",),
            "is no name of a reservation; write its name, or projects/PROJECT/reservations/NAME for a shared one",
        )


def gpu_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    if not pool.has_gpus:
        keys = ("gpu_sharing", "gpu_partition", "gpu_direct", "driver")
        for key in keys:
            if key in pool.model_fields_set and getattr(pool, key) is not None:
                alias = type(pool).model_fields[key].alias or key
                yield (alias,), f"has no effect on {pool.machine_type}, which has no GPUs; remove it"
        return
    if pool.gpu_partition:
        try:
            offered_gpus(pool.machine, partition=pool.gpu_partition)
        except WrongAccelerator as error:
            yield ("gpuPartition",), str(error)
        if pool.gpu_sharing and pool.gpu_sharing.strategy == "MPS":
            yield (
                ("gpuSharing", "strategy"),
                "MPS does not work on partitioned GPUs, so GKE would refuse the pool; "
                "write TIME_SHARING, or remove gpuPartition",
            )
    yield from driver_findings(pool.driver, pool.image, partitioned=pool.gpu_partition is not None)


def disk_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    found = pool.machine
    if pool.disk_type:
        hyperdisk = pool.disk_type.startswith("hyperdisk")
        if needs_hyperdisk(pool.machine_type) and not hyperdisk:
            yield (
                ("diskType",),
                f"{pool.machine_type} boots from Hyperdisk only, so its nodes would never start; "
                "write hyperdisk-balanced, or leave it out",
            )
        if hyperdisk and found.family in _NO_HYPERDISK:
            yield (
                ("diskType",),
                f"{found.family} machines do not boot from Hyperdisk, so its nodes would never start; "
                "write pd-balanced, or leave it out",
            )
    if pool.local_ssds is None:
        return
    if found.local_ssds and pool.local_ssds.count != found.local_ssds:
        yield (
            ("localSsds", "count"),
            f"{pool.machine_type} comes with {found.local_ssds}, no more and no fewer; write that, or leave it out",
        )
    elif not found.local_ssds and found.family in _NO_LOCAL_SSDS:
        yield ("localSsds",), f"{found.family} machines take none, so its nodes would never start; remove it"


def upgrade_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
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
                "BLUE_GREEN needs a second set of machines at once, which neither flexStart nor queuedProvisioning "
                "gives; write SURGE",
            )
        return
    surge, unavailable = pool.surge
    if not surge and not unavailable:
        yield ("upgrades",), "maxSurge and maxUnavailable are both 0, so no node could ever be upgraded; raise one"
    if surge + unavailable > 20:
        yield (
            ("upgrades",),
            f"maxSurge and maxUnavailable are {surge + unavailable} together, above GKE's limit of 20; lower them",
        )


def network_findings(pool: "NodePoolSpec") -> Iterator[Finding]:
    if pool.gpu_direct and pool.has_gpus:
        machines, interfaces = _GPUDIRECT[pool.gpu_direct]
        if not machines.match(pool.machine_type):
            yield (
                ("gpuDirect",),
                f"{pool.gpu_direct} does not exist on {pool.machine_type}; it is for "
                f"{machines.pattern.strip('()').replace('|', ', ')}",
            )
        elif not pool.networks and not pool.network_profile:
            yield (
                ("gpuDirect",),
                "needs further network interfaces; write networkProfile: auto to have GKE make them, "
                "or name them in networks",
            )
        elif pool.networks and interfaces and len(pool.networks) != interfaces:
            yield (
                ("networks",),
                f"{pool.gpu_direct} uses {interfaces} further interfaces, and {len(pool.networks)} are given",
            )
    if pool.networks and pool.network_profile:
        yield ("networks",), "is given besides networkProfile: auto, which makes its own; keep one"
    if len(pool.networks) > 9:
        yield ("networks",), f"a machine has ten interfaces at most, one of them taken, and {len(pool.networks)} follow"


def label_findings(pool: "NodePoolSpec", own_label: str) -> Iterator[Finding]:
    for key, value in pool.labels.items():
        if key == own_label or _RESERVED_LABEL.match(key):
            yield ("labels", key), "is set by others (Kubernetes, GKE or this library); choose another key"
        elif not _LABEL_VALUE.fullmatch(value):
            yield (
                ("labels", key),
                "has a value that Kubernetes does not take for a label; "
                "use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
            )


def taint_findings(pool: "NodePoolSpec", gpu_key: str) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(pool.taints):
        if pool.has_gpus and taint.key == gpu_key:
            yield (
                ("taints", index),
                f"pools with GPUs have the taint {gpu_key} already, and GKE refuses a second one; remove it",
            )
        elif (taint.key, taint.effect) in seen:
            yield (
                ("taints", index),
                f"a taint {taint.key} with the effect {taint.effect} is there already, and GKE refuses a second one; "
                "remove it",
            )
        seen.add((taint.key, taint.effect))
