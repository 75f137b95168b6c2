"""The DaemonSet that installs NVIDIA's driver on GPU nodes where GKE does not."""

from typing import Final

from persia_infra.gke.drivers import INSTALLER_CPU, Installer
from persia_infra.gke.pools import POOL_LABEL
from persia_infra.kube.objects import Body, KubeObject, ObjectGroup, metadata, object_labels, selector_labels

_APP: Final = "nvidia-driver-installer"
_NAMESPACE: Final = "kube-system"
"""The namespace in which pods of the priority system-node-critical need no quota."""
_PAUSE: Final = "gke.gcr.io/pause:3.8@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"
_PARTITION: Final = (
    "gcr.io/gke-release/nvidia-partition-gpu@sha256:de12f85ebfb4fb6c1893cd30c23aab662a72fa0448f97ef74fccb82d7522ef17"
)
_UBUNTU_INSTALLER: Final = "gke-nvidia-installer:fixed"
_COS_INSTALLER: Final = "cos-nvidia-installer:fixed"
"""Both installers are part of the node images, so nothing is pulled."""
_HOST_INSTALL: Final = "/home/kubernetes/bin/nvidia"
_COS_SCRIPT: Final = """\
set -eu
if lsmod | grep -q nvidia; then
  echo "the driver is loaded already"
  exit 0
fi
/cos-gpu-installer install{version}
chmod 755 /root{folder}
"""
_RESOURCES: Final = {"requests": {"cpu": INSTALLER_CPU}}

_Mounts = dict[str, tuple[str, str]]
"""By volume: the folder of the node, and where the container sees it."""


def installer_objects(installer: Installer) -> ObjectGroup:
    """Returns the DaemonSet that installs the driver once on each node of its pools, then sleeps.

    Its name and its nodes are its own, so that installers for other images or versions can run beside it.
    """
    selector = selector_labels(_APP, installer.name, "driver-installer")
    body = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(installer.name, _NAMESPACE, object_labels(_APP, installer.name, "driver-installer")),
        "spec": {
            "selector": {"matchLabels": selector},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": selector}, "spec": installer_pod(installer)},
        },
    }
    return ObjectGroup("DriverInstaller", (KubeObject("", body),), outputs={"daemonSet": installer.name})


def installer_pod(installer: Installer) -> Body:
    """The pod of the DaemonSet."""
    parts = _cos_parts(installer) if installer.distribution == "cos" else _ubuntu_parts(installer)
    return {
        "priorityClassName": "system-node-critical",
        "affinity": _only_on(installer),
        "tolerations": [{"operator": "Exists"}],
        "automountServiceAccountToken": False,
        "containers": [{"name": "pause", "image": _PAUSE}],
        **parts,
    }


def _ubuntu_parts(installer: Installer) -> Body:
    mounts = {"boot": ("/boot", "/boot"), "dev": ("/dev", "/dev"), "root-mount": ("/", "/root")}
    container = _privileged(_APP, _UBUNTU_INSTALLER, mounts)
    container["imagePullPolicy"] = "Never"
    if installer.version:
        container["env"] = [{"name": "NVIDIA_DRIVER_VERSION", "value": installer.version}]
    return {"volumes": _volumes(mounts), "initContainers": [container]}


def _cos_parts(installer: Installer) -> Body:
    install = {
        "dev": ("/dev", "/dev"),
        "nvidia-install-dir-host": (_HOST_INSTALL, "/usr/local/nvidia"),
        "vulkan-icd-mount": (f"{_HOST_INSTALL}/vulkan/icd.d", "/etc/vulkan/icd.d"),
        "root-mount": ("/", "/root"),
        "cos-tools": ("/var/lib/cos-tools", "/build/cos-tools"),
    }
    partition = {
        "dev": install["dev"],
        "nvidia-install-dir-host": install["nvidia-install-dir-host"],
        "nvidia-config": ("/etc/nvidia", "/etc/nvidia"),
    }
    environment = {
        "NVIDIA_INSTALL_DIR_HOST": _HOST_INSTALL,
        "NVIDIA_INSTALL_DIR_CONTAINER": "/usr/local/nvidia",
        "VULKAN_ICD_DIR_HOST": f"{_HOST_INSTALL}/vulkan/icd.d",
        "VULKAN_ICD_DIR_CONTAINER": "/etc/vulkan/icd.d",
        "ROOT_MOUNT_DIR": "/root",
        "COS_TOOLS_DIR_HOST": "/var/lib/cos-tools",
        "COS_TOOLS_DIR_CONTAINER": "/build/cos-tools",
    }
    version = f" --version={installer.version}" if installer.version else ""
    script = _COS_SCRIPT.format(version=version, folder=_HOST_INSTALL)
    installs = _privileged(_APP, _COS_INSTALLER, install) | {
        "imagePullPolicy": "Never",
        "command": ["bash", "-c", script],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
    }
    partitions = _privileged("partition-gpus", _PARTITION, partition) | {
        "env": [{"name": "LD_LIBRARY_PATH", "value": "/usr/local/nvidia/lib64"}]
    }
    return {
        "hostNetwork": True,
        "hostPID": True,
        "volumes": _volumes({**install, **partition}),
        "initContainers": [installs, partitions],
    }


def _privileged(name: str, image: str, mounts: _Mounts) -> Body:
    """A container that may change the node, which loading a kernel module takes."""
    return {
        "name": name,
        "image": image,
        "resources": _RESOURCES,
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": volume, "mountPath": inside} for volume, (_, inside) in mounts.items()],
    }


def _volumes(mounts: _Mounts) -> list[Body]:
    return [{"name": volume, "hostPath": {"path": host}} for volume, (host, _) in mounts.items()]


def _only_on(installer: Installer) -> Body:
    """The pools' GPU nodes on which GKE installs no driver; GKE sets the labels."""
    wanted: list[Body] = [
        {"key": POOL_LABEL, "operator": "In", "values": list(installer.pools)},
        {"key": "cloud.google.com/gke-os-distribution", "operator": "In", "values": [installer.distribution]},
        {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"},
        {"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"},
    ]
    if installer.distribution == "cos":
        wanted.append({"key": "cloud.google.com/gke-confidential-nodes-instance-type", "operator": "DoesNotExist"})
    terms = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
