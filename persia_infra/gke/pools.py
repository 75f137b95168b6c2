"""Node pools: a machine type, how many, how they are rented, and what keeps other pods off them.

A pool is private, shielded and on gVNIC, and is upgraded with its cluster: there are no keys for that. Windows
nodes, TPUs, sole-tenant and confidential nodes are out of scope.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, Self

from pydantic import Field, model_validator

from persia_infra.gke import pool_rules
from persia_infra.gke.cluster import Zone
from persia_infra.gke.drivers import INSTALLER_CPU, DriverSpec, Image
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
    Taint,
    Upgrades,
)
from persia_infra.kube.pods import GPU
from persia_infra.spec.base import Finding, Spec, refuse
from persia_infra.spec.quantity import parse_quantity

__all__ = ["GPU_TAINT", "POOL_LABEL", "Autoscaling", "NodePoolSpec", "Placement", "Taint"]

POOL_LABEL = "persia-infra/pool"
"""The node label that jobs are placed by; unlike GKE's own it survives the replacement of a pool."""

QUEUED_KEY = "cloud.google.com/gke-queued"

GPU_TAINT = Taint(key=GPU, value="present", effect="NoSchedule")
"""GKE adds it by itself only where the cluster has a pool without GPUs already, hence always explicit."""
_QUEUED_TAINT = Taint(key=QUEUED_KEY, value="true", effect="NoSchedule")
_ARM_TAINT = Taint(key="kubernetes.io/arch", value="arm64", effect="NoSchedule")
"""Both are added by GKE, so that jobs have to tolerate them although the pool does not name them."""


@dataclass(frozen=True)
class Placement:
    """What a pod needs in order to land on a pool, and nowhere else."""

    pool: str
    node_selector: dict[str, str]
    taints: tuple[Taint, ...]
    """Taints that the pod has to tolerate."""

    @property
    def tolerations(self) -> list[dict[str, str]]:
        """As a pod template has them."""
        return [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
            if taint.value
            else {"key": taint.key, "operator": "Exists", "effect": taint.effect}
            for taint in self.taints
        ]


class NodePoolSpec(Spec):
    """Machines of one type; either `count` of them or as many as `autoscaling` allows."""

    machine_type: str
    size: MachineSize | None = None
    """For a machine type that the catalogue does not hold."""
    accelerators: Accelerators | None = None
    """GPUs attached to an n1 machine."""
    count: int | None = Field(default=None, ge=0)
    """Nodes in all zones together."""
    autoscaling: Autoscaling | None = None
    zones: list[Zone] | None = Field(default=None, min_length=1)
    """Zones of this pool; the cluster's when absent."""
    spot: bool = False
    reservation: str | None = None
    """Take the machines from this reservation and from nowhere else."""
    flex_start: bool = False
    """Wait for machines for up to seven days of use, at a discount."""
    queued_provisioning: bool = False
    """Machines come for a whole queued request at once, or not at all."""
    max_run_duration: RunDuration | None = None
    compact_placement: bool = False
    """Machines close to each other, for the network between them."""
    image: Image = "COS_CONTAINERD"
    driver: DriverSpec = DriverSpec()
    gpu_sharing: GpuSharing | None = None
    gpu_partition: str | None = None
    """Split each GPU into partitions (MIG) of this size: `1g.5gb`."""
    gpu_direct: Literal["TCPX", "TCPXO", "RDMA"] | None = None
    networks: list[NodeNetwork] = Field(default=[])
    """Further network interfaces, in this order."""
    network_profile: Literal["auto"] | None = None
    """Have GKE make the networks that the GPUs of a3 and newer machines talk over."""
    max_pods: int = Field(default=PODS_PER_NODE, ge=8, le=256)
    """Pods on each node; fewer take fewer addresses."""
    disk_size_gb: int = Field(default=100, ge=20)
    disk_type: Literal["pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"] | None = None
    """Balanced when absent, Hyperdisk for the machines that need it."""
    local_ssds: LocalSsds | None = None
    """The machine's own when absent."""
    image_streaming: bool | None = None
    """Start containers while their image is still being pulled; as the cluster has it when absent."""
    secure_boot: bool = True
    """Only signed kernel modules; some GPUDirect installers need it off."""
    upgrades: Upgrades = Upgrades()
    labels: dict[str, str] = Field(default={})
    taints: list[Taint] = Field(default=[])

    @property
    def machine(self) -> Machine:
        """The machine type with the GPUs attached to it."""
        if self.size is not None and self.machine_type not in machines():
            found = self.size.machine(self.machine_type)
        else:
            found = machine(self.machine_type)
        if self.accelerators:
            return found.with_accelerator(self.accelerators.type, self.accelerators.count)
        return found

    @property
    def has_gpus(self) -> bool:
        """Whether its machines have GPUs."""
        return self.machine.gpus > 0

    @property
    def boot_disk_type(self) -> str:
        """The disk type, chosen by the machine where none is given."""
        balanced = "hyperdisk-balanced" if pool_rules.needs_hyperdisk(self.machine_type) else "pd-balanced"
        return self.disk_type or balanced

    @property
    def ephemeral_ssds(self) -> int:
        """Local SSDs under emptyDir volumes, container logs and images."""
        if self.local_ssds:
            return self.local_ssds.count if self.local_ssds.use == "EPHEMERAL" else 0
        return self.machine.local_ssds

    @property
    def block_ssds(self) -> int:
        """Local SSDs that are left to the pods as raw devices."""
        return self.local_ssds.count if self.local_ssds and self.local_ssds.use == "BLOCK" else 0

    @property
    def allocatable(self) -> dict[str, Decimal]:
        """What pods can ask for on an empty node."""
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
        """The most nodes it can have, in all zones together."""
        return self.autoscaling.max if self.autoscaling else self.count or 0

    @property
    def surge(self) -> tuple[int, int]:
        """Nodes added and nodes missing while a surge upgrade goes on.

        A spare machine with GPUs is rarely to be had, so those pools give one up instead.
        """
        surge, unavailable = self.upgrades.max_surge, self.upgrades.max_unavailable
        if surge is None and unavailable is None:
            return (0, 1) if self.has_gpus else (1, 0)
        return surge or 0, unavailable or 0

    @property
    def all_taints(self) -> list[Taint]:
        """Its own taints after the GPU one, where it has GPUs."""
        return [GPU_TAINT, *self.taints] if self.has_gpus else list(self.taints)

    def node_labels(self, pool_name: str) -> dict[str, str]:
        """Labels of its nodes."""
        queued = {QUEUED_KEY: "true"} if self.queued_provisioning else {}
        return {POOL_LABEL: pool_name, **queued, **self.labels}

    def placement(self, pool_name: str) -> Placement:
        """How pods are put on it."""
        by_gke = [_QUEUED_TAINT] if self.queued_provisioning else []
        if self.machine.arch == "arm64":
            by_gke.append(_ARM_TAINT)
        return Placement(pool_name, {POOL_LABEL: pool_name}, (*self.all_taints, *by_gke))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        wrong_machine = list(pool_rules.machine_findings(self))
        yield from wrong_machine
        yield from pool_rules.size_findings(self)
        yield from pool_rules.label_findings(self, POOL_LABEL)
        if any(place[0] != "size" for place, _ in wrong_machine):
            return
        yield from pool_rules.placement_findings(self)
        yield from pool_rules.provisioning_findings(self)
        yield from pool_rules.gpu_findings(self)
        yield from pool_rules.disk_findings(self)
        yield from pool_rules.upgrade_findings(self)
        yield from pool_rules.network_findings(self)
        yield from pool_rules.taint_findings(self, GPU)
