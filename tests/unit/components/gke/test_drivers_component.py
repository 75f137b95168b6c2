"""The driver installer: only on its own pools, and never in the way of another one."""

import subprocess
from collections.abc import Callable
from typing import Any

from persia_components import DriverInstaller, Environment

from persia_infra.gke.drivers import Installer, installers
from persia_infra.gke.pools import NodePoolSpec
from persia_infra.stack import parse_environment

Record = Callable[..., Any]


def pod(record: Record, spec: Installer) -> dict[str, Any]:
    recording = record(lambda: DriverInstaller("drivers", spec))
    return recording.one("DaemonSet", "drivers").inputs["spec"]["template"]["spec"]


def conditions(pod: dict[str, Any]) -> dict[str, Any]:
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return {one["key"]: (one["operator"], one.get("values")) for one in term["matchExpressions"]}


def gpu_pool(**fields: Any) -> NodePoolSpec:
    return NodePoolSpec.model_validate({"machineType": "g2-standard-8", "count": 1, **fields})


def test_pools_with_the_same_image_and_version_share_an_installer() -> None:
    ubuntu = {"image": "UBUNTU_CONTAINERD", "driver": {"install": "INSTALLER"}}
    pools = {
        "managed": gpu_pool(),
        "none": gpu_pool(driver={"install": "NONE"}),
        "cpu": NodePoolSpec.model_validate({"machineType": "n2-standard-8", "count": 1}),
        "a": gpu_pool(**ubuntu),
        "b": gpu_pool(**ubuntu),
        "c": gpu_pool(image="UBUNTU_CONTAINERD", driver={"install": "INSTALLER", "version": "570.124.06"}),
        "d": gpu_pool(driver={"install": "INSTALLER"}),
    }

    found = installers(pools)

    assert [(one.name, one.pools) for one in found] == [
        ("nvidia-driver-installer-cos", ("d",)),
        ("nvidia-driver-installer-ubuntu", ("a", "b")),
        ("nvidia-driver-installer-ubuntu-570-124-06", ("c",)),
    ]


def test_nodes_that_it_runs_on(record: Record) -> None:
    ubuntu, cos = Installer("ubuntu", None, ("a", "b")), Installer("cos", None, ("c",))

    assert conditions(pod(record, ubuntu)) == {
        "persia-infra/pool": ("In", ["a", "b"]),
        "cloud.google.com/gke-os-distribution": ("In", ["ubuntu"]),
        "cloud.google.com/gke-accelerator": ("Exists", None),
        "cloud.google.com/gke-gpu-driver-version": ("DoesNotExist", None),
    }
    assert conditions(pod(record, cos))["cloud.google.com/gke-os-distribution"] == ("In", ["cos"])


def test_no_image_is_pulled_for_the_installation(record: Record) -> None:
    for distribution in ("ubuntu", "cos"):
        first = pod(record, Installer(distribution, None, ("a",)))["initContainers"][0]
        assert first["imagePullPolicy"] == "Never"
        assert first["securityContext"] == {"privileged": True}


def test_a_version_is_handed_on(record: Record) -> None:
    ubuntu = pod(record, Installer("ubuntu", "570.124.06", ("a",)))["initContainers"][0]
    assert ubuntu["env"] == [{"name": "NVIDIA_DRIVER_VERSION", "value": "570.124.06"}]
    cos = pod(record, Installer("cos", "latest", ("a",)))["initContainers"][0]
    assert "cos-gpu-installer install --version=latest\n" in cos["command"][-1]
    assert "--version" not in pod(record, Installer("cos", None, ("a",)))["initContainers"][0]["command"][-1]


def test_a_failed_installation_fails_the_pod(record: Record) -> None:
    """The script's last command would otherwise decide, and the node would count as ready for GPU pods."""
    (_, _, script) = pod(record, Installer("cos", None, ("a",)))["initContainers"][0]["command"]
    stubs = "lsmod() { :; }; chmod() { :; }; "
    failing = stubs + script.replace("/cos-gpu-installer", "false")
    working = stubs + script.replace("/cos-gpu-installer", "true")

    assert subprocess.run(["bash", "-c", failing], check=False).returncode != 0
    assert subprocess.run(["bash", "-c", working], check=False).returncode == 0


def test_partitions_are_made_on_cos(record: Record) -> None:
    assert [one["name"] for one in pod(record, Installer("cos", None, ("a",)))["initContainers"]] == [
        "nvidia-driver-installer",
        "partition-gpus",
    ]


def test_every_mounted_volume_is_there(record: Record) -> None:
    for distribution in ("ubuntu", "cos"):
        made = pod(record, Installer(distribution, None, ("a",)))
        mounted = {mount["name"] for one in made["initContainers"] for mount in one["volumeMounts"]}
        assert mounted == {volume["name"] for volume in made["volumes"]}


def test_an_environment_has_one_for_each_image(record: Record, description: dict[str, Any]) -> None:
    del description["jobs"]
    description["pools"]["gpu"]["driver"] = {"install": "INSTALLER"}
    description["pools"]["old"] = {
        **description["pools"]["gpu"],
        "image": "UBUNTU_CONTAINERD",
        "driver": {"install": "INSTALLER", "version": "535.161.07"},
    }
    spec = parse_environment(description)

    recording = record(lambda: Environment("dev", spec))

    sets = [r.inputs["metadata"] for r in recording.all if r.type.endswith(":DaemonSet")]
    assert {(one["namespace"], one["name"]) for one in sets} == {
        ("kube-system", "nvidia-driver-installer-cos"),
        ("kube-system", "nvidia-driver-installer-ubuntu-535-161-07"),
    }
    pools = {r.name: r.inputs for r in recording.all if r.type == "gcp:container/nodePool:NodePool"}
    (gpu,) = pools["dev-old"]["nodeConfig"]["guestAccelerators"]
    assert gpu["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "INSTALLATION_DISABLED"}
