"""Node pools: the machine type, the number of nodes, how they are rented, and which pods may run on them.

Nodes are always private, shielded and on gVNIC, and are upgraded with their cluster: there are no keys for that.
Windows nodes, TPUs, sole-tenant and confidential nodes are out of scope.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Literal, Self

from pydantic import Field, model_validator

from persia_infra.gke import pool_rules
from persia_infra.gke.cluster import Zone
from persia_infra.gke.drivers import INSTALLER_CPU, DriverSpec, Image
from persia_infra.gke.machine_families import GpuDirectKind
from persia_infra.gke.machines import Machine, machine, machines, offered_gpus
from persia_infra.gke.network import PODS_PER_NODE
from persia_infra.gke.pool_options import (
    Accelerators,
    Autoscaling,
    GpuSharing,
    LocalSsds,
    MachineSize,
    NodeNetwork,
    RunDuration,
    Upgrades,
)
from persia_infra.kube.placement import Placement, Taint
from persia_infra.kube.pods import GPU
from persia_infra.spec.base import Finding, Spec, refuse
from persia_infra.spec.quantity import parse_quantity

POOL_LABEL = "persia-infra/pool"
"""The node label that selects a pool; unlike GKE's own label it stays the same when the pool is replaced."""

QUEUED_KEY = "cloud.google.com/gke-queued"

GPU_TAINT = Taint(key=GPU, value="present", effect="NoSchedule")
"""Always set explicitly: GKE adds it only if the cluster already has a pool without GPUs."""
_QUEUED_TAINT = Taint(key=QUEUED_KEY, value="true", effect="NoSchedule")
_ARM_TAINT = Taint(key="kubernetes.io/arch", value="arm64", effect="NoSchedule")
"""GKE adds this taint and the one above by itself, so jobs tolerate them although the pool does not list them."""


