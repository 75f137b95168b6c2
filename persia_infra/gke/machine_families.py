"""What Compute Engine allows on each machine family: boot disks, local SSDs, placement and GPUDirect.

The rules for node pools ask here and hold no family names themselves. A family that is not listed has no known
restrictions. Which zone offers which family is out of scope.
"""

from dataclasses import dataclass
from typing import Final, Literal

GpuDirectKind = Literal["TCPX", "TCPXO", "RDMA"]


@dataclass(frozen=True)
class Family:
    """What the machines of one family, or of one series of it, can do."""

    boots_from_persistent_disk: bool = True
    """Whether the machines start from a persistent disk (`pd-balanced`, `pd-ssd`, ...)."""
    boots_from_hyperdisk: bool = True
    """Whether the machines start from Hyperdisk."""
    takes_local_ssds: bool = True
    """Whether local SSDs can be attached to machines that do not come with any."""
    compact_placement: bool = True
    """Whether machines can be placed close together."""
    flex_start_compact_placement: bool = False
    """Whether flex-start machines can be placed close together."""


_UNRESTRICTED: Final = Family()
_FAMILIES: Final[dict[str, Family]] = {
    "a2": Family(boots_from_hyperdisk=False),
    "a3-ultragpu": Family(boots_from_persistent_disk=False, flex_start_compact_placement=True),
    "a4": Family(boots_from_persistent_disk=False, flex_start_compact_placement=True),
    "a4x": Family(boots_from_persistent_disk=False),
    "c2": Family(boots_from_hyperdisk=False),
    "c2d": Family(boots_from_hyperdisk=False),
    "c4": Family(boots_from_persistent_disk=False, takes_local_ssds=False),
    "e2": Family(boots_from_hyperdisk=False, takes_local_ssds=False, compact_placement=False),
    "g2": Family(boots_from_hyperdisk=False),
    "g4": Family(boots_from_persistent_disk=False),
    "h4d": Family(flex_start_compact_placement=True),
    "m2": Family(takes_local_ssds=False),
    "m4": Family(boots_from_persistent_disk=False, takes_local_ssds=False),
    "n1": Family(boots_from_hyperdisk=False, compact_placement=False),
    "n2": Family(boots_from_hyperdisk=False),
    "n2d": Family(boots_from_hyperdisk=False),
    "n4": Family(boots_from_persistent_disk=False, takes_local_ssds=False),
}
"""By family (`a4`), or by series (`a3-ultragpu`) where a series differs from the rest of its family."""

FLEX_START_COMPACT_FAMILIES: Final = tuple(
    name for name, family in _FAMILIES.items() if family.flex_start_compact_placement
)
"""Families whose flex-start machines can be placed close together."""


def family_facts(machine_type: str, family: str) -> Family:
    """Returns the facts about a machine type: those of its series if listed, otherwise those of its family."""
    series = "-".join(machine_type.split("-")[:2])
    return _FAMILIES.get(series) or _FAMILIES.get(family, _UNRESTRICTED)


@dataclass(frozen=True)
class GpuDirect:
    """One way for GPUs of different nodes to exchange data without copying it through the host's memory."""

    machine_types: tuple[str, ...]
    """The machine types that support it."""
    interfaces: int | None
    """How many additional network interfaces it uses; None where GKE does not fix the number."""

    def supports(self, machine_type: str) -> bool:
        """Whether a machine type, or the type that it is a variant of (`a4-highgpu-8g-nolssd`), supports it."""
        return machine_type.startswith(self.machine_types)


GPU_DIRECT: Final[dict[GpuDirectKind, GpuDirect]] = {
    "TCPX": GpuDirect(("a3-highgpu-8g",), 4),
    "TCPXO": GpuDirect(("a3-megagpu-8g",), 8),
    "RDMA": GpuDirect(("a3-ultragpu-8g", "a4-highgpu-8g", "a4x-highgpu-4g"), None),
}
