"""NVIDIA drivers on GPU pools: installed by GKE, by Google's installer DaemonSet, or by somebody else.

The installer runs only on the pools that ask for it. Each node image has its own installer, so one cluster can have
pools with Container-Optimized OS and pools with Ubuntu. The GPU Operator and drivers inside custom images are out of
scope: with `NONE`, nodes are left to them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import model_validator

from persia_infra.spec.base import Finding, Spec, matching, refuse

if TYPE_CHECKING:  # pools.py imports this module
    from persia_infra.gke.pools import NodePoolSpec

Image = Literal["COS_CONTAINERD", "UBUNTU_CONTAINERD"]
Distribution = Literal["cos", "ubuntu"]

INSTALLER_CPU = "150m"
"""CPU that the installer requests on each node, which jobs therefore cannot use."""


class DriverSpec(Spec):
    """How the driver for a pool's GPUs is installed."""

    install: Literal["DEFAULT", "LATEST", "INSTALLER", "NONE"] = "DEFAULT"
    """Who installs the driver: GKE (`DEFAULT`, `LATEST`), Google's DaemonSet (`INSTALLER`), or you (`NONE`)."""
    version: (
        Annotated[str, matching(r"latest|\d+(\.\d+){1,2}", 'driver version; write one such as "570.124.06", or latest')]
        | None
    ) = None
    """The driver version for `INSTALLER`; by default the one that the node image was tested with."""

    @property
    def gke_version(self) -> str:
        """The driver version that GKE itself installs, as its API spells it."""
        return self.install if self.install in ("DEFAULT", "LATEST") else "INSTALLATION_DISABLED"

    @model_validator(mode="after")
    def _version_needs_the_installer(self) -> Self:
        if self.version and self.install != "INSTALLER":
            refuse(
                [
                    (
                        ("version",),
                        f"has no effect with install: {self.install}; remove it, or write install: INSTALLER",
                    )
                ]
            )
        return self


@dataclass(frozen=True)
class Installer:
    """One installer DaemonSet and the pools that it runs on."""

    distribution: Distribution
    """The operating system of the nodes."""
    version: str | None
    """The driver version; None for the one that the node image was tested with."""
    pools: tuple[str, ...]
    """The names of the pools."""

    @property
    def name(self) -> str:
        """The DaemonSet's name, unique per image and version; the upstream manifests all share one name."""
        suffix = f"-{self.version.replace('.', '-')}" if self.version else ""
        return f"nvidia-driver-installer-{self.distribution}{suffix}"


def installers(pools: "Mapping[str, NodePoolSpec]") -> list[Installer]:
    """Returns the DaemonSets that these pools need: one per image and driver version."""
    pools_by_installer: dict[tuple[Distribution, str | None], list[str]] = {}
    for name, pool in pools.items():
        if pool.has_gpus and pool.driver.install == "INSTALLER":
            pools_by_installer.setdefault((distribution_of(pool.image), pool.driver.version), []).append(name)
    needed = [
        Installer(distribution, version, tuple(names)) for (distribution, version), names in pools_by_installer.items()
    ]
    return sorted(needed, key=lambda installer: (installer.distribution, installer.version or ""))


def distribution_of(image: Image) -> Distribution:
    """Returns the value of the node label `cloud.google.com/gke-os-distribution` for an image."""
    return "ubuntu" if image == "UBUNTU_CONTAINERD" else "cos"


def driver_findings(driver: DriverSpec, image: Image, *, partitioned: bool) -> Iterator[Finding]:
    """Checks which ways to install the driver the pool's image supports."""
    ubuntu = distribution_of(image) == "ubuntu"
    if ubuntu and driver.install == "LATEST":
        yield (
            ("driver", "install"),
            "LATEST is available on Container-Optimized OS only, so GKE would refuse the pool; "
            "write DEFAULT, or image: COS_CONTAINERD",
        )
    if ubuntu and driver.version == "latest":
        yield (
            ("driver", "version"),
            "latest is not supported by the installer for Ubuntu, so its pods would fail on every node; "
            "write a version number",
        )
    if ubuntu and driver.install == "INSTALLER" and partitioned:
        yield (
            ("driver", "install"),
            "INSTALLER does not partition GPUs on Ubuntu, so the nodes would offer whole GPUs; "
            "write DEFAULT, or image: COS_CONTAINERD",
        )
