"""A private GKE cluster.

Private nodes, shielded nodes, Workload Identity and Dataplane V2 are always on: there is no key for them. Autopilot,
node auto-provisioning and fleets are out of scope.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from persia_infra.gke.maintenance import Maintenance
from persia_infra.spec.base import Cidr, Finding, Spec, matching, refuse

Zone = Annotated[str, matching(r"[a-z]+-[a-z]+[0-9]+-[a-z]", "no Google Cloud zone; write one such as us-central1-a")]

_EVERYWHERE = "0.0.0.0/0"
_BILL_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_BILL_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


class AuthorizedNetwork(Spec):
    """Addresses that may reach the control plane."""

    cidr: Cidr
    name: str | None = None


class Monitoring(Spec):
    """Metrics that GKE collects; Google Cloud charges for the samples of managed Prometheus."""

    managed_prometheus: bool = True
    dcgm: bool = True
    """GPU metrics: utilization, memory, temperature, errors."""

    @model_validator(mode="after")
    def _dcgm_goes_to_prometheus(self) -> Self:
        if self.dcgm and not self.managed_prometheus:
            refuse(
                [
                    (
                        ("dcgm",),
                        "needs managedPrometheus, which its metrics are kept in, so GKE would refuse the cluster; "
                        "write dcgm: false as well, or leave both on",
                    )
                ]
            )
        return self


class ClusterSpec(Spec):
    """The control plane, and the zones that nodes may be in."""

    zones: list[Zone] = Field(min_length=1)
    regional: bool = True
    """A control plane in three zones; false for one in the first zone only, without its fee on small set-ups."""
    release_channel: Literal["RAPID", "REGULAR", "STABLE"] = "REGULAR"
    control_plane_cidr: Cidr = "172.16.0.0/28"
    authorized_networks: list[AuthorizedNetwork] = Field(default=[])
    open_to_internet: bool = False
    private_endpoint: bool = False
    """No public address at all: reachable from inside the VPC only."""
    dns_endpoint: bool = False
    """Reach the control plane by its DNS name: IAM decides who may, from anywhere, without a VPN."""
    multi_networking: bool = False
    """Let pools have several network interfaces; fixed once the cluster is there."""
    monitoring: Monitoring = Monitoring()
    cost_allocation: bool = True
    """Split the bill by namespace and label."""
    csi_drivers: list[Literal["FILESTORE", "GCS_FUSE", "LUSTRE"]] = Field(default=[])
    """Volumes besides persistent disks."""
    image_streaming: bool = False
    """Start containers while their image is still being pulled, from Artifact Registry."""
    maintenance: Maintenance = Maintenance()
    secrets_key: (
        Annotated[
            str,
            matching(
                r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+",
                "no key; write projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
            ),
        ]
        | None
    ) = None
    """Encrypt Kubernetes Secrets with this Cloud KMS key; GKE's service agent must be allowed to use it."""
    notification_topic: (
        Annotated[
            str, matching(r"projects/[^/]+/topics/[^/]+", "no Pub/Sub topic; write projects/PROJECT/topics/TOPIC")
        ]
        | None
    ) = None
    """Hears of upgrades and security bulletins."""
    labels: dict[str, str] = Field(default={})
    """On the bill."""
    enable_apis: bool = True
    """Turn on the Google Cloud APIs that it needs; false where somebody else does."""
    deletion_protection: bool = True

    @property
    def further_apis(self) -> set[str]:
        """Google Cloud APIs that its options need besides GKE's own."""
        wanted = {
            "artifactregistry": True,
            "containerfilesystem": self.image_streaming,
            "file": "FILESTORE" in self.csi_drivers,
            "lustre": "LUSTRE" in self.csi_drivers,
            "storage": "GCS_FUSE" in self.csi_drivers,
            "cloudkms": self.secrets_key is not None,
            "pubsub": self.notification_topic is not None,
            "monitoring": True,
            "logging": True,
        }
        return {api for api, on in wanted.items() if on}

    @property
    def reachable_by_address(self) -> bool:
        """Whether the control plane answers at an IP address, besides its DNS name."""
        return bool(self.authorized_networks) or self.private_endpoint or self.open_to_internet

    @model_validator(mode="after")
    def _reachable_on_purpose(self) -> Self:
        refuse([*self._access_findings(), *self._findings()])
        return self

    def _access_findings(self) -> Iterator[Finding]:
        ways = "list the ranges of your offices or VPN, or say openToInternet: true"
        if not self.reachable_by_address and not self.dns_endpoint:
            yield (
                ("authorizedNetworks",),
                f"is empty, so the whole internet could reach the control plane; {ways}, "
                "dnsEndpoint: true, or privateEndpoint: true",
            )
        for index, network in enumerate(self.authorized_networks):
            if network.cidr == _EVERYWHERE and not self.open_to_internet:
                yield (
                    ("authorizedNetworks", index, "cidr"),
                    f"{_EVERYWHERE} lets the whole internet reach the control plane; {ways}",
                )
        if self.open_to_internet and self.private_endpoint:
            yield (
                ("openToInternet",),
                "cannot hold together with privateEndpoint: true, which leaves no public address; remove one",
            )

    def _findings(self) -> Iterator[Finding]:
        if not self.control_plane_cidr.endswith("/28"):
            yield (
                ("controlPlaneCidr",),
                "GKE takes a /28 for the control plane and nothing else, such as 172.16.0.0/28",
            )
        for index, zone in enumerate(self.zones):
            if zone in self.zones[:index]:
                yield ("zones", index), f"{zone} is given twice; remove one"
        for key, value in self.labels.items():
            if not _BILL_LABEL_KEY.fullmatch(key) or not _BILL_LABEL_VALUE.fullmatch(value):
                yield (
                    ("labels", key),
                    "is no label of Google Cloud's; use at most 63 lower-case letters, digits, '-' and '_', "
                    "with a letter first in the key",
                )
        for index, driver in enumerate(self.csi_drivers):
            if driver in self.csi_drivers[:index]:
                yield ("csiDrivers", index), f"{driver} is given twice; remove one"
