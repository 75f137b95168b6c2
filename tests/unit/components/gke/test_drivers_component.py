"""Driver installers as the engine is asked for them."""

from collections.abc import Callable
from typing import Any

from persia_components import DriverInstaller, Environment

from persia_infra.gke.driver_objects import installer_pod
from persia_infra.gke.drivers import Installer
from persia_infra.stack import parse_environment

Record = Callable[..., Any]


def test_the_installer_is_one_daemon_set_below_its_component(record: Record) -> None:
    installer = Installer("cos", None, ("a",))
    recording = record(lambda: DriverInstaller("drivers", installer))

    daemon_set = recording.one("DaemonSet", "drivers")
    assert recording.one("DriverInstaller", "drivers").parent == "p-s"
    assert daemon_set.parent == "drivers"
    assert daemon_set.inputs["spec"]["template"]["spec"] == installer_pod(installer)
    assert recording.outputs["drivers"] == {"daemonSet": "nvidia-driver-installer-cos"}


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
