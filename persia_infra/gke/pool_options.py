"""The parts of a node pool's description; what holds between them is in `pool_rules.py`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from persia_infra.gke.machines import Machine
from persia_infra.spec.base import Spec, matching


class Taint(Spec):
    """Keeps pods off a node that do not tolerate it."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Autoscaling(Spec):
    """Limits of a pool that grows and shrinks with its pods, counted over all zones."""

    min: int = Field(default=0, ge=0)
    max: int = Field(ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}, so no size would do; swap them")
        return self


class Accelerators(Spec):
    """GPUs to attach to an n1 machine; other machines bring theirs."""

    type: str
    """As Google Cloud spells it: `nvidia-tesla-t4`."""
    count: int = Field(ge=1)


class MachineSize(Spec):
    """Sizes of a machine type that the catalogue does not hold."""

    vcpus: int = Field(ge=1)
    memory_gib: float = Field(gt=0)
    gpus: int = Field(default=0, ge=0)
    accelerator: str | None = None
    """The label `cloud.google.com/gke-accelerator` of its GPUs."""
    local_ssds: int = Field(default=0, ge=0)
    arch: Literal["amd64", "arm64"] = "amd64"

    @model_validator(mode="after")
    def _gpus_have_a_kind(self) -> Self:
        if bool(self.gpus) != bool(self.accelerator):
            raise ValueError("gpus and accelerator belong together: GKE needs to know which and how many; give both")
        return self

    def machine(self, name: str) -> Machine:
        """As if the catalogue had it."""
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
    """Several containers on one GPU; each asks for one `nvidia.com/gpu` of the many."""

    strategy: Literal["TIME_SHARING", "MPS"]
    clients: int = Field(ge=2, le=48)
    """Containers on each GPU, or on each partition of it."""


class LocalSsds(Spec):
    """Fast disks of 375 GiB that live and die with their node."""

    count: int = Field(ge=1, le=32)
    use: Literal["EPHEMERAL", "BLOCK"] = "EPHEMERAL"
    """For emptyDir volumes and images, or as raw devices."""


class Upgrades(Spec):
    """How nodes are replaced when GKE upgrades them."""

    strategy: Literal["SURGE", "BLUE_GREEN"] = "SURGE"
    max_surge: int | None = Field(default=None, ge=0)
    max_unavailable: int | None = Field(default=None, ge=0)
    batch_nodes: int | None = Field(default=None, ge=1)
    """Blue-green: nodes drained at a time."""
    soak_seconds: int | None = Field(default=None, ge=0, le=604800)
    """Blue-green: how long the old nodes stay once all are drained."""


class NodeNetwork(Spec):
    """Another network interface of each node, in a network that exists already."""

    network: str
    subnet: str


RunDuration = Annotated[str, matching(r"[1-9]\d*s", 'no number of seconds; write one such as "86400s"')]
