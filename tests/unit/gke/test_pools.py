"""Node pools: what Google Cloud would refuse is refused, and what pods can use follows from the options."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from persia_infra.gke.pools import NodePoolSpec
from persia_infra.spec.errors import problems_from

A2 = {"machineType": "a2-highgpu-8g", "count": 1}
CPU = {"machineType": "n2-standard-8", "count": 1}
T4 = {"machineType": "n1-standard-8", "count": 1, "accelerators": {"type": "nvidia-tesla-t4", "count": 1}}
KIB = 1024
GROWING = {"count": None, "autoscaling": {"min": 0, "max": 2}}
SIZE = {"vcpus": 8, "memoryGib": 32}
NETWORK = [{"network": "a", "subnet": "b"}]


def messages_about(**fields: Any) -> list[str]:
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
        ({**CPU, "autoscaling": {"max": 3}}, "count: cannot be combined with autoscaling"),
        ({**CPU, **GROWING, "autoscaling": {"min": 3, "max": 2}}, "autoscaling: min 3 is above max 2"),
        # compact placement
        (
            {**A2, "compactPlacement": True, "upgrades": {"strategy": "BLUE_GREEN"}},
            "upgrades.strategy: BLUE_GREEN cannot be combined with compactPlacement",
        ),
        (
            {**A2, **GROWING, "compactPlacement": True, "queuedProvisioning": True},
            "compactPlacement: cannot be combined with queuedProvisioning",
        ),
        ({**T4, "compactPlacement": True}, "compactPlacement: n1 machines cannot be placed close together"),
        (
            {**A2, **GROWING, "compactPlacement": True, "flexStart": True},
            "compactPlacement: cannot be combined with flexStart on a2-highgpu-8g, only on a3-ultragpu, a4, h4d",
        ),
        # Spot, reservations, flex-start, queued provisioning
        ({**A2, "spot": True, "reservation": "mine"}, "reservation: cannot be combined with spot"),
        ({**A2, "reservation": "My Reservation"}, "reservation: is not a valid name of a reservation"),
        (
            {**A2, **GROWING, "queuedProvisioning": True, "spot": True},
            "queuedProvisioning: cannot be combined with spot",
        ),
        (
            {**A2, **GROWING, "queuedProvisioning": True, "reservation": "mine"},
            "reservation: cannot be combined with queuedProvisioning",
        ),
        ({**A2, "queuedProvisioning": True}, "queuedProvisioning: needs autoscaling instead of count"),
        (
            {**A2, **GROWING, "queuedProvisioning": True, "autoscaling": {"min": 1, "max": 2}},
            "autoscaling.min: 1 is not possible with queuedProvisioning",
        ),
        ({**A2, **GROWING, "flexStart": True, "spot": True}, "flexStart: cannot be combined with spot"),
        ({**A2, **GROWING, "flexStart": True, "reservation": "mine"}, "reservation: cannot be combined with flexStart"),
        ({**A2, "flexStart": True}, "flexStart: needs autoscaling instead of count"),
        ({**A2, "maxRunDuration": "604801s"}, "maxRunDuration: is above seven days"),
        ({**A2, "maxRunDuration": "1d"}, "maxRunDuration: is not a valid number of seconds"),
        # GPU sharing, partitions, drivers
        ({**CPU, "gpuSharing": {"strategy": "MPS", "clients": 4}}, "gpuSharing: has no effect on n2-standard-8"),
        ({**CPU, "gpuPartition": "1g.5gb"}, "gpuPartition: has no effect on n2-standard-8"),
        ({**CPU, "driver": {"install": "LATEST"}}, "driver: has no effect on n2-standard-8"),
        ({**CPU, "gpuDirect": "TCPX"}, "gpuDirect: has no effect on n2-standard-8"),
        ({**A2, "gpuPartition": "1g.99gb"}, "gpuPartition: a2-highgpu-8g: nvidia-tesla-a100 has no partition"),
        ({**T4, "gpuPartition": "1g.5gb"}, "gpuPartition: n1-standard-8: nvidia-tesla-t4 has no partition"),
        (
            {**A2, "gpuPartition": "1g.5gb", "gpuSharing": {"strategy": "MPS", "clients": 4}},
            "gpuSharing.strategy: MPS cannot be combined with gpuPartition",
        ),
        ({**A2, "gpuSharing": {"strategy": "MPS", "clients": 1}}, "gpuSharing.clients: must be greater than or equal"),
        ({**A2, "gpuSharing": {"strategy": "MPS", "clients": 49}}, "gpuSharing.clients: must be less than or equal"),
        (
            {**A2, "image": "UBUNTU_CONTAINERD", "driver": {"install": "LATEST"}},
            "driver.install: LATEST is available on Container-Optimized OS only",
        ),
        (
            {**A2, "image": "UBUNTU_CONTAINERD", "driver": {"install": "INSTALLER", "version": "latest"}},
            "driver.version: latest is not supported by the installer for Ubuntu",
        ),
        (
            {**A2, "image": "UBUNTU_CONTAINERD", "gpuPartition": "1g.5gb", "driver": {"install": "INSTALLER"}},
            "driver.install: INSTALLER does not partition GPUs on Ubuntu",
        ),
        ({**A2, "driver": {"version": "570.124.06"}}, "driver.version: has no effect with install: DEFAULT"),
        ({**A2, "driver": {"install": "INSTALLER", "version": "new"}}, "driver.version: is not a valid driver version"),
        ({**A2, "image": "WINDOWS_LTSC_CONTAINERD"}, "image: not one of the values it can have"),
        # disks
        ({**CPU, "machineType": "c4-standard-8", "diskType": "pd-ssd"}, "diskType: c4-standard-8 boots from Hyperdisk"),
        ({**CPU, "diskType": "hyperdisk-balanced"}, "diskType: n2 machines do not boot from Hyperdisk"),
        ({**CPU, "diskSizeGb": 5}, "diskSizeGb: must be greater than or equal to 20"),
        (
            {"machineType": "a3-highgpu-8g", "count": 1, "localSsds": {"count": 4}},
            "localSsds.count: a3-highgpu-8g always has 16 local SSDs",
        ),
        (
            {**CPU, "machineType": "e2-standard-8", "localSsds": {"count": 1}},
            "localSsds: e2 machines have no local SSDs",
        ),
        # upgrades
        ({**CPU, "upgrades": {"maxSurge": 0, "maxUnavailable": 0}}, "upgrades: maxSurge and maxUnavailable are both 0"),
        (
            {**CPU, "upgrades": {"maxSurge": 15, "maxUnavailable": 6}},
            "upgrades: maxSurge and maxUnavailable add up to 21",
        ),
        ({**CPU, "upgrades": {"soakSeconds": 2}}, "upgrades.soakSeconds: has no effect with strategy: SURGE"),
        (
            {**CPU, "upgrades": {"strategy": "BLUE_GREEN", "maxUnavailable": 2}},
            "upgrades.maxUnavailable: has no effect with strategy: BLUE_GREEN",
        ),
        (
            {**A2, **GROWING, "queuedProvisioning": True, "upgrades": {"strategy": "BLUE_GREEN"}},
            "upgrades.strategy: BLUE_GREEN needs a second set of machines",
        ),
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
        ({**A2, "gpuDirect": "TCPX"}, "gpuDirect: TCPX is not available on a2-highgpu-8g"),
        (
            {"machineType": "a3-megagpu-8g", "count": 1, "gpuDirect": "TCPXO"},
            "gpuDirect: needs additional network interfaces",
        ),
        (
            {
                "machineType": "a3-megagpu-8g",
                "count": 1,
                "gpuDirect": "TCPXO",
                "networks": NETWORK,
            },
            "networks: TCPXO uses 8 additional interfaces, but 1 are listed",
        ),
        (
            {**CPU, "networks": NETWORK, "networkProfile": "auto"},
            "networks: cannot be combined with networkProfile",
        ),
        ({**CPU, "networks": NETWORK * 10}, "networks: lists 10 networks, but a machine has at most 9"),
        ({**CPU, "maxPods": 300}, "maxPods: must be less than or equal to 256"),
        ({**CPU, "maxPods": 4}, "maxPods: must be greater than or equal to 8"),
        # labels and taints
        ({**CPU, "labels": {"persia-infra/pool": "x"}}, "labels.persia-infra/pool: is set by Kubernetes, GKE or this"),
        ({**CPU, "labels": {"node.kubernetes.io/x": "y"}}, "labels.node.kubernetes.io/x: is set by Kubernetes, GKE or"),
        ({**CPU, "labels": {"cloud.k8s.io/x": "y"}}, "labels.cloud.k8s.io/x: is set by Kubernetes, GKE or"),
        ({**CPU, "labels": {"team": "-ads"}}, "labels.team: is not a valid label value"),
        ({**CPU, "labels": {"team": "a" * 64}}, "labels.team: is not a valid label value"),
        ({**CPU, "labels": {"team": "not a label"}}, "labels.team: is not a valid label value"),
        (
            {**A2, "taints": [{"key": "nvidia.com/gpu", "effect": "NoExecute"}]},
            "taints[0]: pools with GPUs already have the taint nvidia.com/gpu",
        ),
        (
            {**CPU, "taints": [{"key": "a", "effect": "NoExecute"}, {"key": "a", "value": "b", "effect": "NoExecute"}]},
            "taints[1]: a taint a with the effect NoExecute is already listed",
        ),
    ],
)
def test_refused_with_one_message_at_the_key_to_change(fields: dict[str, Any], line: str) -> None:
    messages = messages_about(**fields)

    assert len(messages) == 1, messages
    assert messages[0].startswith(line)


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
        {**CPU, "upgrades": {"maxSurge": 14, "maxUnavailable": 6}},
        {**CPU, "upgrades": {"maxSurge": 0, "maxUnavailable": 1}},
        {**CPU, "upgrades": {"strategy": "BLUE_GREEN", "batchNodes": 2, "soakSeconds": 604800}},
        {**CPU, **GROWING, "autoscaling": {"min": 2, "max": 2}},
        {**CPU, "count": 0},
        {**A2, **GROWING, "flexStart": True, "maxRunDuration": "604800s"},
        {**A2, **GROWING, "flexStart": True, "autoscaling": {"min": 1, "max": 2}},
        {**A2, "gpuSharing": {"strategy": "MPS", "clients": 48}},
        {**A2, "image": "COS_CONTAINERD", "gpuPartition": "1g.5gb", "driver": {"install": "INSTALLER"}},
        {**A2, "driver": {"install": "INSTALLER", "version": "latest"}},
        {**A2, "driver": {"install": "LATEST"}},
        {"machineType": "a3-highgpu-8g", "count": 1, "localSsds": {"count": 16, "use": "BLOCK"}},
        {"machineType": "a3-highgpu-8g", "count": 1, "gpuDirect": "TCPX", "networks": NETWORK * 4},
        {"machineType": "a3-megagpu-8g", "count": 1, "gpuDirect": "TCPXO", "networks": NETWORK * 8},
        {"machineType": "a4-highgpu-8g", "count": 1, "gpuDirect": "RDMA", "networks": NETWORK * 9},
        {**CPU, "networks": NETWORK * 9},
        {**CPU, "labels": {"team": "a" * 63, "empty": "", "example.com/k8s": "A.b_c-9"}},
        {**CPU, "taints": [{"key": "nvidia.com/gpu", "effect": "NoExecute"}]},
        {**CPU, "maxPods": 8},
        {**CPU, "maxPods": 256},
        {**CPU, "diskSizeGb": 20},
    ],
)
def test_accepted(fields: dict[str, Any]) -> None:
    assert messages_about(**fields) == []


def test_a_superfluous_size_does_not_hide_other_errors() -> None:
    messages = messages_about(**CPU, size=SIZE, compactPlacement=True, queuedProvisioning=True, gpuPartition="1g.5gb")

    assert sorted(message.partition(":")[0] for message in messages) == [
        "compactPlacement",
        "gpuPartition",
        "queuedProvisioning",
        "size",
    ]


def test_an_unknown_machine_type_does_not_hide_errors_that_do_not_depend_on_it() -> None:
    messages = messages_about(machineType="x9-huge-8", labels={"persia-infra/pool": "x"})

    assert sorted(message.partition(":")[0] for message in messages) == [
        "count",
        "labels.persia-infra/pool",
        "machineType",
    ]


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

    def test_a_pool_without_options_follows_the_published_formula(self) -> None:
        assert pool(**CPU).allocatable == {
            "cpu": Decimal("7.91"),
            "memory": 29054173 * KIB,
            "ephemeral-storage": 45391282 * KIB,
            "pods": 110,
        }

    def test_pods_follow_max_pods(self) -> None:
        assert pool(**CPU, maxPods=32).allocatable["pods"] == 32

    def test_storage_follows_the_boot_disk_and_the_ssds_used_for_it(self) -> None:
        assert pool(**CPU, diskSizeGb=500).allocatable["ephemeral-storage"] == 354454863 * KIB
        assert pool(**CPU, localSsds={"count": 4}).allocatable["ephemeral-storage"] == 1284387076 * KIB
        block = pool(**CPU, localSsds={"count": 4, "use": "BLOCK"}).allocatable
        assert block["ephemeral-storage"] == 45391282 * KIB

    def test_machines_with_their_own_ssds_use_them(self) -> None:
        a3 = {"machineType": "a3-highgpu-8g", "count": 1}

        assert pool(**a3).allocatable["ephemeral-storage"] == 5504615000 * KIB
        block = pool(**a3, localSsds={"count": 16, "use": "BLOCK"}).allocatable
        assert block["ephemeral-storage"] == 45391282 * KIB

    def test_ubuntu_keeps_more_memory(self) -> None:
        assert pool(**CPU, image="UBUNTU_CONTAINERD").allocatable["memory"] == 29050077 * KIB

    def test_the_driver_installer_requests_cpu(self) -> None:
        assert pool(**A2).allocatable["cpu"] == Decimal("95.69")
        assert pool(**A2, driver={"install": "INSTALLER"}).allocatable["cpu"] == Decimal("95.54")
        assert pool(**A2, driver={"install": "NONE"}).allocatable["cpu"] == Decimal("95.69")

    def test_a_machine_type_that_is_not_in_the_catalogue_has_the_given_size(self) -> None:
        newer = pool(machineType="n2-newer-8", count=1, size=SIZE)

        assert newer.allocatable["cpu"] == Decimal("7.91")
        assert newer.allocatable["memory"] == 29054173 * KIB
        gpus = {**SIZE, "gpus": 2, "accelerator": "nvidia-x1", "localSsds": 2, "arch": "arm64"}
        with_gpus = pool(machineType="x9-huge-8", count=1, size=gpus)
        assert with_gpus.allocatable["nvidia.com/gpu"] == 2
        assert with_gpus.allocatable["ephemeral-storage"] == 615420376 * KIB
        assert with_gpus.machine.arch == "arm64"
        assert with_gpus.machine.accelerator == "nvidia-x1"


class TestPlacement:
    def test_pods_tolerate_what_gke_adds_too(self) -> None:
        placed = pool(machineType="a2-highgpu-8g", autoscaling={"max": 1}, queuedProvisioning=True).placement("gpu")
        assert placed.tolerations == [
            {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"},
            {"key": "cloud.google.com/gke-queued", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
        ]
        arm = pool(machineType="a4x-highgpu-4g", count=1).placement("arm")
        assert [(taint.key, taint.value, taint.effect) for taint in arm.taints] == [
            ("nvidia.com/gpu", "present", "NoSchedule"),
            ("kubernetes.io/arch", "arm64", "NoSchedule"),
        ]

    def test_pods_select_the_pool_and_tolerate_its_own_taints(self) -> None:
        placed = pool(**CPU, taints=[{"key": "team", "effect": "NoExecute"}]).placement("cpu")

        assert placed.pool == "cpu"
        assert placed.tolerations == [{"key": "team", "operator": "Exists", "effect": "NoExecute"}]
        assert placed.node_selector == {"persia-infra/pool": "cpu"}


def test_the_boot_disk_follows_the_machine() -> None:
    assert pool(**CPU).boot_disk_type == "pd-balanced"
    assert pool(**CPU, diskType="pd-ssd").boot_disk_type == "pd-ssd"
    assert pool(machineType="a4-highgpu-8g", count=1).boot_disk_type == "hyperdisk-balanced"
    assert pool(machineType="a3-highgpu-8g", count=1).boot_disk_type == "pd-balanced"


def test_gpu_pools_lose_a_node_during_upgrades_instead_of_adding_a_spare_one() -> None:
    assert pool(**A2).surge == (0, 1)
    assert pool(**CPU).surge == (1, 0)
    assert pool(**A2, upgrades={"maxSurge": 1}).surge == (1, 0)
    assert pool(**CPU, upgrades={"maxUnavailable": 2}).surge == (0, 2)


def test_the_most_nodes_of_a_pool() -> None:
    assert pool(**{**CPU, "count": 3}).max_nodes == 3
    assert pool(machineType="n2-standard-8", autoscaling={"min": 1, "max": 4}).max_nodes == 4
