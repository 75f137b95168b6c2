"""The driver installer: only on its own pools, and never in the way of another one."""

import subprocess
from typing import Any

import pytest

from persia_infra.gke.driver_objects import installer_objects, installer_pod
from persia_infra.gke.drivers import Installer, installers
from persia_infra.gke.pools import NodePoolSpec
from tests.support.kube_objects import Objects

DISTRIBUTIONS = ("ubuntu", "cos")


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


def test_nodes_that_it_runs_on() -> None:
    ubuntu, cos = Installer("ubuntu", None, ("a", "b")), Installer("cos", None, ("c",))

    assert conditions(installer_pod(ubuntu)) == {
        "persia-infra/pool": ("In", ["a", "b"]),
        "cloud.google.com/gke-os-distribution": ("In", ["ubuntu"]),
        "cloud.google.com/gke-accelerator": ("Exists", None),
        "cloud.google.com/gke-gpu-driver-version": ("DoesNotExist", None),
    }
    assert conditions(installer_pod(cos))["cloud.google.com/gke-os-distribution"] == ("In", ["cos"])


def test_no_image_is_pulled_for_the_installation() -> None:
    for distribution in DISTRIBUTIONS:
        first = installer_pod(Installer(distribution, None, ("a",)))["initContainers"][0]
        assert first["imagePullPolicy"] == "Never"
        assert first["securityContext"] == {"privileged": True}


def test_a_version_is_handed_on() -> None:
    ubuntu = installer_pod(Installer("ubuntu", "570.124.06", ("a",)))["initContainers"][0]
    assert ubuntu["env"] == [{"name": "NVIDIA_DRIVER_VERSION", "value": "570.124.06"}]
    cos = installer_pod(Installer("cos", "latest", ("a",)))["initContainers"][0]
    assert "cos-gpu-installer install --version=latest\n" in cos["command"][-1]
    assert "--version" not in installer_pod(Installer("cos", None, ("a",)))["initContainers"][0]["command"][-1]


def test_a_failed_installation_fails_the_pod() -> None:
    """The script's last command would otherwise decide, and the node would count as ready for GPU pods."""
    (_, _, script) = installer_pod(Installer("cos", None, ("a",)))["initContainers"][0]["command"]
    stubs = "lsmod() { :; }; chmod() { :; }; "
    failing = stubs + script.replace("/cos-gpu-installer", "false")
    working = stubs + script.replace("/cos-gpu-installer", "true")

    assert subprocess.run(["bash", "-c", failing], check=False).returncode != 0
    assert subprocess.run(["bash", "-c", working], check=False).returncode == 0


def test_partitions_are_made_on_cos() -> None:
    assert [one["name"] for one in installer_pod(Installer("cos", None, ("a",)))["initContainers"]] == [
        "nvidia-driver-installer",
        "partition-gpus",
    ]


def test_every_mounted_volume_is_there() -> None:
    for distribution in DISTRIBUTIONS:
        made = installer_pod(Installer(distribution, None, ("a",)))
        mounted = {mount["name"] for one in made["initContainers"] for mount in one["volumeMounts"]}
        assert mounted == {volume["name"] for volume in made["volumes"]}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_no_taint_keeps_the_installer_off_its_nodes(distribution: Any) -> None:
    """GPU nodes are tainted, and so are nodes whose driver is not ready."""
    assert installer_pod(Installer(distribution, None, ("a",)))["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_daemon_set_selects_its_own_pods_only(distribution: Any) -> None:
    named = [Installer(distribution, version, ("a",)) for version in (None, "570.124.06")]
    first, second = (Objects(installer_objects(each)).body("DaemonSet", each.name)["spec"] for each in named)

    assert first["selector"]["matchLabels"] == first["template"]["metadata"]["labels"]
    assert not first["selector"]["matchLabels"].items() <= second["template"]["metadata"]["labels"].items()
