"""Google's NVIDIA driver installer for GPU nodes whose driver GKE does not install."""

from typing import TYPE_CHECKING

import pulumi
from pulumi_kubernetes import apps, core, meta

from persia_components._children import child_options, metadata, object_labels, selector_labels, token

if TYPE_CHECKING:
    from persia_infra.gke.drivers import Installer

_NAMESPACE = "kube-system"
"""Pods of priority system-node-critical are allowed here without a quota for them."""
_PAUSE = "gke.gcr.io/pause:3.8@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"
_PARTITION = (
    "gcr.io/gke-release/nvidia-partition-gpu@sha256:de12f85ebfb4fb6c1893cd30c23aab662a72fa0448f97ef74fccb82d7522ef17"
)
_UBUNTU_INSTALLER = "gke-nvidia-installer:fixed"
_COS_INSTALLER = "cos-nvidia-installer:fixed"
"""Both images are part of the node images, so nothing is pulled."""
_HOST_INSTALL = "/home/kubernetes/bin/nvidia"
_COS_SCRIPT = """\
set -eu
if lsmod | grep -q nvidia; then
  echo "the driver is loaded already"
  exit 0
fi
/cos-gpu-installer install{version}
chmod 755 /root{folder}
"""


class DriverInstaller(pulumi.ComponentResource):
    """A DaemonSet that installs the driver once on each node of its pools, then sleeps.

    Its name and its nodes are its own, so that installers for other images or versions can run beside it.
    """

    def __init__(self, name: str, spec: "Installer", *, opts: pulumi.ResourceOptions | None = None) -> None:
        from persia_infra.gke.drivers import INSTALLER_CPU

        super().__init__(token("DriverInstaller"), name, None, opts)
        selector = selector_labels("nvidia-driver-installer", spec.name, "driver-installer")
        resources = core.v1.ResourceRequirementsArgs(requests={"cpu": INSTALLER_CPU})
        apps.v1.DaemonSet(
            name,
            metadata=metadata(
                spec.name, _NAMESPACE, object_labels("nvidia-driver-installer", spec.name, "driver-installer")
            ),
            spec=apps.v1.DaemonSetSpecArgs(
                selector=meta.v1.LabelSelectorArgs(match_labels=selector),
                update_strategy=apps.v1.DaemonSetUpdateStrategyArgs(type="RollingUpdate"),
                template=core.v1.PodTemplateSpecArgs(
                    metadata=meta.v1.ObjectMetaArgs(labels=selector),
                    spec=(_cos_pod if spec.distribution == "cos" else _ubuntu_pod)(spec, resources),
                ),
            ),
            opts=child_options(self),
        )
        self.register_outputs({"daemonSet": spec.name})


def _ubuntu_pod(spec: "Installer", resources: "core.v1.ResourceRequirementsArgs") -> "core.v1.PodSpecArgs":
    mounts = {"boot": ("/boot", "/boot"), "dev": ("/dev", "/dev"), "root-mount": ("/", "/root")}
    version = [core.v1.EnvVarArgs(name="NVIDIA_DRIVER_VERSION", value=spec.version)] if spec.version else None
    return core.v1.PodSpecArgs(
        priority_class_name="system-node-critical",
        affinity=_only_on(spec),
        tolerations=[core.v1.TolerationArgs(operator="Exists")],
        automount_service_account_token=False,
        volumes=_volumes(mounts),
        init_containers=[
            core.v1.ContainerArgs(
                name="nvidia-driver-installer",
                image=_UBUNTU_INSTALLER,
                image_pull_policy="Never",
                resources=resources,
                security_context=core.v1.SecurityContextArgs(privileged=True),
                env=version,
                volume_mounts=_mounts(mounts),
            )
        ],
        containers=[core.v1.ContainerArgs(name="pause", image=_PAUSE)],
    )


def _cos_pod(spec: "Installer", resources: "core.v1.ResourceRequirementsArgs") -> "core.v1.PodSpecArgs":
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
    version = f" --version={spec.version}" if spec.version else ""
    return core.v1.PodSpecArgs(
        priority_class_name="system-node-critical",
        affinity=_only_on(spec),
        tolerations=[core.v1.TolerationArgs(operator="Exists")],
        automount_service_account_token=False,
        host_network=True,
        host_pid=True,
        volumes=_volumes({**install, **partition}),
        init_containers=[
            core.v1.ContainerArgs(
                name="nvidia-driver-installer",
                image=_COS_INSTALLER,
                image_pull_policy="Never",
                command=["bash", "-c", _COS_SCRIPT.format(version=version, folder=_HOST_INSTALL)],
                resources=resources,
                security_context=core.v1.SecurityContextArgs(privileged=True),
                env=[core.v1.EnvVarArgs(name=key, value=value) for key, value in environment.items()],
                volume_mounts=_mounts(install),
            ),
            core.v1.ContainerArgs(
                name="partition-gpus",
                image=_PARTITION,
                resources=resources,
                security_context=core.v1.SecurityContextArgs(privileged=True),
                env=[core.v1.EnvVarArgs(name="LD_LIBRARY_PATH", value="/usr/local/nvidia/lib64")],
                volume_mounts=_mounts(partition),
            ),
        ],
        containers=[core.v1.ContainerArgs(name="pause", image=_PAUSE)],
    )


def _only_on(spec: "Installer") -> "core.v1.AffinityArgs":
    """The pools' GPU nodes without a driver of GKE's; the labels are those that GKE sets."""
    from persia_infra.gke.pools import POOL_LABEL

    wanted: list[tuple[str, str, list[str] | None]] = [
        (POOL_LABEL, "In", list(spec.pools)),
        ("cloud.google.com/gke-os-distribution", "In", [spec.distribution]),
        ("cloud.google.com/gke-accelerator", "Exists", None),
        ("cloud.google.com/gke-gpu-driver-version", "DoesNotExist", None),
    ]
    if spec.distribution == "cos":
        wanted.append(("cloud.google.com/gke-confidential-nodes-instance-type", "DoesNotExist", None))
    return core.v1.AffinityArgs(
        node_affinity=core.v1.NodeAffinityArgs(
            required_during_scheduling_ignored_during_execution=core.v1.NodeSelectorArgs(
                node_selector_terms=[
                    core.v1.NodeSelectorTermArgs(
                        match_expressions=[
                            core.v1.NodeSelectorRequirementArgs(key=key, operator=operator, values=values)
                            for key, operator, values in wanted
                        ]
                    )
                ]
            )
        )
    )


def _volumes(mounts: dict[str, tuple[str, str]]) -> "list[core.v1.VolumeArgs]":
    return [
        core.v1.VolumeArgs(name=name, host_path=core.v1.HostPathVolumeSourceArgs(path=host))
        for name, (host, _) in mounts.items()
    ]


def _mounts(mounts: dict[str, tuple[str, str]]) -> "list[core.v1.VolumeMountArgs]":
    return [core.v1.VolumeMountArgs(name=name, mount_path=inside) for name, (_, inside) in mounts.items()]
