"""VPC, subnet, and access to the internet for nodes without public addresses."""

import pulumi
from pulumi_gcp import compute

from persia_components._children import child_options, token
from persia_infra.gke.network import ExistingNetwork, NetworkSpec

_PODS_RANGE = "pods"
_SERVICES_RANGE = "services"


class Network(pulumi.ComponentResource):
    """A VPC with one subnet for nodes, address ranges for pods and Services, and Cloud NAT; or an existing VPC.

    Nothing is opened to connections from the internet.
    """

    network_id: pulumi.Output[str]
    """The id of the VPC."""
    subnet_id: pulumi.Output[str]
    """The id of the subnet for nodes."""
    pods_range: str
    """The name of the subnet's secondary range for pods."""
    services_range: str
    """The name of the subnet's secondary range for Services."""

    def __init__(
        self,
        name: str,
        spec: NetworkSpec,
        *,
        project: str,
        region: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(token("Network"), name, None, opts)
        if spec.existing:
            self._refer_to(spec.existing, project, region)
        else:
            self._create(name, spec, project, region)
        self.register_outputs({"networkId": self.network_id, "subnetId": self.subnet_id})

    def _refer_to(self, existing: ExistingNetwork, project: str, region: str) -> None:
        owner = existing.project or project
        self.pods_range, self.services_range = existing.pods_range, existing.services_range
        self.network_id = pulumi.Output.from_input(f"projects/{owner}/global/networks/{existing.network}")
        self.subnet_id = pulumi.Output.from_input(f"projects/{owner}/regions/{region}/subnetworks/{existing.subnet}")

    def _create(self, name: str, spec: NetworkSpec, project: str, region: str) -> None:
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
        self.pods_range, self.services_range = _PODS_RANGE, _SERVICES_RANGE
