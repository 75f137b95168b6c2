"""Options of node pools that depend on the machine family."""

from typing import Any

import pytest
from pydantic import ValidationError

from persia_infra.gke.machines import machines
from persia_infra.gke.pools import NodePoolSpec

SIZE = {"vcpus": 8, "memoryGib": 32}


def accepts(**fields: Any) -> bool:
    try:
        NodePoolSpec.model_validate(fields)
    except ValidationError:
        return False
    return True


RDMA_MACHINES = {"a3-ultragpu-8g", "a4-highgpu-8g", "a4x-highgpu-4g"}
GPU_DIRECT_MACHINES = {"TCPX": {"a3-highgpu-8g"}, "TCPXO": {"a3-megagpu-8g"}, "RDMA": RDMA_MACHINES}


@pytest.mark.parametrize("kind", GPU_DIRECT_MACHINES)
def test_gpu_direct_is_accepted_on_the_machines_that_support_it_only(kind: str) -> None:
    candidates = [name for name, known in machines().items() if known.gpus]

    accepted = {
        name for name in candidates if accepts(machineType=name, count=1, gpuDirect=kind, networkProfile="auto")
    }

    assert accepted == GPU_DIRECT_MACHINES[kind]


@pytest.mark.parametrize(
    ("machine_type", "persistent_disk", "hyperdisk", "local_ssds", "compact", "compact_flex_start"),
    [
        ("a2-highgpu-1g", True, False, True, True, False),
        ("a3-highgpu-8g", True, True, None, True, False),
        ("a3-megagpu-8g", True, True, None, True, False),
        ("a3-ultragpu-8g", False, True, None, True, True),
        ("a4-highgpu-8g", False, True, None, True, True),
        ("a4x-highgpu-4g", False, True, True, True, False),
        ("c2-standard-8", True, False, True, True, False),
        ("c2d-standard-8", True, False, True, True, False),
        ("c3-standard-8", True, True, True, True, False),
        ("c3d-standard-8", True, True, True, True, False),
        ("c4-standard-8", False, True, False, True, False),
        ("e2-standard-8", True, False, False, False, False),
        ("g2-standard-8", True, False, True, True, False),
        ("g4-standard-48", False, True, True, True, False),
        ("m1-ultramem-40", True, True, True, True, False),
        ("m2-ultramem-208", True, True, False, True, False),
        ("m3-ultramem-32", True, True, True, True, False),
        ("m4-megamem-28", False, True, False, True, False),
        ("n1-standard-8", True, False, True, False, False),
        ("n2-standard-8", True, False, True, True, False),
        ("n2d-standard-8", True, False, True, True, False),
        ("custom-8-30720", True, False, True, False, False),
        ("n2-custom-8-32768", True, False, True, True, False),
        ("n4-standard-8", False, True, False, True, False),
        ("h4d-standard-192", True, True, True, True, True),
        ("a3-ultragpu-8g-nolssd", False, True, True, True, True),
        ("x9-huge-8", True, True, True, True, False),
    ],
)
def test_options_that_depend_on_the_machine_family(
    machine_type: str,
    persistent_disk: bool,
    hyperdisk: bool,
    local_ssds: bool | None,
    compact: bool,
    compact_flex_start: bool,
) -> None:
    in_catalogue = machine_type in machines() or "custom" in machine_type
    pool: dict[str, Any] = {"machineType": machine_type, **({} if in_catalogue else {"size": SIZE})}

    assert accepts(**pool, count=1)
    assert accepts(**pool, count=1, diskType="pd-balanced") is persistent_disk
    assert accepts(**pool, count=1, diskType="hyperdisk-balanced") is hyperdisk
    if local_ssds is not None:
        assert accepts(**pool, count=1, localSsds={"count": 1}) is local_ssds
    assert accepts(**pool, count=1, compactPlacement=True) is compact
    flex_start = {"flexStart": True, "autoscaling": {"max": 2}}
    assert accepts(**pool, **flex_start)
    assert accepts(**pool, **flex_start, compactPlacement=True) is compact_flex_start


def test_the_family_table_covers_every_family_of_the_catalogue() -> None:
    tested = {"a2", "a3", "a4", "a4x", "c2", "c2d", "c3", "c3d", "c4", "e2", "g2", "g4"}
    tested |= {"m1", "m2", "m3", "m4", "n1", "n2", "n2d"}

    assert {known.family for known in machines().values()} == tested
