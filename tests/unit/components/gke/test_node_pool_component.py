"""Node pools: every option reaches GKE, and nothing else does."""

from collections.abc import Callable
from typing import Any

import pytest
from persia_components import Environment, NodePool

from persia_infra.gke.pools import NodePoolSpec
from persia_infra.rehearsal.provider.nodes import pool_plan
from persia_infra.stack import parse_environment

Record = Callable[..., Any]


def pool(record: Record, zones: int = 1, **fields: Any) -> dict[str, Any]:
    spec = NodePoolSpec.model_validate(fields)
    recording = record(
        lambda: NodePool(
            "dev-gpu",
            spec,
            pool="gpu",
            project="persia-example",
            location="us-central1",
            zones=[f"us-central1-{letter}" for letter in "abc"[:zones]],
            cluster_name="c",
            service_account="nodes@example.com",
        )
    )
    return recording.one("container/nodePool:NodePool", "dev-gpu").inputs


def test_pools_with_gpus_have_a_driver_and_a_taint(record: Record) -> None:
    config = pool(record, machine_type="g2-standard-8", count=1, spot=True)["nodeConfig"]

    assert config["guestAccelerators"] == [
        {"type": "nvidia-l4", "count": 1, "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}
    ]
    assert config["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    assert config["spot"] is True


def test_pools_without_gpus_have_neither_driver_nor_taint(record: Record) -> None:
    config = pool(record, machine_type="n2-standard-8", count=1)["nodeConfig"]

    assert "guestAccelerators" not in config
    assert "taints" not in config


def test_nodes_are_private_shielded_and_cannot_use_legacy_metadata(record: Record) -> None:
    inputs = pool(record, machine_type="n2-standard-8", count=1)

    assert inputs["networkConfig"] == {"enablePrivateNodes": True}
    assert inputs["nodeConfig"]["shieldedInstanceConfig"]["enableSecureBoot"] is True
    assert inputs["nodeConfig"]["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
    assert inputs["nodeConfig"]["metadata"] == {"disable-legacy-endpoints": "true"}
    assert inputs["nodeConfig"]["serviceAccount"] == "nodes@example.com"
    assert inputs["nodeConfig"]["gvnic"] == {"enabled": True}
    assert inputs["nodeConfig"]["shieldedInstanceConfig"]["enableIntegrityMonitoring"] is True
    assert inputs["management"] == {"autoRepair": True, "autoUpgrade": True}
    assert inputs["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0}
    assert "reservationAffinity" not in inputs["nodeConfig"]


def test_own_labels_and_taints_are_kept(record: Record) -> None:
    taint = {"key": "team", "value": "ads", "effect": "PreferNoSchedule"}
    config = pool(record, machine_type="g2-standard-8", count=1, labels={"team": "ads"}, taints=[taint])["nodeConfig"]

    assert config["labels"] == {"persia-infra/pool": "gpu", "team": "ads"}
    assert [t["effect"] for t in config["taints"]] == ["NO_SCHEDULE", "PREFER_NO_SCHEDULE"]


def test_a_fixed_size_is_sent_per_zone(record: Record) -> None:
    inputs = pool(record, zones=3, machine_type="n2-standard-8", count=6)

    assert inputs["nodeCount"] == 2
    assert "autoscaling" not in inputs
    assert "initialNodeCount" not in inputs


def test_autoscaling_limits_are_sent_for_all_zones_together(record: Record) -> None:
    inputs = pool(record, zones=3, machine_type="n2-standard-8", autoscaling={"min": 4, "max": 9})

    assert inputs["autoscaling"]["totalMinNodeCount"] == 4
    assert inputs["autoscaling"]["totalMaxNodeCount"] == 9
    assert inputs["autoscaling"]["locationPolicy"] == "BALANCED"
    assert inputs["initialNodeCount"] == 2
    assert "nodeCount" not in inputs


@pytest.mark.parametrize(
    ("minimum", "maximum", "per_zone"), [(1, 1, 0), (1, 3, 1), (4, 5, 1), (4, 6, 2), (3, 3, 1), (0, 9, 0)]
)
def test_a_pool_starts_with_its_minimum_but_never_above_its_maximum(
    record: Record, minimum: int, maximum: int, per_zone: int
) -> None:
    scaling = {"min": minimum, "max": maximum}

    inputs = pool(record, zones=3, machine_type="n2-standard-8", autoscaling=scaling)

    assert inputs["initialNodeCount"] == per_zone


@pytest.mark.parametrize("fields", [{"machine_type": "g2-standard-8"}, {"machine_type": "n2-standard-8", "spot": True}])
def test_scarce_machines_are_taken_from_any_zone(record: Record, fields: dict[str, Any]) -> None:
    inputs = pool(record, zones=3, autoscaling={"max": 3}, **fields)

    assert inputs["autoscaling"]["locationPolicy"] == "ANY"


def test_a_new_machine_type_replaces_the_pool(record: Record) -> None:
    spec = NodePoolSpec.model_validate({"machine_type": "n2-standard-8", "count": 1})
    recording = record(
        lambda: NodePool(
            "dev-cpu",
            spec,
            pool="cpu",
            project="p",
            location="us-central1",
            zones=["us-central1-a"],
            cluster_name="c",
            service_account="s",
        )
    )

    registered = recording.one("container/nodePool:NodePool", "dev-cpu")
    assert registered.replaced_by == ("nodeConfig.machineType",)
    assert registered.ignored == ("initialNodeCount",)
    assert "name" not in registered.asked, "with a fixed name the old pool would have to be deleted first"


def test_attached_gpus_sharing_and_partitions(record: Record) -> None:
    t4 = pool(
        record,
        machine_type="n1-standard-8",
        count=1,
        accelerators={"type": "nvidia-tesla-t4", "count": 2},
        gpu_sharing={"strategy": "MPS", "clients": 8},
        driver={"install": "LATEST"},
    )
    (gpu,) = t4["nodeConfig"]["guestAccelerators"]
    assert gpu == {
        "type": "nvidia-tesla-t4",
        "count": 2,
        "gpuSharingConfig": {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": 8},
        "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"},
    }
    a100 = pool(record, machine_type="a2-highgpu-1g", count=1, gpu_partition="1g.5gb", driver={"install": "NONE"})
    (gpu,) = a100["nodeConfig"]["guestAccelerators"]
    assert gpu["gpuPartitionSize"] == "1g.5gb"
    assert gpu["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "INSTALLATION_DISABLED"}


def test_flex_start(record: Record) -> None:
    inputs = pool(
        record,
        machine_type="a2-highgpu-1g",
        autoscaling={"max": 4},
        flex_start=True,
        max_run_duration="86400s",
    )

    assert inputs["nodeConfig"]["flexStart"] is True
    assert inputs["nodeConfig"]["maxRunDuration"] == "86400s"
    assert inputs["nodeConfig"]["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}
    assert inputs["management"] == {"autoRepair": False, "autoUpgrade": True}
    assert "upgradeSettings" not in inputs


def test_queued_provisioning(record: Record) -> None:
    inputs = pool(record, machine_type="a2-highgpu-1g", autoscaling={"max": 4}, queued_provisioning=True)

    assert inputs["queuedProvisioning"] == {"enabled": True}
    assert inputs["nodeConfig"]["labels"]["cloud.google.com/gke-queued"] == "true"
    assert inputs["nodeConfig"]["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}


def test_reservation_placement_and_blue_green(record: Record) -> None:
    inputs = pool(record, machine_type="a2-highgpu-8g", count=8, reservation="mine", compact_placement=True)

    assert inputs["nodeConfig"]["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["mine"],
    }
    assert inputs["placementPolicy"] == {"type": "COMPACT"}
    upgrades = {"strategy": "BLUE_GREEN", "batch_nodes": 5, "soak_seconds": 3600}
    assert pool(record, machine_type="n2-standard-8", count=1, upgrades=upgrades)["upgradeSettings"] == {
        "strategy": "BLUE_GREEN",
        "blueGreenSettings": {"nodePoolSoakDuration": "3600s", "standardRolloutPolicy": {"batchNodeCount": 5}},
    }


def test_blue_green_upgrades_drain_one_node_at_a_time_by_default(record: Record) -> None:
    settings = pool(record, machine_type="n2-standard-8", count=1, upgrades={"strategy": "BLUE_GREEN"})

    assert settings["upgradeSettings"] == {
        "strategy": "BLUE_GREEN",
        "blueGreenSettings": {"standardRolloutPolicy": {"batchNodeCount": 1}},
    }


def test_disks_and_images(record: Record) -> None:
    config = pool(record, machine_type="a3-ultragpu-8g", count=1, secure_boot=False)["nodeConfig"]
    assert config["ephemeralStorageLocalSsdConfig"] == {"localSsdCount": 32}
    assert config["diskType"] == "hyperdisk-balanced"
    assert config["shieldedInstanceConfig"]["enableSecureBoot"] is False
    assert "gcfsConfig" not in config
    config = pool(
        record,
        machine_type="n2-standard-8",
        count=1,
        image="UBUNTU_CONTAINERD",
        local_ssds={"count": 2, "use": "BLOCK"},
        image_streaming=True,
        disk_size_gb=200,
    )["nodeConfig"]
    assert config["localNvmeSsdBlockConfig"] == {"localSsdCount": 2}
    assert "ephemeralStorageLocalSsdConfig" not in config
    assert (config["imageType"], config["diskSizeGb"]) == ("UBUNTU_CONTAINERD", 200)
    assert config["gcfsConfig"] == {"enabled": True}


@pytest.mark.parametrize(
    ("machine_type", "gpu_direct", "strategy"),
    [("a3-highgpu-8g", "TCPX", None), ("a3-megagpu-8g", "TCPXO", None), ("a4-highgpu-8g", "RDMA", "RDMA")],
)
def test_only_rdma_is_a_strategy_that_gke_knows(
    record: Record, machine_type: str, gpu_direct: str, strategy: str | None
) -> None:
    inputs = pool(record, machine_type=machine_type, count=1, gpu_direct=gpu_direct, network_profile="auto")

    assert inputs["nodeConfig"].get("gpudirectStrategy") == strategy
    assert inputs["networkConfig"] == {"enablePrivateNodes": True, "acceleratorNetworkProfile": "auto"}


def test_image_streaming_follows_the_cluster_unless_the_pool_decides(
    record: Record, description: dict[str, Any]
) -> None:
    description["cluster"]["imageStreaming"] = True
    description["pools"]["gpu"]["imageStreaming"] = False
    spec = parse_environment(description)

    recording = record(lambda: Environment("dev", spec))

    configs = {r.name: r.inputs["nodeConfig"] for r in recording.all if r.type == "gcp:container/nodePool:NodePool"}
    assert configs["dev-cpu"]["gcfsConfig"] == {"enabled": True}
    assert "gcfsConfig" not in configs["dev-gpu"]


def test_additional_networks_and_fewer_pods_reach_gke(record: Record) -> None:
    two = pool(record, machine_type="n2-standard-8", count=1, networks=[{"network": "a", "subnet": "b"}], max_pods=32)
    assert two["networkConfig"]["additionalNodeNetworkConfigs"] == [{"network": "a", "subnetwork": "b"}]
    assert two["maxPodsPerNode"] == 32


def test_a_rehearsal_creates_nodes_of_a_size_that_is_not_in_the_catalogue(record: Record) -> None:
    size = {"vcpus": 26, "memory_gib": 234, "gpus": 1, "accelerator": "nvidia-x1"}
    inputs = pool(record, machine_type="x9-highgpu-1g", count=1, size=size)

    plan = pool_plan(
        {**inputs, "name": "p"},
        cluster="c",
        cluster_location="us-central1",
        cluster_zones=["us-central1-a"],
        project="p",
    )

    assert plan.template.allocatable == {
        "cpu": "25865m",
        "memory": "229098946Ki",
        "ephemeral-storage": "45391282Ki",
        "pods": "110",
        "nvidia.com/gpu": "1",
    }


def test_pool_zones_override_the_clusters(description: dict[str, Any], record: Record) -> None:
    description["cluster"]["zones"] = ["us-central1-a", "us-central1-b"]
    description["pools"]["cpu"]["zones"] = ["us-central1-f"]
    spec = parse_environment(description)

    recording = record(lambda: Environment("dev", spec))

    pools = {r.name: r.inputs for r in recording.all if r.type == "gcp:container/nodePool:NodePool"}
    assert pools["dev-cpu"]["nodeLocations"] == ["us-central1-f"]
    assert pools["dev-gpu"]["nodeLocations"] == ["us-central1-a", "us-central1-b"]
