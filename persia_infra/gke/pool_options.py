"""The parts of a node pool's spec. Rules that involve several parts are in `pool_rules.py`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from persia_infra.gke.machines import Machine
from persia_infra.spec.base import Spec, matching


class Autoscaling(Spec):
    """Limits for a pool that grows and shrinks with its pods, counted over all zones."""

    min: int = Field(default=0, ge=0)
    """The least number of nodes in all zones together; 0 by default."""
    max: int = Field(ge=1)
    """The greatest number of nodes in all zones together."""

    @model_validator(mode="after")
    def _min_not_above_max(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}, so no number of nodes is possible; swap them")
        return self


class Accelerators(Spec):
    """GPUs to attach to an n1 machine; other GPU machine types come with theirs."""

    type: str
    """The kind of GPU, as Google Cloud spells it: `nvidia-tesla-t4`."""
    count: int = Field(ge=1)
    """The number of GPUs per node."""


class MachineSize(Spec):
    """The size of a machine type that is not in the catalogue."""

    vcpus: int = Field(ge=1)
    """The number of virtual CPUs."""
    memory_gib: float = Field(gt=0)
    """The memory in GiB."""
    gpus: int = Field(default=0, ge=0)
    """The number of GPUs that the machine comes with; 0 by default."""
    accelerator: str | None = None
    """The kind of its GPUs, as in the node label `cloud.google.com/gke-accelerator`."""
    local_ssds: int = Field(default=0, ge=0)
    """The number of local SSDs that the machine comes with; 0 by default."""
    arch: Literal["amd64", "arm64"] = "amd64"
    """The CPU architecture; `amd64` by default."""

    @model_validator(mode="after")
    def _gpus_and_accelerator_together(self) -> Self:
        if bool(self.gpus) != bool(self.accelerator):
            raise ValueError("gpus and accelerator belong together, as GKE needs the kind and the number; set both")
        return self

    def machine(self, name: str) -> Machine:
        """Returns a machine of this size, like one from the catalogue."""
        return Machine(
            name,
            self.vcpus,
            self.memory_gib,
            self.gpus,
            self.accelerator,
            local_ssds=self.local_ssds,
            arch=self.arch,
        )


class GpuSharing(Spec):
    """Several containers share one GPU; each of them requests one `nvidia.com/gpu`."""

    strategy: Literal["TIME_SHARING", "MPS"]
    """How containers share a GPU: in turns, or at the same time through NVIDIA's Multi-Process Service."""
    clients: int = Field(ge=2, le=48)
    """The number of containers per GPU, or per partition of a partitioned GPU; 2 to 48."""


class LocalSsds(Spec):
    """Fast disks of 375 GiB each that are deleted together with their node."""

    count: int = Field(ge=1, le=32)
    """The number of disks per node; 1 to 32."""
    use: Literal["EPHEMERAL", "BLOCK"] = "EPHEMERAL"
    """`EPHEMERAL` (default) for emptyDir volumes and images, `BLOCK` for raw devices."""


class Upgrades(Spec):
    """How GKE replaces nodes when it upgrades them."""

    strategy: Literal["SURGE", "BLUE_GREEN"] = "SURGE"
    """`SURGE` (default) replaces a few nodes at a time; `BLUE_GREEN` creates a second set of nodes first."""
    max_surge: int | None = Field(default=None, ge=0)
    """SURGE: nodes created in addition during an upgrade; by default 1, or 0 for pools with GPUs."""
    max_unavailable: int | None = Field(default=None, ge=0)
    """SURGE: nodes that may be missing during an upgrade; by default 0, or 1 for pools with GPUs."""
    batch_nodes: int | None = Field(default=None, ge=1)
    """BLUE_GREEN: nodes drained at the same time; 1 by default."""
    soak_seconds: int | None = Field(default=None, ge=0, le=604800)
    """BLUE_GREEN: seconds that the old nodes are kept after all are drained; GKE's own default if absent."""


class NodeNetwork(Spec):
    """An additional network interface of each node, in an existing network."""

    network: str
    """The name of the VPC network."""
    subnet: str
    """The name of the subnet."""


RunDuration = Annotated[str, matching(r"[1-9]\d*s", 'number of seconds; write one such as "86400s"')]
