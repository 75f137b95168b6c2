"""Node pools as GKE makes them: how many nodes, where, with which labels, taints and sizes."""

from typing import Any

import pytest

from persia_infra.rehearsal.provider.node_pools import node_patch
from persia_infra.rehearsal.provider.nodes import Limits, PoolPlan, cluster_zones, node_manifest, pool_plan
from persia_infra.rehearsal.provider.package import ProviderError

ZONES = ["us-central1-a", "us-central1-b", "us-central1-c"]


def plan(**inputs: Any) -> PoolPlan:
    return pool_plan(
        {"name": "workers", **inputs},
        cluster="train",
        cluster_location="us-central1",
        cluster_zones=ZONES,
        project="demo",
    )


def labels(**node_config: Any) -> dict[str, str]:
    return plan(nodeConfig=node_config).template.labels


@pytest.mark.parametrize(
    ("inputs", "start"),
    [
        ({}, [0, 0, 0]),
        ({"nodeCount": 2.0}, [2, 2, 2]),
        ({"initialNodeCount": 1}, [1, 1, 1]),
        ({"autoscaling": {"minNodeCount": 1, "maxNodeCount": 3}}, [1, 1, 1]),
        ({"initialNodeCount": 2, "autoscaling": {"minNodeCount": 1, "maxNodeCount": 3}}, [2, 2, 2]),
        ({"autoscaling": {"totalMinNodeCount": 4, "totalMaxNodeCount": 8}}, [2, 1, 1]),
        ({"initialNodeCount": 1, "autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 8}}, [1, 1, 1]),
    ],
)
def test_counts_are_per_zone_and_total_counts_are_for_all_zones(inputs: dict[str, Any], start: list[int]) -> None:
    assert plan(**inputs).start == dict(zip(ZONES, start, strict=True))


def test_a_pool_has_its_own_zones_or_those_of_its_cluster() -> None:
    assert plan(nodeLocations=["us-central1-f"], nodeCount=1).start == {"us-central1-f": 1}
    assert cluster_zones({}, "europe-west4-b") == ["europe-west4-b"]
    assert cluster_zones({"nodeLocations": ["europe-west4-c"]}, "europe-west4-b") == [
        "europe-west4-b",
        "europe-west4-c",
    ]
    assert cluster_zones({"nodeLocations": ["us-east1-c"]}, "us-east1") == ["us-east1-c"]
    assert cluster_zones({}, "us-east1") == ["us-east1-b", "us-east1-c", "us-east1-d"]


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        (
            {"nodeConfig": {"machineType": "a2-highgpu-9g"}},
            "Error 400: machine type 'a2-highgpu-9g' not found.*a2-highgpu-8g",
        ),
        ({"nodeCount": 1, "initialNodeCount": 1}, "both set"),
        ({"nodeLocations": ["europe-west4-a"]}, "europe-west4-a: not zones of the region us-central1"),
        ({"nodeLocations": ["us-central1"]}, "not zones"),
        ({"autoscaling": {"minNodeCount": 3, "maxNodeCount": 2}}, "minimum 3 is greater than the maximum 2"),
        ({"autoscaling": {"minNodeCount": 3}}, "no maximum"),
        ({"autoscaling": {"maxNodeCount": 3, "totalMaxNodeCount": 9}}, "keep one kind"),
        ({"initialNodeCount": 3, "autoscaling": {"maxNodeCount": 2}}, "the initial 9 nodes exceed"),
        ({"initialNodeCount": 3, "autoscaling": {"totalMaxNodeCount": 8}}, "the initial 9 nodes exceed"),
        ({"nodeConfig": {"guestAccelerators": [{"type": "nvidia-l4", "count": 1}]}}, "e2-medium takes no GPUs"),
        ({"nodeConfig": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}}, "use one of NO_SCHEDULE"),
    ],
)
def test_what_gke_refuses_is_refused_with_the_pool_and_the_fix(inputs: dict[str, Any], reason: str) -> None:
    with pytest.raises(ProviderError, match=rf"^node pool workers of cluster train: .*{reason}"):
        plan(**inputs)


