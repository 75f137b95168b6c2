"""VPC, subnet and the way out to the internet for nodes without public addresses."""

from typing import TYPE_CHECKING

import pulumi
from pulumi_gcp import compute

from persia_components._children import child_options, token

if TYPE_CHECKING:
    from persia_infra.gke.network import NetworkSpec

_PODS_RANGE = "pods"
_SERVICES_RANGE = "services"


class Network(pulumi.ComponentResource):
    """A VPC with one subnet for nodes, ranges for pods and Services, and Cloud NAT; or one that is there already.

    Nothing is opened to the internet.
    """

    network_id: pulumi.Output[str]
    subnet_id: pulumi.Output[str]
    pods_range: str
    services_range: str

    def __init__(
        self,
        name: str,
        spec: "NetworkSpec",
        *,
        project: str,
        region: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(token("Network"), name, None, opts)
        self.pods_range, self.services_range = _PODS_RANGE, _SERVICES_RANGE
        if there := spec.existing:
            owner = there.project or project
            self.pods_range, self.services_range = there.pods_range, there.services_range
            self.network_id = pulumi.Output.from_input(f"projects/{owner}/global/networks/{there.network}")
            self.subnet_id = pulumi.Output.from_input(f"projects/{owner}/regions/{region}/subnetworks/{there.subnet}")
        else:
            self._make(name, spec, project, region)
        self.register_outputs({"networkId": self.network_id, "subnetId": self.subnet_id})

    def _make(self, name: str, spec: "NetworkSpec", project: str, region: str) -> None:
        vpc = compute.Network(
            name,
            project=project,
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            opts=child_options(self),
        )
        subnet = compute.Subnetwork(
            f"{name}-nodes",
            project=project,
            region=region,
            network=vpc.id,
            ip_cidr_range=spec.nodes_cidr,
            private_ip_google_access=True,
            secondary_ip_ranges=[
                compute.SubnetworkSecondaryIpRangeArgs(range_name=_PODS_RANGE, ip_cidr_range=spec.pods_cidr),
                compute.SubnetworkSecondaryIpRangeArgs(range_name=_SERVICES_RANGE, ip_cidr_range=spec.services_cidr),
            ],
            opts=child_options(self),
        )
        router = compute.Router(
            f"{name}-router", project=project, region=region, network=vpc.id, opts=child_options(self)
        )
        compute.RouterNat(
            f"{name}-nat",
            project=project,
            region=region,
            router=router.name,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
            log_config=compute.RouterNatLogConfigArgs(enable=True, filter="ERRORS_ONLY"),
            opts=child_options(self),
        )
        self.network_id = vpc.id
        self.subnet_id = subnet.id
