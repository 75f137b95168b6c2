"""Machine types: their sizes, and how much of them pods can use."""

import subprocess
import sys

import pytest

from persia_infra.gke.machines import Machine, UnknownMachine, WrongAccelerator, machine, machines, offered_gpus
from persia_infra.spec.quantity import parse_quantity

GIB = 2**30


@pytest.mark.parametrize(
    ("name", "millicores", "gib"),
    [
        ("a2-highgpu-1g", 11900, 76.61),
        ("a2-highgpu-8g", 95690, 648.60),
        ("a2-megagpu-16g", 95690, 1304.37),
        ("a2-ultragpu-8g", 95690, 1304.37),
        ("a3-highgpu-8g", 207410, 1798.13),
        ("a3-megagpu-8g", 207410, 1798.13),
        ("a3-ultragpu-8g", 223370, 2839.66),
        ("a4-highgpu-8g", 223370, 3819.46),
        ("g2-standard-48", 47810, 177.98),
        ("g2-standard-96", 95690, 363.14),
        ("n1-standard-16", 15890, 53.54),
        ("n1-highmem-96", 95690, 594.59),
        ("c2-standard-30", 29855, 108.90),
        ("c2-standard-60", 59780, 224.27),
        ("c2d-highmem-112", 111650, 856.90),
        ("c3-highmem-176", 175490, 1350.66),
        ("n2-highmem-128", 127610, 826.04),
        ("n2d-highmem-96", 95690, 733.46),
        ("m1-ultramem-40", 39830, 919.59),
        ("m1-ultramem-160", 159530, 3699.88),
        ("m1-megamem-96", 95690, 1375.35),
        ("m2-ultramem-208", 207410, 5671.06),
        ("m2-ultramem-416", 414890, 11349.30),
        ("m3-ultramem-128", 127610, 3757.74),
        ("m3-megamem-128", 127610, 1875.28),
        ("e2-standard-4", 3920, 12.95),
    ],
)
def test_allocatable_follows_gke(name: str, millicores: int, gib: float) -> None:
    allocatable = machine(name).allocatable()
    assert allocatable["cpu"] == f"{millicores}m"
    assert float(parse_quantity(allocatable["memory"]) / GIB) == pytest.approx(gib, abs=0.006)
    assert allocatable["pods"] == "110"


@pytest.mark.parametrize(
    ("name", "vcpus", "gib", "gpus", "accelerator"),
    [
        ("a2-highgpu-4g", 48, 340, 4, "nvidia-tesla-a100"),
        ("a2-ultragpu-2g", 24, 340, 2, "nvidia-a100-80gb"),
        ("a3-highgpu-1g", 26, 234, 1, "nvidia-h100-80gb"),
        ("a4x-highgpu-4g", 140, 884, 4, "nvidia-gb200"),
        ("g2-standard-12", 12, 48, 1, "nvidia-l4"),
        ("g2-standard-24", 24, 96, 2, "nvidia-l4"),
        ("g4-standard-384", 384, 1440, 8, "nvidia-rtx-pro-6000"),
        ("n1-standard-1", 1, 3.75, 0, None),
        ("n1-highmem-2", 2, 13, 0, None),
        ("n2-standard-128", 128, 512, 0, None),
        ("n2d-standard-224", 224, 896, 0, None),
        ("c2-standard-30", 30, 120, 0, None),
        ("c3-standard-22", 22, 88, 0, None),
        ("c3d-highmem-360", 360, 2880, 0, None),
        ("c4-highmem-2", 2, 15, 0, None),
        ("m1-ultramem-80", 80, 1922, 0, None),
        ("m2-hypermem-416", 416, 8832, 0, None),
        ("m3-megamem-64", 64, 976, 0, None),
        ("m4-megamem-28", 28, 372, 0, None),
        ("m4-ultramem-224", 224, 5952, 0, None),
        ("m4-hypermem-64", 64, 992, 0, None),
        ("e2-highmem-16", 16, 128, 0, None),
        ("e2-medium", 2, 4, 0, None),
    ],
)
def test_a_machine_type_has_the_size_that_google_publishes(
    name: str, vcpus: int, gib: float, gpus: int, accelerator: str | None
) -> None:
    known = machine(name)
    assert (known.vcpus, known.memory_gib, known.gpus, known.accelerator) == (vcpus, gib, gpus, accelerator)
    assert known.family == name.partition("-")[0]