def test_a_node_has_the_sizes_of_its_machine() -> None:
    node = node_manifest(plan(nodeConfig={"machineType": "c2-standard-30"}), "us-central1-b", "1")
    # From GKE's published formula; tests/unit/gke/test_machines.py explains the figures.
    assert node["status"]["allocatable"] == {
        "cpu": "29855m",
        "memory": "114189107Ki",
        "ephemeral-storage": "45391282Ki",
        "pods": "110",
    }
    assert node["status"]["capacity"] == {
        "cpu": "30000m",
        "memory": "123560919Ki",
        "ephemeral-storage": "98868658Ki",
        "pods": "110",
    }


def test_a_machine_type_newer_than_the_catalogue_has_the_size_that_the_program_says() -> None:
    size = '{"vcpus": 26, "memory_gib": 234, "gpus": 1, "accelerator": "nvidia-x1", "arch": "arm64"}'
    accelerator = {"type": "nvidia-x1", "count": 1}
    config = {
        "machineType": "x9-highgpu-1g",
        "guestAccelerators": [accelerator],
        "metadata": {"persia-infra-machine-size": size},
    }

    template = plan(nodeConfig=config).template

    assert template.capacity["cpu"] == "26000m"
    assert template.allocatable["nvidia.com/gpu"] == "1"
    assert template.labels["kubernetes.io/arch"] == "arm64"
    with pytest.raises(ProviderError, match="x9-highgpu-1g"):
        plan(nodeConfig={**config, "metadata": {}})


def test_a_node_is_named_and_placed_as_gke_does() -> None:
    node = node_manifest(plan(), "us-central1-b", "1")
    name = node["metadata"]["name"]
    assert name.startswith("gke-train-workers-")
    assert [len(part) for part in name.split("-")[-2:]] == [8, 4]
    assert node["spec"]["providerID"] == f"gce://demo/us-central1-b/{name}"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == name
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "us-central1-b"
    assert node["metadata"]["labels"]["topology.kubernetes.io/region"] == "us-central1"
    assert node_manifest(plan(), "us-central1-b", "2")["metadata"]["name"] != name


def test_the_longest_names_still_give_a_valid_node_name() -> None:
    longest = pool_plan(
        {"name": "p" * 40}, cluster="c" * 40, cluster_location="us-central1", cluster_zones=ZONES, project="demo"
    )
    assert len(node_manifest(longest, "us-central1-a", "1")["metadata"]["name"]) <= 63


def test_a_gpu_node_has_gkes_labels() -> None:
    found = labels(machineType="a2-highgpu-8g", diskType="pd-ssd", imageType="UBUNTU_CONTAINERD")
    assert (
        found.items()
        >= {
            "cloud.google.com/gke-nodepool": "workers",
            "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
            "cloud.google.com/gke-accelerator-count": "8",
            "cloud.google.com/gke-gpu": "true",
            "cloud.google.com/gke-gpu-driver-version": "default",
            "cloud.google.com/machine-family": "a2",
            "cloud.google.com/gke-os-distribution": "ubuntu",
            "cloud.google.com/gke-boot-disk": "pd-ssd",
            "cloud.google.com/gke-max-pods-per-node": "110",
            "cloud.google.com/gke-provisioning": "standard",
            "node.kubernetes.io/instance-type": "a2-highgpu-8g",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }.items()
    )
    assert "cloud.google.com/gke-spot" not in found


def test_a_cpu_node_has_no_gpu_label() -> None:
    assert not [key for key in labels(machineType="c2-standard-30") if "gpu" in key or "accelerator" in key]


def test_the_driver_label_is_absent_when_the_driver_is_not_installed() -> None:
    accelerator = {"type": "nvidia-tesla-t4", "count": 2, "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"}}
    assert (
        labels(machineType="n1-standard-8", guestAccelerators=[accelerator]).items()
        >= {
            "cloud.google.com/gke-accelerator": "nvidia-tesla-t4",
            "cloud.google.com/gke-accelerator-count": "2",
            "cloud.google.com/gke-gpu-driver-version": "latest",
        }.items()
    )
    accelerator["gpuDriverInstallationConfig"] = {"gpuDriverVersion": "INSTALLATION_DISABLED"}
    without = labels(machineType="n1-standard-8", guestAccelerators=[accelerator])
    assert "cloud.google.com/gke-gpu-driver-version" not in without


