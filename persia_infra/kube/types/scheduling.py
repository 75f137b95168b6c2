"""Types of the Kubernetes API: the group scheduling.

Generated from the OpenAPI documents of Kubernetes 1.36.3 by `make types`. Do not edit.
"""

from typing import Literal

from pydantic import Field

from persia_infra.kube.types.base import Boolean, Integer, KubeKind
from persia_infra.kube.types.meta import ObjectMeta


class PriorityClass(KubeKind):
    api_version: Literal["scheduling.k8s.io/v1"] = "scheduling.k8s.io/v1"
    description: str | None = None
    global_default: Boolean | None = None
    kind: Literal["PriorityClass"] = "PriorityClass"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    preemption_policy: Literal["Never", "PreemptLowerPriority"] | None = None
    value: Integer | None = None