def test_every_gpu_machine_has_the_gpus_that_google_publishes() -> None:
    a100, a100_80, h100 = "nvidia-tesla-a100", "nvidia-a100-80gb", "nvidia-h100-80gb"

    assert {name: (known.gpus, known.accelerator) for name, known in machines().items() if known.gpus} == {
        **{f"a2-highgpu-{gpus}g": (gpus, a100) for gpus in (1, 2, 4, 8)},
        "a2-megagpu-16g": (16, a100),
        **{f"a2-ultragpu-{gpus}g": (gpus, a100_80) for gpus in (1, 2, 4, 8)},
        **{f"a3-highgpu-{gpus}g": (gpus, h100) for gpus in (1, 2, 4, 8)},
        "a3-edgegpu-8g": (8, h100),
        "a3-megagpu-8g": (8, "nvidia-h100-mega-80gb"),
        "a3-ultragpu-8g": (8, "nvidia-h200-141gb"),
        "a4-highgpu-8g": (8, "nvidia-b200"),
        "a4x-highgpu-4g": (4, "nvidia-gb200"),
        **{f"g2-standard-{vcpus}": (1, "nvidia-l4") for vcpus in (4, 8, 12, 16, 32)},
        "g2-standard-24": (2, "nvidia-l4"),
        "g2-standard-48": (4, "nvidia-l4"),
        "g2-standard-96": (8, "nvidia-l4"),
        "g4-standard-48": (1, "nvidia-rtx-pro-6000"),
        "g4-standard-96": (2, "nvidia-rtx-pro-6000"),
        "g4-standard-192": (4, "nvidia-rtx-pro-6000"),
        "g4-standard-384": (8, "nvidia-rtx-pro-6000"),
    }


def test_every_machine_offers_pods_most_of_what_it_has_but_not_all() -> None:
    for name, known in machines().items():
        capacity, allocatable = known.capacity(), known.allocatable()
        for resource in ("cpu", "memory", "ephemeral-storage"):
            has, offers = parse_quantity(capacity[resource]), parse_quantity(allocatable[resource])
            assert has * 2 / 5 < offers < has, (name, resource)
        assert parse_quantity(capacity["memory"]) < known.memory_gib * GIB


def test_gpus_are_offered_as_devices_and_only_where_there_are_any() -> None:
    assert machine("a2-highgpu-8g").allocatable()["nvidia.com/gpu"] == "8"
    assert "nvidia.com/gpu" not in machine("e2-standard-4").allocatable()
    assert machine("a2-highgpu-8g").allocatable(gpus=56)["nvidia.com/gpu"] == "56"


# Memory in KiB, from the published formula. The kubelet sees the memory m less m/64 + 16 MiB + 0.00175 m (at most
# 248 MiB) + 64 MiB above 3 GiB + 8 MiB up to 8 GiB + 4 MiB on Ubuntu. GKE reserves 255 MiB below 1 GiB, otherwise 25 %
# of the first 4 GiB, 20 % up to 8, 10 % up to 16, 6 % up to 128 and 2 % above; 100 MiB are kept for eviction.
@pytest.mark.parametrize(
    ("gib", "capacity", "allocatable", "on_ubuntu"),
    [
        (0.5, 490602, 127082, 122986),
        (1, 1005780, 641236, 637140),
        (2, 2036137, 1409449, 1405353),
        (3, 3066494, 2177662, 2173566),
        (4, 4031315, 2880339, 2876243),
        (8, 8152743, 6162907, 6158811),
        (16, 16403791, 13575094, 13570998),
        (32, 32889503, 29054173, 29050077),
        (128, 131803774, 121928646, 121924550),
        (680, 701554688, 680103280, 680099184),
    ],
)
def test_memory_at_every_step_of_the_formula(gib: float, capacity: int, allocatable: int, on_ubuntu: int) -> None:
    sized = Machine("n2-other", vcpus=4, memory_gib=gib)

    assert sized.capacity()["memory"] == f"{capacity}Ki"
    assert sized.allocatable()["memory"] == f"{allocatable}Ki"
    assert sized.allocatable(image_type="UBUNTU_CONTAINERD")["memory"] == f"{on_ubuntu}Ki"


