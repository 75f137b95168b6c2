"""Compute Engine machine types, and how much of each machine its pods can use.

Allocatable amounts follow GKE's published formula and also subtract what the kernel keeps, which the formula
leaves out: without that, a pod that fills a node on paper stays Pending. Out of scope: prices, quotas, which zone
offers what, TPUs, and the fractional-GPU sizes of g4. The requests of GKE's own DaemonSets are not subtracted
either, because those are pods.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from math import ceil, floor
from typing import Final

from persia_infra.gke.machine_families import Family, family_facts

_MIB: Final = 1024
"""In KiB, as all amounts of memory and storage below."""
_GIB: Final = 1024 * 1024
_LOCAL_SSD_GIB: Final = 375

Accelerator = str
"""A value of the label `cloud.google.com/gke-accelerator`: `nvidia-tesla-a100`."""

_ATTACHABLE: Final[dict[Accelerator, dict[int, tuple[int, float]]]] = {
    "nvidia-tesla-t4": {1: (48, 312), 2: (48, 312), 4: (96, 624)},
    "nvidia-tesla-v100": {1: (12, 78), 2: (24, 156), 4: (48, 312), 8: (96, 624)},
    "nvidia-tesla-p100": {1: (16, 104), 2: (32, 208), 4: (96, 624)},
    "nvidia-tesla-p4": {1: (24, 156), 2: (48, 312), 4: (96, 624)},
}
"""GPUs that can be attached to n1 machines: for each count, the most vCPUs and GiB of memory of the machine."""

_PARTITIONS: Final[dict[Accelerator, dict[str, int]]] = {
    "nvidia-tesla-a100": {"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "7g.40gb": 1},
    "nvidia-a100-80gb": {"1g.10gb": 7, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
    "nvidia-h100-80gb": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
    "nvidia-h100-mega-80gb": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1},
    "nvidia-h200-141gb": {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "7g.141gb": 1},
    "nvidia-b200": {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "7g.180gb": 1},
}
"""How many partitions (MIG) of each size one GPU is split into."""

_SSD_OVERHEAD_KIB: Final = {1: 7289472, 2: 13725224, 4: 26332924, 8: 51556096, 16: 52837800, 24: 78686620}
"""What the file system on N local SSDs uses itself, in KiB."""


class UnknownMachine(ValueError):
    """The machine type is not in the catalogue; the message names similar ones."""


class WrongAccelerator(ValueError):
    """The machine type cannot have this GPU, or not this many; the message names what it can have."""


@dataclass(frozen=True)
class Machine:
    """One machine type. Create one directly for a size that is not in the catalogue."""

    name: str
    """The name, as Google Cloud spells it: `n2-standard-8`."""
    vcpus: int
    """The number of virtual CPUs."""
    memory_gib: float
    """The memory in GiB."""
    gpus: int = 0
    """The number of GPUs."""
    accelerator: Accelerator | None = None
    """The kind of its GPUs; None for a machine without GPUs."""
    local_ssds: int = 0
    """The number of local SSDs that the machine type always has."""
    family: str = ""
    """The machine family; the part of the name before the first '-' by default."""
    arch: str = "amd64"
    """The CPU architecture, as Kubernetes spells it."""

    def __post_init__(self) -> None:
        if self.vcpus < 1 or self.memory_gib <= 0:
            raise ValueError(
                f"machine {self.name}: {self.vcpus} vCPUs and {self.memory_gib} GiB; both must be above zero"
            )
        if bool(self.gpus) != bool(self.accelerator):
            raise ValueError(f"machine {self.name}: gpus and accelerator belong together; set both or neither")
        if not self.family:
            object.__setattr__(self, "family", self.name.partition("-")[0])

    @property
    def facts(self) -> Family:
        """What Compute Engine allows on machines of this family."""
        return family_facts(self.name, self.family)

    def with_accelerator(self, accelerator: Accelerator, count: int) -> "Machine":
        """Returns the machine with these GPUs attached (n1), or unchanged if these are the GPUs that it comes with.

        Raises:
            WrongAccelerator: The machine cannot have these GPUs.
        """
        if self.gpus:
            if (accelerator, count) != (self.accelerator, self.gpus):
                raise WrongAccelerator(
                    f"{self.name} comes with {self.gpus} x {self.accelerator}, not {count} x {accelerator}; "
                    "remove the accelerator or name that one"
                )
            return self
        if self.family != "n1":
            raise WrongAccelerator(
                f"{self.name} takes no GPUs; use an n1 machine for {', '.join(_ATTACHABLE)}, "
                "or a machine type that comes with GPUs (a2, a3, a4, g2, g4)"
            )
        if accelerator not in _ATTACHABLE:
            raise WrongAccelerator(
                f"{accelerator} cannot be attached to {self.name}; n1 machines take {', '.join(_ATTACHABLE)}"
            )
        counts = _ATTACHABLE[accelerator]
        if count not in counts:
            raise WrongAccelerator(
                f"{count} x {accelerator} is not a number of GPUs that Google Cloud attaches; "
                f"use one of {', '.join(map(str, counts))}"
            )
        most_vcpus, most_memory = counts[count]
        if self.vcpus > most_vcpus or self.memory_gib > most_memory:
            raise WrongAccelerator(
                f"{self.name} is too large for {count} x {accelerator}, which allows at most {most_vcpus} vCPUs and "
                f"{most_memory} GiB; attach more GPUs or use a smaller machine"
            )
        return replace(self, accelerator=accelerator, gpus=count)

    def capacity(
        self,
        *,
        image_type: str = "COS_CONTAINERD",
        max_pods: int = 110,
        disk_gb: int = 100,
        ephemeral_local_ssds: int = 0,
        gpus: int | None = None,
    ) -> dict[str, str]:
        """Returns what the kubelet sees, as Kubernetes quantities: the machine without the kernel's share.

        Args:
            image_type: GKE's node image.
            max_pods: The most pods that may run on one node of the pool.
            disk_gb: The size of the boot disk.
            ephemeral_local_ssds: The number of local SSDs that hold the ephemeral storage instead of the boot disk.
            gpus: The number of GPU devices that the node offers when GPUs are shared or partitioned (see
                `offered_gpus`); the machine's own number by default.
        """
        storage = _storage_kib(disk_gb, ephemeral_local_ssds, image_type)
        return self._quantities(self.vcpus * 1000, self._seen_memory_kib(image_type), storage, max_pods, gpus)

    def allocatable(
        self,
        *,
        image_type: str = "COS_CONTAINERD",
        max_pods: int = 110,
        disk_gb: int = 100,
        ephemeral_local_ssds: int = 0,
        gpus: int | None = None,
    ) -> dict[str, str]:
        """Returns what pods can request on an empty node, as Kubernetes quantities; same arguments as `capacity`."""
        memory = self._seen_memory_kib(image_type) - _reserved_memory_kib(self.memory_gib * _GIB) - 100 * _MIB
        storage = _storage_kib(disk_gb, ephemeral_local_ssds, image_type) - _reserved_storage_kib(
            disk_gb, ephemeral_local_ssds
        )
        return self._quantities(self.vcpus * 1000 - self._reserved_millicores(), memory, storage, max_pods, gpus)

    def _quantities(self, cpu: int, memory: float, storage: float, pods: int, gpus: int | None) -> dict[str, str]:
        quantities = {
            "cpu": f"{cpu}m",
            "memory": f"{max(0, floor(memory))}Ki",
            "ephemeral-storage": f"{max(0, floor(storage))}Ki",
            "pods": str(pods),
        }
        if devices := self.gpus if gpus is None else gpus:
            quantities["nvidia.com/gpu"] = str(devices)
        return quantities

    def _reserved_millicores(self) -> int:
        if self.name in _SHARED_CORE:
            return 1060
        shares = [60, 10, 5, 5] + [2.5] * max(0, self.vcpus - 4)
        return ceil(sum(shares[: self.vcpus]))

    def _seen_memory_kib(self, image_type: str) -> float:
        memory = self.memory_gib * _GIB
        kernel = memory / 64 + 16 * _MIB + min(0.00175 * memory, 248 * _MIB)
        if self.memory_gib > 3:
            kernel += 64 * _MIB
        if self.memory_gib <= 8:
            kernel += 8 * _MIB
        if image_type.upper().startswith("UBUNTU"):
            kernel += 4 * _MIB
        return memory - kernel


def _reserved_memory_kib(memory: float) -> float:
    if memory < _GIB:
        return 255 * _MIB
    reserved, below = 0.0, 0.0
    for upto_gib, share in ((4, 0.25), (8, 0.2), (16, 0.1), (128, 0.06), (float("inf"), 0.02)):
        upto = min(memory, upto_gib * _GIB)
        reserved += (upto - below) * share
        below = upto
    return reserved


def _storage_kib(disk_gb: int, local_ssds: int, image_type: str) -> float:
    if local_ssds:
        published = max(count for count in _SSD_OVERHEAD_KIB if count <= local_ssds)
        return local_ssds * _LOCAL_SSD_GIB * _GIB - _SSD_OVERHEAD_KIB[published] * local_ssds / published
    if image_type.upper().startswith("UBUNTU"):
        return (disk_gb - 0.03083 * disk_gb - 0.171) * _GIB - min(100 * _MIB, 0.001 * disk_gb * _GIB)
    return (disk_gb - 0.015635 * disk_gb - 4.148) * _GIB


def _reserved_storage_kib(disk_gb: int, local_ssds: int) -> float:
    if local_ssds:
        return (0.1 * local_ssds * _LOCAL_SSD_GIB + {1: 50, 2: 75}.get(local_ssds, 100)) * _GIB
    return (0.1 * disk_gb + min(0.5 * disk_gb, 0.35 * disk_gb + 6, 100)) * _GIB


def offered_gpus(machine: Machine, *, partition: str | None = None, clients_per_gpu: int = 1) -> int:
    """Returns how many `nvidia.com/gpu` a node offers when its GPUs are partitioned (MIG), shared, or both.

    Raises:
        WrongAccelerator: The GPU cannot be partitioned that way.
    """
    partitions = 1
    if partition:
        sizes = _PARTITIONS.get(machine.accelerator or "", {})
        if partition not in sizes:
            raise WrongAccelerator(
                f"{machine.name}: {machine.accelerator or 'no GPU'} has no partition {partition!r}; "
                + (
                    f"use one of {', '.join(sizes)}"
                    if sizes
                    else "only A100 and newer data-centre GPUs have partitions"
                )
            )
        partitions = sizes[partition]
    return machine.gpus * partitions * clients_per_gpu


_CUSTOM: Final = re.compile(r"(?:(?P<family>n1|n2|n2d|e2)-)?custom-(?P<vcpus>[1-9]\d*)-(?P<mib>[1-9]\d*)(?:-ext)?")


def machine(name: str) -> Machine:
    """Returns the machine type of that name, including custom ones such as `n2-custom-8-32768`.

    Raises:
        UnknownMachine: There is no such machine type; the message suggests similar names, or lists the families.
    """
    catalogue = machines()
    if known := catalogue.get(name):
        return known
    if custom := _CUSTOM.fullmatch(name):
        return Machine(name, int(custom["vcpus"]), int(custom["mib"]) / 1024, family=custom["family"] or "n1")
    similar = get_close_matches(name, catalogue, n=3, cutoff=0.7) or [
        candidate for candidate in catalogue if candidate.rpartition("-")[0] == name.rpartition("-")[0]
    ]
    if similar:
        raise UnknownMachine(f"machine type {name!r} not found; did you mean {', '.join(similar)}?")
    families = ", ".join(sorted({entry.family for entry in catalogue.values()}))
    raise UnknownMachine(f"machine type {name!r} not found; the known families are {families}")


@cache
def machines() -> dict[str, Machine]:
    """Returns the whole catalogue, by name."""
    return {entry.name: entry for entry in (*_general_machines(), *_gpu_machines())}


_SHARED_CORE: Final = {"e2-micro": 1, "e2-small": 2, "e2-medium": 4}
"""Machines with a share of two vCPUs, and their memory in GiB."""
_UPTO_96: Final = (2, 4, 8, 16, 32, 48, 64, 80, 96)

_REGULAR: Final[tuple[tuple[str, tuple[int, ...], float], ...]] = (
    ("n1-standard", (1, 2, 4, 8, 16, 32, 64, 96), 3.75),
    ("n1-highmem", (2, 4, 8, 16, 32, 64, 96), 6.5),
    ("n1-highcpu", (2, 4, 8, 16, 32, 64, 96), 0.9),
    ("n2-standard", (*_UPTO_96, 128), 4),
    ("n2-highmem", (*_UPTO_96, 128), 8),
    ("n2-highcpu", _UPTO_96, 1),
    ("n2d-standard", (*_UPTO_96, 128, 224), 4),
    ("n2d-highmem", _UPTO_96, 8),
    ("n2d-highcpu", (*_UPTO_96, 128, 224), 1),
    ("e2-standard", (2, 4, 8, 16, 32), 4),
    ("e2-highmem", (2, 4, 8, 16), 8),
    ("e2-highcpu", (2, 4, 8, 16, 32), 1),
    ("c2-standard", (4, 8, 16, 30, 60), 4),
    ("c2d-standard", (2, 4, 8, 16, 32, 56, 112), 4),
    ("c2d-highmem", (2, 4, 8, 16, 32, 56, 112), 8),
    ("c2d-highcpu", (2, 4, 8, 16, 32, 56, 112), 2),
    ("c3-standard", (4, 8, 22, 44, 88, 176), 4),
    ("c3-highmem", (4, 8, 22, 44, 88, 176), 8),
    ("c3-highcpu", (4, 8, 22, 44, 88, 176), 2),
    ("c3d-standard", (4, 8, 16, 30, 60, 90, 180, 360), 4),
    ("c3d-highmem", (4, 8, 16, 30, 60, 90, 180, 360), 8),
    ("c3d-highcpu", (4, 8, 16, 30, 60, 90, 180, 360), 2),
    ("c4-standard", (2, 4, 8, 16, 32, 48, 96, 192), 3.75),
    ("c4-highmem", (2, 4, 8, 16, 32, 48, 96, 192), 7.75),
    ("m3-ultramem", (32, 64, 128), 30.5),
    ("m3-megamem", (64, 128), 15.25),
    ("m1-ultramem", (40, 80, 160), 24.025),
    ("m4-megamem", (28, 56, 112, 224), 93 / 7),
    ("m4-ultramem", (56, 112, 224), 186 / 7),
    ("m4-hypermem", (16, 32, 64), 15.5),
)
"""Machine types with a fixed number of GiB per vCPU: the name without the size, the vCPUs, GiB per vCPU."""

_IRREGULAR: Final = {
    "n2-highmem-128": 864,
    "c4-standard-2": 7,
    "c4-highmem-2": 15,
    "m1-megamem-96": 1433.599609375,
    "m2-ultramem-208": 5888,
    "m2-ultramem-416": 11776,
    "m2-megamem-416": 5888,
    "m2-hypermem-416": 8832,
}
"""Memory in GiB of machine types that do not follow the ratio of their family."""


def _general_machines() -> Iterator[Machine]:
    for kind, sizes, gib_per_vcpu in _REGULAR:
        for vcpus in sizes:
            yield Machine(f"{kind}-{vcpus}", vcpus, round(vcpus * gib_per_vcpu, 3))
    for name, memory in _IRREGULAR.items():
        yield Machine(name, int(re.findall(r"\d+$", name)[0]), memory)
    for name, memory in _SHARED_CORE.items():
        yield Machine(name, 2, memory)


def _gpu_machines() -> Iterator[Machine]:
    for gpus in (1, 2, 4, 8):
        yield Machine(f"a2-highgpu-{gpus}g", 12 * gpus, 85 * gpus, gpus, "nvidia-tesla-a100")
        yield Machine(f"a2-ultragpu-{gpus}g", 12 * gpus, 170 * gpus, gpus, "nvidia-a100-80gb", local_ssds=gpus)
        yield Machine(f"a3-highgpu-{gpus}g", 26 * gpus, 234 * gpus, gpus, "nvidia-h100-80gb", local_ssds=2 * gpus)
        yield Machine(f"g4-standard-{48 * gpus}", 48 * gpus, 180 * gpus, gpus, "nvidia-rtx-pro-6000")
    yield Machine("a2-megagpu-16g", 96, 1360, 16, "nvidia-tesla-a100")
    yield Machine("a3-megagpu-8g", 208, 1872, 8, "nvidia-h100-mega-80gb", local_ssds=16)
    yield Machine("a3-edgegpu-8g", 208, 1872, 8, "nvidia-h100-80gb", local_ssds=16)
    yield Machine("a3-ultragpu-8g", 224, 2952, 8, "nvidia-h200-141gb", local_ssds=32)
    yield Machine("a4-highgpu-8g", 224, 3968, 8, "nvidia-b200", local_ssds=32)
    yield Machine("a4x-highgpu-4g", 140, 884, 4, "nvidia-gb200", arch="arm64")
    for vcpus in (4, 8, 12, 16, 24, 32, 48, 96):
        gpus = {24: 2, 48: 4, 96: 8}.get(vcpus, 1)
        yield Machine(f"g2-standard-{vcpus}", vcpus, 4 * vcpus, gpus, "nvidia-l4")
