"""A private GKE cluster.

Private nodes, shielded nodes, Workload Identity and Dataplane V2 are always on: there are no keys for them.
Autopilot, node auto-provisioning and fleets are out of scope.
"""

import ipaddress
import re
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from persia_infra.gke.maintenance import Maintenance
from persia_infra.spec.base import Cidr, Finding, Spec, matching, refuse

Zone = Annotated[str, matching(r"[a-z]+-[a-z]+[0-9]+-[a-z]", "Google Cloud zone; write one such as us-central1-a")]
KmsKey = Annotated[
    str,
    matching(
        r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+",
        "Cloud KMS key; write projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
    ),
]
PubSubTopic = Annotated[
    str, matching(r"projects/[^/]+/topics/[^/]+", "Pub/Sub topic; write projects/PROJECT/topics/TOPIC")
]

_WHOLE_INTERNET = "0.0.0.0/0"
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


class AuthorizedNetwork(Spec):
    """Addresses that may reach the control plane."""

    cidr: Cidr
    """The address range."""
    name: str | None = None
    """A name for the range, shown in the Google Cloud console."""


class Monitoring(Spec):
    """Metrics that GKE collects; Google Cloud charges for the samples of managed Prometheus."""

    managed_prometheus: bool = True
    """Whether Google Cloud Managed Service for Prometheus collects metrics; on by default."""
    dcgm: bool = True
    """Whether GPU metrics (utilization, memory, temperature, errors) are collected; on by default."""

    @model_validator(mode="after")
    def _dcgm_needs_prometheus(self) -> Self:
        if self.dcgm and not self.managed_prometheus:
            refuse(
                [
                    (
                        ("dcgm",),
                        "needs managedPrometheus, which stores its metrics, so GKE would refuse the cluster; "
                        "write dcgm: false as well, or leave both on",
                    )
                ]
            )
        return self


class ClusterSpec(Spec):
    """The control plane, and the zones in which nodes may run."""

    zones: list[Zone] = Field(min_length=1)
    """The zones of the nodes; a pool can have its own."""
    regional: bool = True
    """Whether the control plane runs in three zones (default) or only in the first of `zones`."""
    release_channel: Literal["RAPID", "REGULAR", "STABLE"] = "REGULAR"
    """How early the cluster gets new GKE versions; `REGULAR` by default."""
    control_plane_cidr: Cidr = "172.16.0.0/28"
    """The address range of the control plane, a /28; `172.16.0.0/28` by default."""
    authorized_networks: list[AuthorizedNetwork] = Field(default=[])
    """Address ranges from which the control plane can be reached; none by default."""
    open_to_internet: bool = False
    """Whether any address may reach the control plane, which still checks credentials; off by default."""
    private_endpoint: bool = False
    """Whether the control plane has no public address and is reachable from inside the VPC only; off by default."""
    dns_endpoint: bool = False
    """Whether the control plane can be reached by its DNS name from anywhere, as far as IAM allows; off by default."""
    multi_networking: bool = False
    """Whether pools can have several network interfaces; off by default, cannot be changed later."""
    monitoring: Monitoring = Monitoring.defaults()
    """Which metrics GKE collects."""
    cost_allocation: bool = True
    """Whether the bill shows costs by namespace and label; on by default."""
    csi_drivers: list[Literal["FILESTORE", "GCS_FUSE", "LUSTRE"]] = Field(default=[])
    """Drivers for volumes other than persistent disks; none by default."""
    image_streaming: bool = False
    """Whether containers start while their image is still being pulled from Artifact Registry; off by default."""
    maintenance: Maintenance = Maintenance.defaults()
    """When GKE may upgrade the cluster."""
    secrets_key: KmsKey | None = None
    """The Cloud KMS key that encrypts Kubernetes Secrets; GKE's service agent must be allowed to use it."""
    notification_topic: PubSubTopic | None = None
    """The Pub/Sub topic that receives notices of upgrades and security bulletins; none by default."""
    labels: dict[str, str] = Field(default={})
    """Google Cloud labels of the cluster, which also appear on the bill; none by default."""
    enable_apis: bool = True
    """Whether to turn on the Google Cloud APIs that the environment needs; on by default."""
    deletion_protection: bool = True
    """Whether the cluster is protected from being deleted or replaced; on by default."""

    @property
    def further_apis(self) -> set[str]:
        """The Google Cloud APIs that the cluster's options need in addition to GKE's own."""
        needed = {
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
        return {api for api, is_needed in needed.items() if is_needed}

    @property
    def reachable_by_address(self) -> bool:
        """Whether the control plane answers at an IP address, not only at its DNS name."""
        return bool(self.authorized_networks) or self.private_endpoint or self.open_to_internet

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse([*self._access_findings(), *self._findings()])
        return self

    def _access_findings(self) -> Iterator[Finding]:
        fix = "list the address ranges of your offices or VPN, or write openToInternet: true"
        if not self.reachable_by_address and not self.dns_endpoint:
            yield (
                ("authorizedNetworks",),
                f"is empty, so the whole internet could reach the control plane; {fix}, "
                "dnsEndpoint: true or privateEndpoint: true",
            )
        ranges = [ipaddress.IPv4Network(network.cidr) for network in self.authorized_networks]
        if not self.open_to_internet and _WHOLE_INTERNET in map(str, ipaddress.collapse_addresses(ranges)):
            whole = [index for index, one in enumerate(ranges) if str(one) == _WHOLE_INTERNET]
            place = ("authorizedNetworks", whole[0], "cidr") if whole else ("authorizedNetworks",)
            what = _WHOLE_INTERNET if whole else "together these ranges are all addresses: this"
            yield place, f"{what} lets the whole internet reach the control plane; {fix}"
        if self.open_to_internet and self.private_endpoint:
            yield (
                ("openToInternet",),
                "cannot be combined with privateEndpoint: true, which leaves no public address; remove one of them",
            )

        if self.dns_endpoint and self.private_endpoint:
            yield (
                ("dnsEndpoint",),
                "cannot be combined with privateEndpoint: true, because its name is reachable from the internet, with "
                "IAM alone in front of it; remove one of them",
            )

    def _findings(self) -> Iterator[Finding]:
        if not self.control_plane_cidr.endswith("/28"):
            yield (
                ("controlPlaneCidr",),
                "must be a /28, the only size that GKE accepts for a control plane; write one such as 172.16.0.0/28",
            )
        for index, zone in enumerate(self.zones):
            if zone in self.zones[:index]:
                yield ("zones", index), f"{zone} is listed twice; remove one of them"
        for key, value in self.labels.items():
            if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
                yield (
                    ("labels", key),
                    "is not a valid Google Cloud label, so the cluster would be refused; use at most 63 lower-case "
                    "letters, digits, '-' and '_', and start the key with a letter",
                )
        for index, driver in enumerate(self.csi_drivers):
            if driver in self.csi_drivers[:index]:
                yield ("csiDrivers", index), f"{driver} is listed twice; remove one of them"
