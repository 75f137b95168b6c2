"""The network of an environment: a VPC of its own, or an existing one.

A VPC of its own has one subnet for nodes, address ranges for pods and Services, and access to the internet through
Cloud NAT. Peering, VPN, shared VPC grants and DNS zones are out of scope.
"""

import ipaddress
from collections.abc import Iterator
from itertools import combinations
from typing import Annotated, Self

from pydantic import Field, model_validator

from persia_infra.spec.base import Cidr, Finding, Spec, refuse

PODS_PER_NODE = 110
_RANGES = ("nodes_cidr", "pods_cidr", "services_cidr")
_ADDRESSES_KEPT_BY_GOOGLE = 4

Port = Annotated[int, Field(ge=1, le=65535)]


def pod_addresses_per_node(max_pods: int) -> int:
    """Returns how many addresses GKE sets aside per node: twice the pods, rounded up to a power of two."""
    return 1 << (2 * max_pods - 1).bit_length()


class ExistingNetwork(Spec):
    """A VPC that somebody else manages, with address ranges for the cluster and access to the internet."""

    network: str
    """The name of the VPC network."""
    subnet: str
    """The name of the subnet for nodes, in the environment's region."""
    pods_range: str
    """The name of the subnet's secondary range for pods."""
    services_range: str
    """The name of the subnet's secondary range for Services."""
    project: str | None = None
    """The host project of a shared VPC; the environment's own project by default."""


class NetworkSpec(Spec):
    """Address ranges of the environment; the defaults have room for 1,024 nodes with 110 pods each."""

    nodes_cidr: Cidr = "10.0.0.0/20"
    """The address range of the nodes; `10.0.0.0/20` by default."""
    pods_cidr: Cidr = "10.4.0.0/14"
    """The address range of the pods; `10.4.0.0/14` by default."""
    services_cidr: Cidr = "10.8.0.0/20"
    """The address range of the Services; `10.8.0.0/20` by default."""
    existing: ExistingNetwork | None = None
    """An existing network to use instead of creating one."""
    webhook_ports: list[Port] = Field(default=[8443, 9443])
    """Ports of nodes that the control plane may reach, for the admission webhooks of operators; 8443 and 9443."""

    @property
    def node_addresses(self) -> int:
        """How many nodes the node range has room for."""
        return ipaddress.IPv4Network(self.nodes_cidr).num_addresses - _ADDRESSES_KEPT_BY_GOOGLE

    @property
    def pod_addresses(self) -> int:
        """How many addresses the pod range has."""
        return ipaddress.IPv4Network(self.pods_cidr).num_addresses

    @property
    def ranges(self) -> dict[str, ipaddress.IPv4Network]:
        """The address ranges to create, by key; empty for an existing network."""
        if self.existing:
            return {}
        return {_key(field): ipaddress.IPv4Network(getattr(self, field)) for field in _RANGES}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        if self.existing:
            for field in _RANGES:
                if field in self.model_fields_set:
                    yield (
                        (_key(field),),
                        "has no effect together with existing, whose subnet has its own ranges; remove it",
                    )
        for (first, first_range), (second, second_range) in combinations(self.ranges.items(), 2):
            if first_range.overlaps(second_range):
                yield (
                    (second,),
                    f"overlaps {first}, so addresses would be ambiguous and Google Cloud would refuse it; "
                    "choose another range",
                )


def _key(field: str) -> str:
    return NetworkSpec.model_fields[field].alias or field