class NodePoolSpec(Spec):
    """Machines of one type: either a fixed `count`, or as many as `autoscaling` allows."""

    machine_type: str
    """The Compute Engine machine type: `n2-standard-8`."""
    size: MachineSize | None = None
    """The size of the machine type; only for types that are not in the catalogue."""
    accelerators: Accelerators | None = None
    """GPUs to attach to an n1 machine."""
    count: int | None = Field(default=None, ge=0)
    """The number of nodes in all zones together; cannot be combined with `autoscaling`."""
    autoscaling: Autoscaling | None = None
    """Limits between which GKE adds and removes nodes; cannot be combined with `count`."""
    zones: list[Zone] | None = Field(default=None, min_length=1)
    """The zones of this pool's nodes; the cluster's zones by default."""
    spot: bool = False
    """Whether to use Spot machines, which are cheaper and can be taken away at any time; off by default."""
    reservation: str | None = None
    """The reservation that all machines are taken from; none by default."""
    flex_start: bool = False
    """Whether to wait for discounted machines that run for at most seven days; off by default."""
    queued_provisioning: bool = False
    """Whether machines are created for a whole queued request at once or not at all; off by default."""
    max_run_duration: RunDuration | None = None
    """How long a machine may run, in seconds with the unit (`86400s`), at most seven days; no limit by default."""
    compact_placement: bool = False
    """Whether to place the machines close together, for a faster network between them; off by default."""
    image: Image = "COS_CONTAINERD"
    """The operating system of the nodes; Container-Optimized OS by default."""
    driver: DriverSpec = DriverSpec.defaults()
    """How the NVIDIA driver is installed; by GKE by default."""
    gpu_sharing: GpuSharing | None = None
    """How several containers share one GPU; one container per GPU by default."""
    gpu_partition: str | None = None
    """The size of the partitions (MIG) that each GPU is split into, such as `1g.5gb`; whole GPUs by default."""
    gpu_direct: GpuDirectKind | None = None
    """How GPUs of different nodes exchange data directly; off by default."""
    networks: list[NodeNetwork] = Field(default=[])
    """Additional network interfaces of each node, in this order; none by default."""
    network_profile: Literal["auto"] | None = None
    """`auto` lets GKE create the networks between the GPUs of a3 and newer machines; off by default."""
    max_pods: int = Field(default=PODS_PER_NODE, ge=8, le=256)
    """The most pods per node, 8 to 256 (110 by default); a smaller number uses fewer IP addresses."""
    disk_size_gb: int = Field(default=100, ge=20)
    """The size of the boot disk in GB, at least 20; 100 by default."""
    disk_type: Literal["pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"] | None = None
    """The type of the boot disk; by default balanced, on Hyperdisk for machines that need it."""
    local_ssds: LocalSsds | None = None
    """Local SSDs of each node; by default those that the machine type comes with."""
    image_streaming: bool | None = None
    """Whether containers start while their image is still being pulled; the cluster's setting by default."""
    secure_boot: bool = True
    """Whether nodes load signed kernel modules only (on by default); some GPUDirect installers need it off."""
    upgrades: Upgrades = Upgrades.defaults()
    """How GKE replaces nodes when it upgrades them."""
    labels: dict[str, str] = Field(default={})
    """Kubernetes labels of the nodes, in addition to `persia-infra/pool`."""
    taints: list[Taint] = Field(default=[])
    """Taints of the nodes, in addition to the one for GPUs; jobs placed on the pool tolerate them."""

    @property
    def machine(self) -> Machine:
        """The machine type with the GPUs attached to it."""
        if self.size is not None and self.machine_type not in machines():
            bare = self.size.machine(self.machine_type)
        else:
            bare = machine(self.machine_type)
        if self.accelerators:
            return bare.with_accelerator(self.accelerators.type, self.accelerators.count)
        return bare

    @property
    def has_gpus(self) -> bool:
        """Whether the pool's machines have GPUs."""
        return self.machine.gpus > 0

    @property
    def boot_disk_type(self) -> str:
        """The type of the boot disk; chosen by the machine type if the spec has none."""
        balanced = "pd-balanced" if self.machine.facts.boots_from_persistent_disk else "hyperdisk-balanced"
        return self.disk_type or balanced

    @property
    def ephemeral_ssds(self) -> int:
        """The number of local SSDs that hold emptyDir volumes, container logs and images."""
        if self.local_ssds:
            return self.local_ssds.count if self.local_ssds.use == "EPHEMERAL" else 0
        return self.machine.local_ssds

    @property
    def block_ssds(self) -> int:
        """The number of local SSDs that pods can use as raw devices."""
        return self.local_ssds.count if self.local_ssds and self.local_ssds.use == "BLOCK" else 0

    @property
    def allocatable(self) -> dict[str, Decimal]:
        """What pods can request on an empty node."""
        clients = self.gpu_sharing.clients if self.gpu_sharing else 1
        quantities = self.machine.allocatable(
            image_type=self.image,
            max_pods=self.max_pods,
            disk_gb=self.disk_size_gb,
            ephemeral_local_ssds=self.ephemeral_ssds,
            gpus=offered_gpus(self.machine, partition=self.gpu_partition, clients_per_gpu=clients),
        )
        amounts = {name: parse_quantity(text) for name, text in quantities.items()}
        if self.has_gpus and self.driver.install == "INSTALLER":
            amounts["cpu"] -= parse_quantity(INSTALLER_CPU)
        return amounts

    @property
    def max_nodes(self) -> int:
        """The most nodes that the pool can have, in all zones together."""
        return self.autoscaling.max if self.autoscaling else self.count or 0

    @property
    def surge(self) -> tuple[int, int]:
        """How many nodes are added, and how many may be missing, during a surge upgrade.

        A spare machine with GPUs is rarely available, so by default those pools lose one node instead.
        """
        surge, unavailable = self.upgrades.max_surge, self.upgrades.max_unavailable
        if surge is None and unavailable is None:
            return (0, 1) if self.has_gpus else (1, 0)
        return surge or 0, unavailable or 0

    @property
    def all_taints(self) -> list[Taint]:
        """The pool's own taints, preceded by the GPU taint if it has GPUs."""
        return [GPU_TAINT, *self.taints] if self.has_gpus else list(self.taints)

    def node_labels(self, pool_name: str) -> dict[str, str]:
        """Returns the labels that the pool's nodes get from this spec."""
        queued = {QUEUED_KEY: "true"} if self.queued_provisioning else {}
        return {POOL_LABEL: pool_name, **queued, **self.labels}

    def placement(self, pool_name: str) -> Placement:
        """Returns what pods need in order to run on this pool."""
        added_by_gke = [_QUEUED_TAINT] if self.queued_provisioning else []
        if self.machine.arch == "arm64":
            added_by_gke.append(_ARM_TAINT)
        return Placement(pool_name, {POOL_LABEL: pool_name}, (*self.all_taints, *added_by_gke))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        machine_findings = list(pool_rules.machine_findings(self))
        yield from machine_findings
        yield from pool_rules.size_findings(self)
        yield from pool_rules.label_findings(self, POOL_LABEL)
        if any(place[0] != "size" for place, _ in machine_findings):
            # The other rules need to know the machine.
            return
        yield from pool_rules.placement_findings(self)
        yield from pool_rules.provisioning_findings(self)
        yield from pool_rules.gpu_findings(self)
        yield from pool_rules.disk_findings(self)
        yield from pool_rules.upgrade_findings(self)
        yield from pool_rules.network_findings(self)
        yield from pool_rules.taint_findings(self, GPU)
