"""Derives nodes from the properties of a GKE node pool: how many, in which zones, of what size, with which labels.

These are pure functions; `node_pools.py` creates the nodes in the API server. Windows nodes, TPUs and the taints
that GKE adds by itself in special cases are out of scope: a program that relies on such a taint has to set it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from persia_infra.gke.machines import Machine, UnknownMachine, WrongAccelerator, machine, offered_gpus
from persia_infra.rehearsal.provider.gcp_types import is_zone, region_of, zones_of
from persia_infra.rehearsal.provider.package import Properties, ProviderError

POOL_LABEL = "cloud.google.com/gke-nodepool"
DEFAULT_MACHINE_TYPE = "e2-medium"
SIZE_KEY = "persia-infra-machine-size"
"""The key of instance metadata that holds the size of a machine type missing from the catalogue, as JSON."""
_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"

Taint = dict[str, str]


@dataclass(frozen=True)
class NodeTemplate:
    """The properties that all nodes of a pool share."""

    machine: Machine
    capacity: dict[str, str]
    allocatable: dict[str, str]
    labels: dict[str, str]
    taints: list[Taint] = field(default_factory=list)

    def is_another_machine(self, other: "NodeTemplate") -> bool:
        """Whether the templates differ in more than labels and taints, so that nodes have to be replaced."""
        return (self.machine, self.capacity, self.allocatable) != (other.machine, other.capacity, other.allocatable)


@dataclass(frozen=True)
class Limits:
    """The maximum size of an autoscaled pool: in each zone, or in all zones together."""

    per_zone: int | None
    total: int | None

    def room(self, nodes: Mapping[str, int]) -> int:
        """Returns how many more nodes may be created, given the nodes of each zone."""
        if self.total is not None:
            return max(0, self.total - sum(nodes.values()))
        return sum(max(0, (self.per_zone or 0) - count) for count in nodes.values())

    def zones_for(self, nodes: Mapping[str, int], more: int) -> dict[str, int]:
        """Distributes `more` nodes evenly over the zones, within the limits."""
        counts, added = dict(nodes), dict.fromkeys(nodes, 0)
        for _ in range(min(more, self.room(nodes))):
            zone = min((zone for zone in counts if self._open(counts[zone])), key=lambda zone: (counts[zone], zone))
            counts[zone] += 1
            added[zone] += 1
        return added

    def exceeded_by(self, nodes: Mapping[str, int]) -> bool:
        if self.total is not None:
            return sum(nodes.values()) > self.total
        return any(count > (self.per_zone or 0) for count in nodes.values())

    def _open(self, count: int) -> bool:
        return self.total is not None or count < (self.per_zone or 0)


@dataclass(frozen=True)
class PoolPlan:
    """A described pool: its template, and the initial and minimum number of nodes in each zone."""

    cluster: str
    name: str
    project: str
    template: NodeTemplate
    start: dict[str, int]
    least: dict[str, int]
    limits: Limits | None
    fixed: bool
    """Whether the program sets the number of nodes (`nodeCount`), so that an update restores it."""


def pool_plan(
    inputs: Properties, *, cluster: str, cluster_location: str, cluster_zones: Sequence[str], project: str
) -> PoolPlan:
    """Returns the nodes that GKE would create for the inputs of a NodePool.

    Raises:
        ProviderError: GKE would refuse the inputs.
    """
    name = str(inputs["name"])
    where = f"node pool {name} of cluster {cluster}"
    zones = [str(zone) for zone in inputs.get("nodeLocations") or cluster_zones]
    region = region_of(cluster_location)
    if invalid := [zone for zone in zones if not is_zone(zone) or region_of(zone) != region]:
        example = zones_of(region)[0]
        raise _refused(
            where, f"nodeLocations {', '.join(invalid)}: not zones of the region {region}: use zones like {example}"
        )
    scaling = inputs.get("autoscaling") or {}
    count, initial = _number(inputs.get("nodeCount")), _number(inputs.get("initialNodeCount"))
    if count is not None and initial is not None:
        raise _refused(
            where,
            "nodeCount and initialNodeCount are both set: keep nodeCount for a fixed size, or initialNodeCount",
        )
    limits, minimum = _limits(where, scaling)
    start = dict.fromkeys(sorted(zones), (count if count is not None else initial) or 0)
    least = _at_least(dict.fromkeys(start, 0), limits, minimum)
    start = _at_least(start, limits, minimum)
    if limits and limits.exceeded_by(start):
        nodes = sum(start.values())
        raise _refused(
            where, f"the initial {nodes} nodes exceed the autoscaling maximum: raise the maximum or start with fewer"
        )
    template = node_template(where, name, inputs, cluster_location)
    return PoolPlan(cluster, name, project, template, start, least, limits, fixed=count is not None)


def _at_least(counts: dict[str, int], limits: Limits | None, minimum: int) -> dict[str, int]:
    if limits is None:
        return counts
    if limits.total is None:
        return {zone: max(count, minimum) for zone, count in counts.items()}
    added = limits.zones_for(counts, minimum - sum(counts.values()))
    return {zone: count + added[zone] for zone, count in counts.items()}


def _limits(where: str, scaling: Properties) -> tuple[Limits | None, int]:
    per_zone = {key: _number(scaling.get(key)) for key in ("minNodeCount", "maxNodeCount")}
    total = {key: _number(scaling.get(key)) for key in ("totalMinNodeCount", "totalMaxNodeCount")}
    has_total = any(value for value in total.values())
    if has_total and any(value for value in per_zone.values()):
        raise _refused(
            where,
            "autoscaling limits per zone (minNodeCount, maxNodeCount) cannot be combined with total limits: "
            "keep one kind",
        )
    if not has_total and per_zone["maxNodeCount"] is None:
        if scaling:
            raise _refused(where, "autoscaling has no maximum: set maxNodeCount (per zone) or totalMaxNodeCount")
        return None, 0
    least, most = total.values() if has_total else per_zone.values()
    if (least or 0) > (most or 0):
        raise _refused(where, f"the autoscaling minimum {least} is greater than the maximum {most}: change one of them")
    return (Limits(None, most or 0) if has_total else Limits(most or 0, None)), least or 0


def node_template(where: str, pool: str, inputs: Properties, location: str) -> NodeTemplate:
    config = inputs.get("nodeConfig") or {}
    size, gpu = _sized_machine(where, config)
    sharing = gpu.get("gpuSharingConfig") or {}
    clients = _number(sharing.get("maxSharedClientsPerGpu")) or 1
    max_pods = _number(inputs.get("maxPodsPerNode")) or 110
    disk_type = config.get("diskType") or "pd-balanced"
    ssds = _number((config.get("ephemeralStorageLocalSsdConfig") or {}).get("localSsdCount")) or 0
    try:
        devices = offered_gpus(size, partition=gpu.get("gpuPartitionSize") or None, clients_per_gpu=clients)
    except WrongAccelerator as error:
        raise _refused(where, str(error)) from error
    shape: dict[str, Any] = {
        "image_type": config.get("imageType") or "COS_CONTAINERD",
        "max_pods": max_pods,
        "disk_gb": _number(config.get("diskSizeGb")) or 100,
        "ephemeral_local_ssds": ssds,
        "gpus": devices,
    }
    spot = bool(config.get("spot"))
    labels = {
        POOL_LABEL: pool,
        "beta.kubernetes.io/arch": size.arch,
        "beta.kubernetes.io/os": "linux",
        "cloud.google.com/gke-boot-disk": disk_type,
        "cloud.google.com/gke-container-runtime": "containerd",
        "cloud.google.com/gke-cpu-scaling-level": str(size.vcpus),
        "cloud.google.com/gke-max-pods-per-node": str(max_pods),
        "cloud.google.com/gke-os-distribution": "ubuntu" if shape["image_type"].upper().startswith("UBUNTU") else "cos",
        "cloud.google.com/gke-provisioning": "spot"
        if spot
        else "preemptible"
        if config.get("preemptible")
        else "standard",
        "cloud.google.com/machine-family": size.family,
        "kubernetes.io/arch": size.arch,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": size.name,
        "topology.kubernetes.io/region": region_of(location),
    }
    if spot:
        labels["cloud.google.com/gke-spot"] = "true"
    if config.get("preemptible"):
        labels["cloud.google.com/gke-preemptible"] = "true"
    if (inputs.get("queuedProvisioning") or {}).get("enabled"):
        labels["cloud.google.com/gke-queued"] = "true"
    if ssds:
        labels["cloud.google.com/gke-ephemeral-storage-local-ssd"] = "true"
    if size.gpus:
        labels |= _gpu_labels(size, gpu, clients, sharing)
    labels |= {str(key): str(value) for key, value in (config.get("labels") or {}).items()}
    taints = [_taint(where, taint) for taint in config.get("taints") or []]
    return NodeTemplate(size, size.capacity(**shape), size.allocatable(**shape), labels, taints)


def _sized_machine(where: str, config: Properties) -> tuple[Machine, Properties]:
    accelerators = [gpu for gpu in config.get("guestAccelerators") or [] if _number(gpu.get("count"))]
    try:
        size = _machine(str(config.get("machineType") or DEFAULT_MACHINE_TYPE), config.get("metadata") or {})
        if not accelerators:
            return size, {}
        gpu = accelerators[0]
        return size.with_accelerator(str(gpu["type"]).rpartition("/")[2], int(gpu["count"])), gpu
    except (UnknownMachine, WrongAccelerator) as error:
        raise _refused(where, str(error)) from error


def _machine(name: str, metadata: Properties) -> Machine:
    """Returns a machine of the catalogue, or one of the size that the program gives for a newer type."""
    try:
        return machine(name)
    except UnknownMachine:
        if SIZE_KEY not in metadata:
            raise
    size = json.loads(metadata[SIZE_KEY])
    return Machine(name, size.pop("vcpus"), size.pop("memory_gib"), **size)


def _gpu_labels(size: Machine, gpu: Properties, clients: int, sharing: Properties) -> dict[str, str]:
    labels = {
        "cloud.google.com/gke-accelerator": str(size.accelerator),
        "cloud.google.com/gke-accelerator-count": str(size.gpus),
        "cloud.google.com/gke-gpu": "true",
    }
    driver = (gpu.get("gpuDriverInstallationConfig") or {}).get("gpuDriverVersion") or "DEFAULT"
    if driver != "INSTALLATION_DISABLED":
        labels["cloud.google.com/gke-gpu-driver-version"] = "latest" if driver == "LATEST" else "default"
    if gpu.get("gpuPartitionSize"):
        labels["cloud.google.com/gke-gpu-partition-size"] = gpu["gpuPartitionSize"]
    if sharing:
        strategy = str(sharing.get("gpuSharingStrategy", "")).lower().replace("_", "-")
        labels["cloud.google.com/gke-gpu-sharing-strategy"] = strategy
        labels["cloud.google.com/gke-max-shared-clients-per-gpu"] = str(clients)
    return labels


def _taint(where: str, taint: Properties) -> Taint:
    if (effect := str(taint.get("effect"))) not in _EFFECTS:
        raise _refused(where, f"taint {taint.get('key')}: effect {effect!r}: use one of {', '.join(_EFFECTS)}")
    return {"key": str(taint["key"]), "value": str(taint.get("value") or ""), "effect": _EFFECTS[effect]}


def node_manifest(plan: PoolPlan, zone: str, serial: str) -> dict[str, Any]:
    """Returns the Node object; `serial` makes its name unique in the pool."""
    name = node_name(plan, serial)
    labels = {
        **plan.template.labels,
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": zone,
        "topology.gke.io/zone": zone,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"gce://{plan.project}/{zone}/{name}", "taints": plan.template.taints},
        "status": {"capacity": plan.template.capacity, "allocatable": plan.template.allocatable},
    }


def node_name(plan: PoolPlan, serial: str) -> str:
    group = hashlib.sha256(f"{plan.project}/{plan.cluster}/{plan.name}".encode()).hexdigest()[:8]
    stem = f"gke-{plan.cluster}-{plan.name}"[:49].rstrip("-")
    number = int(hashlib.sha256(serial.encode()).hexdigest(), 16)
    ending = ""
    for _ in range(4):
        number, letter = divmod(number, len(_NAME_LETTERS))
        ending += _NAME_LETTERS[letter]
    return f"{stem}-{group}-{ending}"


def cluster_zones(inputs: Properties, location: str) -> list[str]:
    """Returns the zones of a cluster's nodes, for pools that set none."""
    named = [str(zone) for zone in inputs.get("nodeLocations") or []]
    if is_zone(location):
        return sorted({location, *named})
    return named or zones_of(location)


def _number(value: Any) -> int | None:  # noqa: ANN401
    return None if value is None else int(value)


def _refused(where: str, reason: str) -> ProviderError:
    return ProviderError(f"{where}: Google Cloud would refuse it: Error 400: {reason}")
