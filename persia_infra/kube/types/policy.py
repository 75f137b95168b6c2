"""Types of the Kubernetes API: the group policy.

Generated from the OpenAPI documents of Kubernetes 1.36.3 by `make types`. Do not edit.
"""

# ruff: noqa: RUF012

from typing import Literal

from pydantic import Field

from persia_infra.kube.types.base import Integer, KubeKind, KubeType, Time
from persia_infra.kube.types.meta import Condition, LabelSelector, ObjectMeta


class PodDisruptionBudgetSpec(KubeType):
    max_unavailable: Integer | str | None = None
    min_available: Integer | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: Literal["AlwaysAllow", "IfHealthyBudget"] | None = None


class PodDisruptionBudgetStatus(KubeType):
    conditions: list[Condition] = []
    current_healthy: Integer | None = None
    desired_healthy: Integer | None = None
    disrupted_pods: dict[str, Time] = {}
    disruptions_allowed: Integer | None = None
    expected_pods: Integer | None = None
    observed_generation: Integer | None = None


class PodDisruptionBudget(KubeKind):
    api_version: Literal["policy/v1"] = "policy/v1"
    kind: Literal["PodDisruptionBudget"] = "PodDisruptionBudget"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: PodDisruptionBudgetSpec | None = None
    status: PodDisruptionBudgetStatus | None = None