# GKE reserves 6 % of the first core, 1 % of the second, 0.5 % of the third and fourth, 0.25 % of all others, and 1060
# millicores on machines with shared cores.
@pytest.mark.parametrize(
    ("name", "cpu"),
    [
        ("n1-standard-1", "940m"),
        ("n2-standard-2", "1930m"),
        ("n2-standard-4", "3920m"),
        ("n2-custom-5-20480", "4917m"),
        ("n2-standard-8", "7910m"),
        ("e2-micro", "940m"),
        ("e2-small", "940m"),
        ("e2-medium", "940m"),
    ],
)
def test_cpu_at_every_step_of_the_formula(name: str, cpu: str) -> None:
    assert machine(name).allocatable()["cpu"] == cpu


# Storage in KiB. Container-Optimized OS takes 1.5635 % + 4.148 GiB of the disk, Ubuntu 3.083 % + 0.171 GiB and another
# 0.1 % (at most 100 MiB). GKE keeps 10 % for eviction and reserves the least of 50 %, 35 % + 6 GiB and 100 GiB.
@pytest.mark.parametrize(
    ("disk_gb", "capacity", "allocatable", "on_ubuntu"),
    [
        (20, 16294137, 3711225, 7541778),
        (50, 47259582, 17375166, 20696268),
        (100, 98868658, 45391282, 47865757),
        (500, 511741263, 354454863, 350556094),
        (1000, 1027832020, 818116820, 806251495),
    ],
)
def test_storage_follows_the_boot_disk(disk_gb: int, capacity: int, allocatable: int, on_ubuntu: int) -> None:
    node = machine("n2-standard-8")

    assert node.capacity(disk_gb=disk_gb)["ephemeral-storage"] == f"{capacity}Ki"
    assert node.allocatable(disk_gb=disk_gb)["ephemeral-storage"] == f"{allocatable}Ki"
    ubuntu = node.allocatable(disk_gb=disk_gb, image_type="UBUNTU_CONTAINERD")
    assert ubuntu["ephemeral-storage"] == f"{on_ubuntu}Ki"


# 375 GiB per SSD, less the file system's published overhead (in proportion where none is published), 10 % for eviction,
# and 50, 75 or 100 GiB for one, two, or more SSDs.
@pytest.mark.parametrize(
    ("ssds", "capacity", "allocatable"),
    [
        (1, 385926528, 294176128),
        (2, 772706776, 615420376),
        (3, 1159060164, 936237764),
        (4, 1546531076, 1284387076),
        (16, 6238618200, 5504615000),
        (24, 9358497380, 8309921380),
        (32, 12477996506, 11114847706),
    ],
)
def test_storage_follows_the_local_ssds_if_they_are_used_for_it(ssds: int, capacity: int, allocatable: int) -> None:
    node = machine("n2-standard-8")

    for disk_gb in (50, 500):
        assert (
            node.capacity(ephemeral_local_ssds=ssds, disk_gb=disk_gb)["ephemeral-storage"],
            node.allocatable(ephemeral_local_ssds=ssds, disk_gb=disk_gb)["ephemeral-storage"],
        ) == (f"{capacity}Ki", f"{allocatable}Ki")


def test_pods_are_as_many_as_the_pool_allows() -> None:
    assert machine("n2-standard-8").allocatable(max_pods=32)["pods"] == "32"
    assert machine("n2-standard-8").capacity(max_pods=32)["pods"] == "32"


@pytest.mark.parametrize(
    ("name", "ssds"),
    [
        ("a2-ultragpu-1g", 1),
        ("a2-ultragpu-2g", 2),
        ("a2-ultragpu-8g", 8),
        ("a3-highgpu-1g", 2),
        ("a3-highgpu-8g", 16),
        ("a3-megagpu-8g", 16),
        ("a3-edgegpu-8g", 16),
        ("a3-ultragpu-8g", 32),
        ("a4-highgpu-8g", 32),
        ("a4x-highgpu-4g", 0),
        ("a2-highgpu-8g", 0),
        ("g2-standard-8", 0),
        ("n2-standard-8", 0),
    ],
)
def test_local_ssds_that_a_machine_type_comes_with(name: str, ssds: int) -> None:
    assert machine(name).local_ssds == ssds


def test_only_gb200_machines_are_arm() -> None:
    assert {known.name for known in machines().values() if known.arch == "arm64"} == {"a4x-highgpu-4g"}


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("a2-highgpu-9g", "a2-highgpu-8g"), ("n2-standard-6", "n2-standard-64"), ("a2-higpu-1g", "a2-highgpu-1g")],
)
def test_an_unknown_machine_is_refused_with_similar_names(name: str, suggestion: str) -> None:
    with pytest.raises(UnknownMachine, match=rf"'{name}' not found; did you mean .*{suggestion}"):
        machine(name)


