"""Types of the Kubernetes API: the group admission.

Generated from the OpenAPI documents of Kubernetes 1.36.3 by `make types`. Do not edit.
"""

# ruff: noqa: RUF012

from typing import Literal

from pydantic import Field

from persia_infra.kube.types.base import Integer, KubeKind, KubeType
from persia_infra.kube.types.meta import LabelSelector, ObjectMeta


class MatchCondition(KubeType):
    expression: str
    name: str


class RuleWithOperations(KubeType):
    api_groups: list[str] = []
    api_versions: list[str] = []
    operations: list[Literal["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]] = []
    resources: list[str] = []
    scope: Literal["*", "Cluster", "Namespaced"] | None = None


class ServiceReference(KubeType):
    name: str
    namespace: str
    path: str | None = None
    port: Integer | None = None


class WebhookClientConfig(KubeType):
    ca_bundle: str | None = None
    service: ServiceReference | None = None
    url: str | None = None


class MutatingWebhook(KubeType):
    admission_review_versions: list[str]
    client_config: WebhookClientConfig
    failure_policy: Literal["Fail", "Ignore"] | None = None
    match_conditions: list[MatchCondition] = []
    match_policy: Literal["Equivalent", "Exact"] | None = None
    name: str
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    reinvocation_policy: Literal["IfNeeded", "Never"] | None = None
    rules: list[RuleWithOperations] = []
    side_effects: Literal["None", "NoneOnDryRun", "Some", "Unknown"]
    timeout_seconds: Integer | None = None


class MutatingWebhookConfiguration(KubeKind):
    api_version: Literal["admissionregistration.k8s.io/v1"] = "admissionregistration.k8s.io/v1"
    kind: Literal["MutatingWebhookConfiguration"] = "MutatingWebhookConfiguration"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    webhooks: list[MutatingWebhook] = []


class ValidatingWebhook(KubeType):
    admission_review_versions: list[str]
    client_config: WebhookClientConfig
    failure_policy: Literal["Fail", "Ignore"] | None = None
    match_conditions: list[MatchCondition] = []
    match_policy: Literal["Equivalent", "Exact"] | None = None
    name: str
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    rules: list[RuleWithOperations] = []
    side_effects: Literal["None", "NoneOnDryRun", "Some", "Unknown"]
    timeout_seconds: Integer | None = None


class ValidatingWebhookConfiguration(KubeKind):
    api_version: Literal["admissionregistration.k8s.io/v1"] = "admissionregistration.k8s.io/v1"
    kind: Literal["ValidatingWebhookConfiguration"] = "ValidatingWebhookConfiguration"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    webhooks: list[ValidatingWebhook] = []
