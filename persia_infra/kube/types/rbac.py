"""Types of the Kubernetes API: the group rbac.

Generated from the OpenAPI documents of Kubernetes 1.36.3 by `make types`. Do not edit.
"""

# ruff: noqa: RUF012

from typing import Literal

from pydantic import Field

from persia_infra.kube.types.base import KubeKind, KubeType
from persia_infra.kube.types.meta import LabelSelector, ObjectMeta


class PolicyRule(KubeType):
    api_groups: list[str] = []
    non_resource_urls: list[str] = Field(default=[], alias="nonResourceURLs")
    resource_names: list[str] = []
    resources: list[str] = []
    verbs: list[str]


class Role(KubeKind):
    api_version: Literal["rbac.authorization.k8s.io/v1"] = "rbac.authorization.k8s.io/v1"
    kind: Literal["Role"] = "Role"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    rules: list[PolicyRule] = []


class RoleRef(KubeType):
    api_group: str | None = None
    kind: str
    name: str


class Subject(KubeType):
    api_group: str | None = None
    kind: str
    name: str
    namespace: str | None = None


class RoleBinding(KubeKind):
    api_version: Literal["rbac.authorization.k8s.io/v1"] = "rbac.authorization.k8s.io/v1"
    kind: Literal["RoleBinding"] = "RoleBinding"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    role_ref: RoleRef
    subjects: list[Subject] = []


class AggregationRule(KubeType):
    cluster_role_selectors: list[LabelSelector] = []


class ClusterRole(KubeKind):
    aggregation_rule: AggregationRule | None = None
    api_version: Literal["rbac.authorization.k8s.io/v1"] = "rbac.authorization.k8s.io/v1"
    kind: Literal["ClusterRole"] = "ClusterRole"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    rules: list[PolicyRule] = []


class ClusterRoleBinding(KubeKind):
    api_version: Literal["rbac.authorization.k8s.io/v1"] = "rbac.authorization.k8s.io/v1"
    kind: Literal["ClusterRoleBinding"] = "ClusterRoleBinding"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    role_ref: RoleRef
    subjects: list[Subject] = []
