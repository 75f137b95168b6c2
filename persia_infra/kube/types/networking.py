"""Types of the Kubernetes API: the group networking.

Generated from the OpenAPI documents of Kubernetes 1.36.3 by `make types`. Do not edit.
"""

# ruff: noqa: RUF012

from typing import Literal

from pydantic import Field

from persia_infra.kube.types.base import Integer, KubeKind, KubeType
from persia_infra.kube.types.meta import LabelSelector, ObjectMeta


class IPBlock(KubeType):
    cidr: str
    except_: list[str] = Field(default=[], alias="except")


class NetworkPolicyPeer(KubeType):
    ip_block: IPBlock | None = None
    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None


class NetworkPolicyPort(KubeType):
    end_port: Integer | None = None
    port: Integer | str | None = None
    protocol: Literal["SCTP", "TCP", "UDP"] | None = None


class NetworkPolicyEgressRule(KubeType):
    ports: list[NetworkPolicyPort] = []
    to: list[NetworkPolicyPeer] = []


class NetworkPolicyIngressRule(KubeType):
    from_: list[NetworkPolicyPeer] = Field(default=[], alias="from")
    ports: list[NetworkPolicyPort] = []


class NetworkPolicySpec(KubeType):
    egress: list[NetworkPolicyEgressRule] = []
    ingress: list[NetworkPolicyIngressRule] = []
    pod_selector: LabelSelector = Field(default_factory=LabelSelector)
    policy_types: list[Literal["Egress", "Ingress"]] = []


class NetworkPolicy(KubeKind):
    api_version: Literal["networking.k8s.io/v1"] = "networking.k8s.io/v1"
    kind: Literal["NetworkPolicy"] = "NetworkPolicy"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: NetworkPolicySpec | None = None