def test_a_name_unlike_any_other_is_refused_with_the_list_of_families() -> None:
    with pytest.raises(ValueError, match="known families are a2, a3"):
        machine("t3.large")


def test_a_custom_machine_follows_the_same_formula() -> None:
    custom = Machine("n2-custom-8-32768", vcpus=8, memory_gib=32)

    assert custom.family == "n2"
    assert custom.allocatable() == {
        "cpu": "7910m",
        "memory": "29054173Ki",
        "ephemeral-storage": "45391282Ki",
        "pods": "110",
    }


def test_a_custom_machine_type_is_known_by_its_name() -> None:
    custom = machine("n2-custom-8-32768")
    assert (custom.vcpus, custom.memory_gib, custom.family) == (8, 32, "n2")
    assert machine("e2-custom-2-4096").family == "e2"
    assert machine("custom-4-5120").with_accelerator("nvidia-tesla-t4", 1).memory_gib == 5
    with pytest.raises(UnknownMachine):
        machine("n2-custom-0-32768")


@pytest.mark.parametrize(("vcpus", "gib", "gpus"), [(0, 4, 0), (4, 0, 0), (4, 16, 1)])
def test_an_impossible_custom_machine_is_refused(vcpus: int, gib: float, gpus: int) -> None:
    with pytest.raises(ValueError, match="machine odd"):
        Machine("odd", vcpus=vcpus, memory_gib=gib, gpus=gpus)


def test_an_n1_takes_the_gpus_that_its_size_allows() -> None:
    assert machine("n1-standard-16").with_accelerator("nvidia-tesla-t4", 2).allocatable()["nvidia.com/gpu"] == "2"
    assert machine("n1-highmem-96").with_accelerator("nvidia-tesla-v100", 8).gpus == 8
    assert machine("custom-12-79872").with_accelerator("nvidia-tesla-v100", 1).vcpus == 12
    a2 = machine("a2-highgpu-8g")
    assert a2.with_accelerator("nvidia-tesla-a100", 8) == a2


@pytest.mark.parametrize(
    ("name", "accelerator", "count", "reason"),
    [
        ("n1-standard-16", "nvidia-tesla-v100", 1, "too large.*at most 12 vCPUs"),
        ("custom-12-80896", "nvidia-tesla-v100", 1, "too large.*78 GiB"),
        ("n1-standard-16", "nvidia-tesla-t4", 8, "use one of 1, 2, 4"),
        ("n1-standard-16", "nvidia-l4", 1, "n1 machines take nvidia-tesla-t4"),
        ("n2-standard-16", "nvidia-tesla-t4", 1, "n2-standard-16 takes no GPUs"),
        ("a2-highgpu-8g", "nvidia-l4", 8, "comes with 8 x nvidia-tesla-a100"),
        ("a2-highgpu-8g", "nvidia-tesla-a100", 4, "comes with 8 x nvidia-tesla-a100"),
    ],
)
def test_gpus_that_a_machine_cannot_have_are_refused(name: str, accelerator: str, count: int, reason: str) -> None:
    with pytest.raises(WrongAccelerator, match=reason):
        machine(name).with_accelerator(accelerator, count)


def test_shared_and_partitioned_gpus_are_more_devices() -> None:
    a2 = machine("a2-highgpu-2g")
    assert offered_gpus(a2) == 2
    assert offered_gpus(a2, clients_per_gpu=4) == 8
    assert offered_gpus(a2, partition="1g.5gb") == 14
    assert offered_gpus(a2, partition="3g.20gb", clients_per_gpu=2) == 8
    with pytest.raises(WrongAccelerator, match=r"no partition '1g.10gb'; use one of 1g.5gb"):
        offered_gpus(a2, partition="1g.10gb")
    with pytest.raises(WrongAccelerator, match="only A100 and newer"):
        offered_gpus(machine("g2-standard-4"), partition="1g.5gb")


def test_the_catalogue_needs_neither_pulumi_nor_the_kubernetes_client() -> None:
    heavy = "{'pulumi', 'kubernetes', 'grpc', 'yaml'}"
    program = f"import sys, persia_infra.gke.machines; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
