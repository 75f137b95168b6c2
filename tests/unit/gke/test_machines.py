"""Machine types: their sizes, and what pods get of them."""

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
def test_sizes(name: str, vcpus: int, gib: float, gpus: int, accelerator: str | None) -> None:
    found = machine(name)
    assert (found.vcpus, found.memory_gib, found.gpus, found.accelerator) == (vcpus, gib, gpus, accelerator)
    assert found.family == name.partition("-")[0]


def test_every_machine_gives_pods_less_than_it_has_but_most_of_it() -> None:
    for name, known in machines().items():
        capacity, allocatable = known.capacity(), known.allocatable()
        for resource in ("cpu", "memory", "ephemeral-storage"):
            has, gives = parse_quantity(capacity[resource]), parse_quantity(allocatable[resource])
            assert has * 2 / 5 < gives < has, (name, resource)
        assert parse_quantity(capacity["memory"]) < known.memory_gib * GIB


def test_gpus_are_offered_as_devices_and_only_where_there_are_any() -> None:
    assert machine("a2-highgpu-8g").allocatable()["nvidia.com/gpu"] == "8"
    assert "nvidia.com/gpu" not in machine("e2-standard-4").allocatable()
    assert machine("a2-highgpu-8g").allocatable(gpus=56)["nvidia.com/gpu"] == "56"


def test_ubuntu_and_a_larger_disk_change_what_is_left() -> None:
    cos, ubuntu = (
        machine("n2-standard-8").allocatable(),
        machine("n2-standard-8").allocatable(image_type="UBUNTU_CONTAINERD"),
    )
    assert parse_quantity(ubuntu["memory"]) == parse_quantity(cos["memory"]) - 4 * 2**20
    larger = machine("n2-standard-8").allocatable(disk_gb=1000)
    assert parse_quantity(larger["ephemeral-storage"]) > 10 * parse_quantity(cos["ephemeral-storage"])


def test_local_ssds_take_the_place_of_the_boot_disk() -> None:
    on_ssds = machine("a3-highgpu-8g").allocatable(ephemeral_local_ssds=16, max_pods=32)
    assert 5000 < float(parse_quantity(on_ssds["ephemeral-storage"]) / GIB) < 16 * 375 * 0.9
    assert on_ssds["pods"] == "32"


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("a2-highgpu-9g", "a2-highgpu-8g"), ("n2-standard-6", "n2-standard-64"), ("a2-higpu-1g", "a2-highgpu-1g")],
)
def test_an_unknown_machine_is_refused_with_near_names(name: str, suggestion: str) -> None:
    with pytest.raises(UnknownMachine, match=rf"'{name}' not found: did you mean .*{suggestion}"):
        machine(name)


def test_a_name_like_no_other_is_refused_with_the_families() -> None:
    with pytest.raises(ValueError, match="known families are a2, a3"):
        machine("t3.large")


def test_a_custom_machine_follows_the_same_formula() -> None:
    custom = Machine("n2-custom-8-32768", vcpus=8, memory_gib=32)
    assert custom.family == "n2"
    assert custom.allocatable() == machine("n2-standard-8").allocatable()


def test_a_custom_machine_type_is_known_by_its_name() -> None:
    custom = machine("n2-custom-8-32768")
    assert (custom.vcpus, custom.memory_gib, custom.family) == (8, 32, "n2")
    assert machine("custom-4-5120").with_accelerator("nvidia-tesla-t4", 1).memory_gib == 5
    with pytest.raises(UnknownMachine):
        machine("n2-custom-0-32768")


@pytest.mark.parametrize(("vcpus", "gib", "gpus"), [(0, 4, 0), (4, 0, 0), (4, 16, 1)])
def test_an_impossible_custom_machine_is_refused(vcpus: int, gib: float, gpus: int) -> None:
    with pytest.raises(ValueError, match="machine odd"):
        Machine("odd", vcpus=vcpus, memory_gib=gib, gpus=gpus)


def test_an_n1_takes_the_gpus_that_it_can_carry() -> None:
    assert machine("n1-standard-16").with_accelerator("nvidia-tesla-t4", 2).allocatable()["nvidia.com/gpu"] == "2"
    assert machine("n1-highmem-96").with_accelerator("nvidia-tesla-v100", 8).gpus == 8


@pytest.mark.parametrize(
    ("name", "accelerator", "count", "reason"),
    [
        ("n1-standard-16", "nvidia-tesla-v100", 1, "too large.*at most 12 vCPUs"),
        ("n1-standard-16", "nvidia-tesla-t4", 8, "comes in 1, 2, 4"),
        ("n1-standard-16", "nvidia-l4", 1, "n1 takes nvidia-tesla-t4"),
        ("n2-standard-16", "nvidia-tesla-t4", 1, "n2-standard-16 takes no GPUs"),
        ("a2-highgpu-8g", "nvidia-l4", 8, "comes with 8 x nvidia-tesla-a100"),
        ("a2-highgpu-8g", "nvidia-tesla-a100", 4, "comes with 8 x nvidia-tesla-a100"),
    ],
)
def test_gpus_that_a_machine_can_not_have_are_refused(name: str, accelerator: str, count: int, reason: str) -> None:
    with pytest.raises(WrongAccelerator, match=reason):
        machine(name).with_accelerator(accelerator, count)


def test_shared_and_partitioned_gpus_are_more_devices() -> None:
    a2 = machine("a2-highgpu-2g")
    assert offered_gpus(a2) == 2
    assert offered_gpus(a2, clients_per_gpu=4) == 8
    assert offered_gpus(a2, partition="1g.5gb") == 14
    assert offered_gpus(a2, partition="3g.20gb", clients_per_gpu=2) == 8
    with pytest.raises(WrongAccelerator, match=r"no partition '1g.10gb': use one of 1g.5gb"):
        offered_gpus(a2, partition="1g.10gb")
    with pytest.raises(WrongAccelerator, match="only A100 and newer"):
        offered_gpus(machine("g2-standard-4"), partition="1g.5gb")


def test_the_catalogue_needs_neither_pulumi_nor_the_kubernetes_client() -> None:
    heavy = "{'pulumi', 'kubernetes', 'grpc', 'yaml'}"
    program = f"import sys, persia_infra.gke.machines; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
