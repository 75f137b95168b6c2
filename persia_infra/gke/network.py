"""The network of an environment: a VPC of its own, or one that is there already.

A VPC of its own has one subnet for nodes, ranges for pods and Services, and a way out to the internet. Peering, VPN,
shared VPC grants and DNS zones are out of scope.
"""

import ipaddress
from collections.abc import Iterator
from itertools import combinations
from typing import Annotated, Self

from pydantic import Field, model_validator

from persia_infra.spec.base import Cidr, Finding, Spec, refuse

PODS_PER_NODE = 110
_RANGES = ("nodes_cidr", "pods_cidr", "services_cidr")

Port = Annotated[int, Field(ge=1, le=65535)]


def pod_addresses_of_node(max_pods: int) -> int:
    """Addresses that GKE sets aside for the pods of one node: twice as many, up to the next power of two."""
    return 1 << (2 * max_pods - 1).bit_length()


class ExistingNetwork(Spec):
    """A VPC that somebody else looks after; its subnet has the ranges, and its nodes a way out to the internet."""

    network: str
    subnet: str
    pods_range: str
    """The name of the secondary range for pods."""
    services_range: str
    project: str | None = None
    """Of a shared VPC; the environment's own when absent."""


class NetworkSpec(Spec):
    """Address ranges; the defaults leave room for 1,024 nodes of 110 pods each."""

    nodes_cidr: Cidr = "10.0.0.0/20"
    pods_cidr: Cidr = "10.4.0.0/14"
    services_cidr: Cidr = "10.8.0.0/20"
    existing: ExistingNetwork | None = None
    webhook_ports: list[Port] = Field(default=[8443, 9443])
    """Ports on nodes that the control plane must reach, for the admission webhooks of operators."""

    @property
    def node_addresses(self) -> int:
        """Nodes that the node range has room for; Google keeps four addresses."""
        return ipaddress.IPv4Network(self.nodes_cidr).num_addresses - 4

    @property
    def pod_addresses(self) -> int:
        """Addresses of the pod range."""
        return ipaddress.IPv4Network(self.pods_cidr).num_addresses

    @property
    def ranges(self) -> dict[str, ipaddress.IPv4Network]:
        """The ranges that are made, by their key; none of a network that exists already."""
        if self.existing:
            return {}
        keys = {name: type(self).model_fields[name].alias or name for name in _RANGES}
        return {key: ipaddress.IPv4Network(getattr(self, name)) for name, key in keys.items()}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        if self.existing:
            for name in _RANGES:
                if name in self.model_fields_set:
                    key = type(self).model_fields[name].alias or name
                    yield (key,), "has no effect besides existing, whose subnet has its own ranges; remove it"
        for (first, one), (second, other) in combinations(self.ranges.items(), 2):
            if one.overlaps(other):
                yield (
                    (second,),
                    f"overlaps {first}, so addresses would be ambiguous and Google Cloud refuses it; "
                    "choose another range",
                )
