"""Node pools: every rule of the platform has its own line, and what pods get follows from the options."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from persia_infra.gke.machines import machine
from persia_infra.gke.pools import NodePoolSpec
from persia_infra.spec.errors import problems_from
from persia_infra.spec.quantity import parse_quantity

A2 = {"machineType": "a2-highgpu-8g", "count": 1}
CPU = {"machineType": "n2-standard-8", "count": 1}
T4 = {"machineType": "n1-standard-8", "count": 1, "accelerators": {"type": "nvidia-tesla-t4", "count": 1}}
GROWING = {"count": None, "autoscaling": {"min": 0, "max": 2}}
SIZE = {"vcpus": 8, "memoryGib": 32}


def said_about(**fields: Any) -> list[str]:
    data = {key: value for key, value in fields.items() if value is not None}
    try:
        NodePoolSpec.model_validate(data)
    except ValidationError as error:
        return [str(problem) for problem in problems_from(error, NodePoolSpec, data)]
    return []


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        # machine and GPUs
        ({**CPU, "machineType": "x9-huge-8"}, "machineType: machine type 'x9-huge-8' not found"),
        ({**CPU, "size": SIZE}, "size: n2-standard-8 is in the catalogue"),
        (
            {**CPU, "machineType": "x9-huge-8", "size": {**SIZE, "gpus": 2}},
            "size: gpus and accelerator belong together",
        ),
        ({**CPU, "accelerators": T4["accelerators"]}, "accelerators: n2-standard-8 takes no GPUs"),
        (
            {**A2, "accelerators": {"type": "nvidia-l4", "count": 1}},
            "accelerators: a2-highgpu-8g comes with 8 x nvidia-tesla-a100",
        ),
        ({**T4, "accelerators": {"type": "nvidia-tesla-t4", "count": 3}}, "accelerators: 3 x nvidia-tesla-t4"),
        (
            {**T4, "machineType": "n1-standard-96"},
            "accelerators: n1-standard-96 is too large for 1 x nvidia-tesla-t4",
        ),
        # how many
        ({"machineType": "n2-standard-8"}, "count: is missing and so is autoscaling"),
        ({**CPU, "autoscaling": {"max": 3}}, "count: is given besides autoscaling"),
        ({**CPU, **GROWING, "autoscaling": {"min": 3, "max": 2}}, "autoscaling: min 3 is above max 2"),
        # compact placement
        (
            {**A2, "compactPlacement": True, "upgrades": {"strategy": "BLUE_GREEN"}},
            "upgrades.strategy: BLUE_GREEN is not available with compactPlacement",
        ),
        (
            {**A2, **GROWING, "compactPlacement": True, "queuedProvisioning": True},
            "compactPlacement: is not available with queuedProvisioning",
        ),
        ({**T4, "compactPlacement": True}, "compactPlacement: n1 machines cannot be placed close together"),
        (
            {**A2, **GROWING, "compactPlacement": True, "flexStart": True},
            "compactPlacement: is not available with flexStart on a2-highgpu-8g",
        ),
        # Spot, reservations, flex-start, queued provisioning
        ({**A2, "spot": True, "reservation": "mine"}, "reservation: Spot machines never come from a reservation"),
        ({**A2, "reservation": "My Reservation"}, "reservation: is no name of a reservation"),
        ({**A2, **GROWING, "queuedProvisioning": True, "spot": True}, "queuedProvisioning: is not available for Spot"),
        (
            {**A2, **GROWING, "queuedProvisioning": True, "reservation": "mine"},
            "reservation: cannot be used with queuedProvisioning",
        ),
        ({**A2, "queuedProvisioning": True}, "queuedProvisioning: needs autoscaling instead of count"),
        (
            {**A2, **GROWING, "queuedProvisioning": True, "autoscaling": {"min": 1, "max": 2}},
            "autoscaling.min: 1 nodes could never be there",
        ),
        ({**A2, **GROWING, "flexStart": True, "spot": True}, "flexStart: is not available for Spot"),
        ({**A2, **GROWING, "flexStart": True, "reservation": "mine"}, "reservation: cannot be used with flexStart"),
        ({**A2, "flexStart": True}, "flexStart: needs autoscaling instead of count"),
        ({**A2, "maxRunDuration": "604801s"}, "maxRunDuration: is above seven days"),
        ({**A2, "maxRunDuration": "1d"}, "maxRunDuration: is no number of seconds"),
        # GPU sharing, partitions, drivers
        ({**CPU, "gpuSharing": {"strategy": "MPS", "clients": 4}}, "gpuSharing: has no effect on n2-standard-8"),
        ({**CPU, "gpuPartition": "1g.5gb"}, "gpuPartition: has no effect on n2-standard-8"),
        ({**CPU, "driver": {"install": "LATEST"}}, "driver: has no effect on n2-standard-8"),
        ({**CPU, "gpuDirect": "TCPX"}, "gpuDirect: has no effect on n2-standard-8"),
        ({**A2, "gpuPartition": "1g.99gb"}, "gpuPartition: a2-highgpu-8g: nvidia-tesla-a100 has no partition"),
        ({**T4, "gpuPartition": "1g.5gb"}, "gpuPartition: n1-standard-8: nvidia-tesla-t4 has no partition"),
        (
            {**A2, "gpuPartition": "1g.5gb", "gpuSharing": {"strategy": "MPS", "clients": 4}},
            "gpuSharing.strategy: MPS does not work on partitioned GPUs",
        ),
        ({**A2, "gpuSharing": {"strategy": "MPS", "clients": 1}}, "gpuSharing.clients: must be greater than or equal"),
        ({**A2, "gpuSharing": {"strategy": "MPS", "clients": 49}}, "gpuSharing.clients: must be less than or equal"),
        (
            {**A2, "image": "UBUNTU_CONTAINERD", "driver": {"install": "LATEST"}},
            "driver.install: LATEST exists for Container-Optimized OS only",
        ),
        (
            {**A2, "image": "UBUNTU_CONTAINERD", "driver": {"install": "INSTALLER", "version": "latest"}},
            "driver.version: the installer for Ubuntu knows no latest",
        ),
        (
            {**A2, "image": "UBUNTU_CONTAINERD", "gpuPartition": "1g.5gb", "driver": {"install": "INSTALLER"}},
            "driver.install: the installer for Ubuntu does not partition GPUs",
        ),
        ({**A2, "driver": {"version": "570.124.06"}}, "driver.version: has no effect with install: DEFAULT"),
        ({**A2, "driver": {"install": "INSTALLER", "version": "new"}}, "driver.version: is no driver version"),
        ({**A2, "image": "WINDOWS_LTSC_CONTAINERD"}, "image: not one of the values it can have"),
        # disks
        ({**CPU, "machineType": "c4-standard-8", "diskType": "pd-ssd"}, "diskType: c4-standard-8 boots from Hyperdisk"),
        ({**CPU, "diskType": "hyperdisk-balanced"}, "diskType: n2 machines do not boot from Hyperdisk"),
        ({**CPU, "diskSizeGb": 5}, "diskSizeGb: must be greater than or equal to 20"),
        (
            {"machineType": "a3-highgpu-8g", "count": 1, "localSsds": {"count": 4}},
            "localSsds.count: a3-highgpu-8g comes with 16",
        ),
        ({**CPU, "machineType": "e2-standard-8", "localSsds": {"count": 1}}, "localSsds: e2 machines take none"),
        # upgrades
        ({**CPU, "upgrades": {"maxSurge": 0, "maxUnavailable": 0}}, "upgrades: maxSurge and maxUnavailable are both 0"),
        ({**CPU, "upgrades": {"maxSurge": 15, "maxUnavailable": 6}}, "upgrades: maxSurge and maxUnavailable are 21"),
        ({**CPU, "upgrades": {"batchNodes": 2}}, "upgrades.batchNodes: has no effect with strategy: SURGE"),
        (
            {**CPU, "upgrades": {"strategy": "BLUE_GREEN", "maxSurge": 2}},
            "upgrades.maxSurge: has no effect with strategy: BLUE_GREEN",
        ),
        (
            {**A2, **GROWING, "flexStart": True, "upgrades": {"strategy": "BLUE_GREEN"}},
            "upgrades.strategy: BLUE_GREEN needs a second set of machines",
        ),
        # networks
        ({**A2, "gpuDirect": "TCPX"}, "gpuDirect: TCPX does not exist on a2-highgpu-8g; it is for a3-highgpu-8g"),
        (
            {"machineType": "a3-megagpu-8g", "count": 1, "gpuDirect": "TCPXO"},
            "gpuDirect: needs further network interfaces",
        ),
        (
            {
                "machineType": "a3-megagpu-8g",
                "count": 1,
                "gpuDirect": "TCPXO",
                "networks": [{"network": "a", "subnet": "b"}],
            },
            "networks: TCPXO uses 8 further interfaces, and 1 are given",
        ),
        (
            {**CPU, "networks": [{"network": "a", "subnet": "b"}], "networkProfile": "auto"},
            "networks: is given besides networkProfile",
        ),
        ({**CPU, "networks": [{"network": "a", "subnet": "b"}] * 10}, "networks: a machine has ten interfaces at most"),
        ({**CPU, "maxPods": 300}, "maxPods: must be less than or equal to 256"),
        ({**CPU, "maxPods": 4}, "maxPods: must be greater than or equal to 8"),
        # labels and taints
        ({**CPU, "labels": {"persia-infra/pool": "x"}}, "labels.persia-infra/pool: is set by others"),
        ({**CPU, "labels": {"node.kubernetes.io/x": "y"}}, "labels.node.kubernetes.io/x: is set by others"),
        ({**CPU, "labels": {"team": "not a label"}}, "labels.team: has a value that Kubernetes does not take"),
        (
            {**A2, "taints": [{"key": "nvidia.com/gpu", "effect": "NoExecute"}]},
            "taints[0]: pools with GPUs have the taint nvidia.com/gpu already",
        ),
        (
            {**CPU, "taints": [{"key": "a", "effect": "NoExecute"}, {"key": "a", "value": "b", "effect": "NoExecute"}]},
            "taints[1]: a taint a with the effect NoExecute is there already",
        ),
    ],
)
def test_refused(fields: dict[str, Any], line: str) -> None:
    said = said_about(**fields)

    assert len(said) == 1, said
    assert said[0].startswith(line)


@pytest.mark.parametrize(
    "fields",
    [
        T4,
        {**T4, "accelerators": {"type": "nvidia-tesla-v100", "count": 1}},
        {**A2, **GROWING, "flexStart": True, "maxRunDuration": "86400s"},
        {**A2, **GROWING, "queuedProvisioning": True},
        {"machineType": "a4-highgpu-8g", "compactPlacement": True, "flexStart": True, "autoscaling": {"max": 2}},
        {**A2, "reservation": "projects/other/reservations/a100", "compactPlacement": True},
        {**A2, "gpuPartition": "3g.20gb", "gpuSharing": {"strategy": "TIME_SHARING", "clients": 2}},
        {**A2, "image": "UBUNTU_CONTAINERD", "driver": {"install": "INSTALLER", "version": "570.124.06"}},
        {"machineType": "a3-megagpu-8g", "count": 1, "gpuDirect": "TCPXO", "networkProfile": "auto"},
        {**CPU, "machineType": "x9-huge-8", "size": SIZE},
        {**CPU, "taints": [{"key": "a", "effect": "NoExecute"}, {"key": "a", "effect": "NoSchedule"}]},
        {**CPU, "localSsds": {"count": 2, "use": "BLOCK"}},
    ],
)
def test_allowed(fields: dict[str, Any]) -> None:
    assert said_about(**fields) == []


def pool(**fields: Any) -> NodePoolSpec:
    return NodePoolSpec.model_validate({key: value for key, value in fields.items() if value is not None})


class TestAllocatable:
    def test_gpus_follow_attachment_sharing_and_partitions(self) -> None:
        gpus = "nvidia.com/gpu"

        assert pool(**T4).allocatable[gpus] == 1
        assert pool(**A2).allocatable[gpus] == 8
        assert pool(**A2, gpuPartition="1g.5gb").allocatable[gpus] == 56
        assert pool(**A2, gpuSharing={"strategy": "TIME_SHARING", "clients": 4}).allocatable[gpus] == 32
        both = {"gpuPartition": "3g.20gb", "gpuSharing": {"strategy": "TIME_SHARING", "clients": 2}}
        assert pool(**A2, **both).allocatable[gpus] == 32
        assert gpus not in pool(**CPU).allocatable

    def test_pods_and_storage_follow_the_pool(self) -> None:
        assert pool(**CPU, maxPods=32).allocatable["pods"] == 32
        assert (
            pool(**CPU, diskSizeGb=500).allocatable["ephemeral-storage"] > pool(**CPU).allocatable["ephemeral-storage"]
        )
        block = pool(**CPU, localSsds={"count": 4, "use": "BLOCK"}).allocatable
        assert block == pool(**CPU).allocatable
        on_ssd = pool(**CPU, localSsds={"count": 4}).allocatable["ephemeral-storage"]
        assert on_ssd > 1024 * 2**30

    def test_machines_with_their_own_ssds_use_them(self) -> None:
        with_ssds = machine("a3-highgpu-8g").allocatable(ephemeral_local_ssds=16)

        assert pool(machineType="a3-highgpu-8g", count=1).allocatable["ephemeral-storage"] == parse_quantity(
            with_ssds["ephemeral-storage"]
        )

    def test_ubuntu_keeps_more_memory(self) -> None:
        assert pool(**CPU, image="UBUNTU_CONTAINERD").allocatable["memory"] < pool(**CPU).allocatable["memory"]

    def test_the_installer_takes_its_share(self) -> None:
        managed, installed = pool(**A2), pool(**A2, driver={"install": "INSTALLER"})

        assert managed.allocatable["cpu"] - installed.allocatable["cpu"] == Decimal("0.15")

    def test_an_unknown_machine_is_as_large_as_said(self) -> None:
        newer = pool(machineType="n2-newer-8", count=1, size=SIZE)

        assert newer.allocatable == pool(**CPU).allocatable
        gpus = {**SIZE, "gpus": 2, "accelerator": "nvidia-x1"}
        assert pool(machineType="x9-huge-8", count=1, size=gpus).allocatable["nvidia.com/gpu"] == 2


class TestPlacement:
    def test_pods_tolerate_what_gke_adds_too(self) -> None:
        placed = pool(machineType="a2-highgpu-8g", autoscaling={"max": 1}, queuedProvisioning=True).placement("gpu")
        assert [taint.key for taint in placed.taints] == ["nvidia.com/gpu", "cloud.google.com/gke-queued"]
        assert placed.tolerations[0] == {
            "key": "nvidia.com/gpu",
            "operator": "Equal",
            "value": "present",
            "effect": "NoSchedule",
        }
        arm = pool(machineType="a4x-highgpu-4g", count=1).placement("arm")
        assert arm.taints[-1].value == "arm64"

    def test_a_taint_without_value_is_tolerated_by_its_key(self) -> None:
        placed = pool(**CPU, taints=[{"key": "team", "effect": "NoExecute"}]).placement("cpu")

        assert placed.tolerations == [{"key": "team", "operator": "Exists", "effect": "NoExecute"}]
        assert placed.node_selector == {"persia-infra/pool": "cpu"}


def test_the_boot_disk_follows_the_machine() -> None:
    assert pool(**CPU).boot_disk_type == "pd-balanced"
    assert pool(**CPU, diskType="pd-ssd").boot_disk_type == "pd-ssd"
    assert pool(machineType="a4-highgpu-8g", count=1).boot_disk_type == "hyperdisk-balanced"
    assert pool(machineType="a3-highgpu-8g", count=1).boot_disk_type == "pd-balanced"


def test_gpu_pools_give_a_node_up_rather_than_ask_for_a_spare_one() -> None:
    assert pool(**A2).surge == (0, 1)
    assert pool(**CPU).surge == (1, 0)
    assert pool(**A2, upgrades={"maxSurge": 1}).surge == (1, 0)
