"""NVIDIA drivers on GPU pools: installed by GKE, by Google's installer DaemonSet, or by somebody else.

The installer runs only on the pools that ask for it, and each image has its own: pools with Container-Optimized OS
and with Ubuntu live side by side. The GPU Operator and drivers inside custom images are out of scope: `NONE` leaves
the nodes to them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import model_validator

from persia_infra.spec.base import Finding, Spec, matching, refuse

if TYPE_CHECKING:
    from persia_infra.gke.pools import NodePoolSpec

Image = Literal["COS_CONTAINERD", "UBUNTU_CONTAINERD"]
Distribution = Literal["cos", "ubuntu"]

INSTALLER_CPU = "150m"
"""What the installer asks for on each node, and therefore jobs cannot."""


class DriverSpec(Spec):
    """How the GPUs of a pool get their driver."""

    install: Literal["DEFAULT", "LATEST", "INSTALLER", "NONE"] = "DEFAULT"
    """`DEFAULT` and `LATEST` are GKE's; `INSTALLER` turns them off and runs Google's DaemonSet instead."""
    version: (
        Annotated[
            str, matching(r"latest|\d+(\.\d+){1,2}", 'no driver version; write one such as "570.124.06", or latest')
        ]
        | None
    ) = None
    """Of the installer's driver; the one that the node image was tested with when absent."""

    @property
    def gke_version(self) -> str:
        """The word that GKE has for it."""
        return self.install if self.install in ("DEFAULT", "LATEST") else "INSTALLATION_DISABLED"

    @model_validator(mode="after")
    def _version_of_the_installer(self) -> Self:
        if self.version and self.install != "INSTALLER":
            refuse(
                [
                    (
                        ("version",),
                        f"has no effect with install: {self.install}, where GKE chooses; "
                        "remove it, or write install: INSTALLER",
                    )
                ]
            )
        return self


@dataclass(frozen=True)
class Installer:
    """One installer DaemonSet and the pools that it serves."""

    distribution: Distribution
    version: str | None
    pools: tuple[str, ...]

    @property
    def name(self) -> str:
        """Distinct for each image and version, unlike the upstream manifests, which overwrite one another."""
        ending = f"-{self.version.replace('.', '-')}" if self.version else ""
        return f"nvidia-driver-installer-{self.distribution}{ending}"


def installers(pools: "Mapping[str, NodePoolSpec]") -> list[Installer]:
    """The DaemonSets that these pools need: one for each image and version among those that ask for it."""
    served: dict[tuple[Distribution, str | None], list[str]] = {}
    for name, pool in pools.items():
        if pool.has_gpus and pool.driver.install == "INSTALLER":
            served.setdefault((distribution_of(pool.image), pool.driver.version), []).append(name)
    return [
        Installer(distribution, version, tuple(names))
        for (distribution, version), names in sorted(served.items(), key=lambda one: (one[0][0], one[0][1] or ""))
    ]


def distribution_of(image: Image) -> Distribution:
    """The word that GKE labels nodes of that image with."""
    return "ubuntu" if image == "UBUNTU_CONTAINERD" else "cos"


def driver_findings(driver: DriverSpec, image: Image, *, partitioned: bool) -> Iterator[Finding]:
    """What a pool's image and the way of installing do not allow together."""
    ubuntu = distribution_of(image) == "ubuntu"
    if ubuntu and driver.install == "LATEST":
        yield (
            ("driver", "install"),
            "LATEST exists for Container-Optimized OS only, so GKE would refuse the pool; "
            "write DEFAULT, or image: COS_CONTAINERD",
        )
    if ubuntu and driver.version == "latest":
        yield (
            ("driver", "version"),
            "the installer for Ubuntu knows no latest, so its pods would fail on every node; write a number",
        )
    if ubuntu and driver.install == "INSTALLER" and partitioned:
        yield (
            ("driver", "install"),
            "the installer for Ubuntu does not partition GPUs, so the nodes would offer whole ones; "
            "write DEFAULT, or image: COS_CONTAINERD",
        )