def test_an_n1_without_guest_accelerators_has_no_gpu() -> None:
    assert "nvidia.com/gpu" not in plan(nodeConfig={"machineType": "n1-standard-8"}).template.allocatable


def test_spot_nodes_are_labelled_and_not_tainted() -> None:
    spot = plan(nodeConfig={"spot": True}, queuedProvisioning={"enabled": True}).template
    assert spot.labels["cloud.google.com/gke-spot"] == "true"
    assert spot.labels["cloud.google.com/gke-provisioning"] == "spot"
    assert spot.labels["cloud.google.com/gke-queued"] == "true"
    assert spot.taints == []


@pytest.mark.parametrize(
    ("more", "devices"),
    [
        ({"gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": 4}}, "8"),
        ({"gpuPartitionSize": "1g.5gb"}, "14"),
        ({}, "2"),
    ],
)
def test_shared_and_partitioned_gpus_multiply(more: dict[str, Any], devices: str) -> None:
    accelerator = {"type": "nvidia-tesla-a100", "count": 2, **more}
    template = plan(nodeConfig={"machineType": "a2-highgpu-2g", "guestAccelerators": [accelerator]}).template
    assert template.allocatable["nvidia.com/gpu"] == template.capacity["nvidia.com/gpu"] == devices
    assert template.labels["cloud.google.com/gke-accelerator-count"] == "2"


def test_the_programs_own_labels_and_taints_are_on_the_node() -> None:
    template = plan(
        maxPodsPerNode=32,
        nodeConfig={"labels": {"role": "ps"}, "taints": [{"key": "a/b", "value": "c", "effect": "NO_EXECUTE"}]},
    ).template
    assert template.labels["role"] == "ps"
    assert template.labels["cloud.google.com/gke-max-pods-per-node"] == template.allocatable["pods"] == "32"
    assert template.taints == [{"key": "a/b", "value": "c", "effect": "NoExecute"}]


def test_new_nodes_go_where_there_are_fewest_and_never_past_the_limit() -> None:
    have = {"a": 2, "b": 0, "c": 1}
    assert Limits(None, 6).zones_for(have, 10) == {"a": 0, "b": 2, "c": 1}
    assert Limits(2, None).zones_for(have, 10) == {"a": 0, "b": 2, "c": 1}
    assert Limits(2, None).room(have) == 3
    assert Limits(None, 2).room(have) == 0


def test_an_update_of_labels_and_taints_leaves_what_others_put_on_the_node() -> None:
    gpu = {"key": "gpu", "value": "x", "effect": "NO_SCHEDULE"}
    before = plan(nodeConfig={"labels": {"old": "1", "same": "1"}, "taints": [gpu]})
    after = plan(nodeConfig={"labels": {"same": "1", "new": "1"}, "taints": [{**gpu, "value": "y"}]})
    node = node_manifest(before, "us-central1-a", "1")
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    node["spec"]["taints"] = [*node["spec"]["taints"], cordon]
    node["metadata"]["labels"]["by-hand"] = "1"
    assert node_patch(node, before.template, after.template) == {
        "metadata": {"labels": {"old": None, "new": "1"}},
        "spec": {"taints": [cordon, {"key": "gpu", "value": "y", "effect": "NoSchedule"}]},
    }
    assert node_patch(node, before.template, before.template) == {}


def test_another_machine_type_needs_new_nodes_but_other_labels_do_not() -> None:
    e2 = plan(nodeConfig={"machineType": "e2-standard-4"}).template
    assert e2.is_another_machine(plan(nodeConfig={"machineType": "e2-standard-8"}).template)
    assert e2.is_another_machine(plan(nodeConfig={"machineType": "e2-standard-4", "diskSizeGb": 200}).template)
    assert not e2.is_another_machine(plan(nodeConfig={"machineType": "e2-standard-4", "labels": {"a": "b"}}).template)
