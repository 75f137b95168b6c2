"""Types of the Kubernetes API: metadata.

Generated from the OpenAPI documents of Kubernetes 1.36.3 by `make types`. Do not edit.
"""

# ruff: noqa: RUF012

from typing import Any

from persia_infra.kube.types.base import Boolean, Integer, KubeType, Time


class ManagedFieldsEntry(KubeType):
    api_version: str | None = None
    fields_type: str | None = None
    fields_v_1: dict[str, Any] | None = None
    manager: str | None = None
    operation: str | None = None
    subresource: str | None = None
    time: Time | None = None


class OwnerReference(KubeType):
    api_version: str
    block_owner_deletion: Boolean | None = None
    controller: Boolean | None = None
    kind: str
    name: str
    uid: str


class ObjectMeta(KubeType):
    annotations: dict[str, str] = {}
    creation_timestamp: Time | None = None
    deletion_grace_period_seconds: Integer | None = None
    deletion_timestamp: Time | None = None
    finalizers: list[str] = []
    generate_name: str | None = None
    generation: Integer | None = None
    labels: dict[str, str] = {}
    managed_fields: list[ManagedFieldsEntry] = []
    name: str | None = None
    namespace: str | None = None
    owner_references: list[OwnerReference] = []
    resource_version: str | None = None
    self_link: str | None = None
    uid: str | None = None


class LabelSelectorRequirement(KubeType):
    key: str
    operator: str
    values: list[str] = []


class LabelSelector(KubeType):
    match_expressions: list[LabelSelectorRequirement] = []
    match_labels: dict[str, str] = {}


class Condition(KubeType):
    last_transition_time: Time
    message: str
    observed_generation: Integer | None = None
    reason: str
    status: str
    type: str
