"""Types of the Kubernetes API: the group apps.

Generated from the OpenAPI documents of Kubernetes 1.36.3 by `make types`. Do not edit.
"""

# ruff: noqa: RUF012

from typing import Literal

from pydantic import Field

from persia_infra.kube.types.base import Boolean, Integer, KubeKind, KubeType, Time
from persia_infra.kube.types.meta import LabelSelector, ObjectMeta
from persia_infra.kube.types.pods import PodTemplateSpec
from persia_infra.kube.types.storage import PersistentVolumeClaim


class StatefulSetOrdinals(KubeType):
    start: Integer | None = None


class StatefulSetPersistentVolumeClaimRetentionPolicy(KubeType):
    when_deleted: str | None = None
    when_scaled: str | None = None


class RollingUpdateStatefulSetStrategy(KubeType):
    max_unavailable: Integer | str | None = None
    partition: Integer | None = None


class StatefulSetUpdateStrategy(KubeType):
    rolling_update: RollingUpdateStatefulSetStrategy | None = None
    type: Literal["OnDelete", "RollingUpdate"] | None = None


class StatefulSetSpec(KubeType):
    min_ready_seconds: Integer | None = None
    ordinals: StatefulSetOrdinals | None = None
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    pod_management_policy: Literal["OrderedReady", "Parallel"] | None = None
    replicas: Integer | None = None
    revision_history_limit: Integer | None = None
    selector: LabelSelector
    service_name: str | None = None
    template: PodTemplateSpec
    update_strategy: StatefulSetUpdateStrategy = Field(default_factory=StatefulSetUpdateStrategy)
    volume_claim_templates: list[PersistentVolumeClaim] = []


class StatefulSetCondition(KubeType):
    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str
    type: str


class StatefulSetStatus(KubeType):
    available_replicas: Integer | None = None
    collision_count: Integer | None = None
    conditions: list[StatefulSetCondition] = []
    current_replicas: Integer | None = None
    current_revision: str | None = None
    observed_generation: Integer | None = None
    ready_replicas: Integer | None = None
    replicas: Integer
    update_revision: str | None = None
    updated_replicas: Integer | None = None


class StatefulSet(KubeKind):
    api_version: Literal["apps/v1"] = "apps/v1"
    kind: Literal["StatefulSet"] = "StatefulSet"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: StatefulSetSpec
    status: StatefulSetStatus | None = None


class RollingUpdateDeployment(KubeType):
    max_surge: Integer | str | None = None
    max_unavailable: Integer | str | None = None


class DeploymentStrategy(KubeType):
    rolling_update: RollingUpdateDeployment | None = None
    type: Literal["Recreate", "RollingUpdate"] | None = None


class DeploymentSpec(KubeType):
    min_ready_seconds: Integer | None = None
    paused: Boolean | None = None
    progress_deadline_seconds: Integer | None = None
    replicas: Integer | None = None
    revision_history_limit: Integer | None = None
    selector: LabelSelector
    strategy: DeploymentStrategy = Field(default_factory=DeploymentStrategy)
    template: PodTemplateSpec


class DeploymentCondition(KubeType):
    last_transition_time: Time | None = None
    last_update_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str
    type: str


class DeploymentStatus(KubeType):
    available_replicas: Integer | None = None
    collision_count: Integer | None = None
    conditions: list[DeploymentCondition] = []
    observed_generation: Integer | None = None
    ready_replicas: Integer | None = None
    replicas: Integer | None = None
    terminating_replicas: Integer | None = None
    unavailable_replicas: Integer | None = None
    updated_replicas: Integer | None = None


class Deployment(KubeKind):
    api_version: Literal["apps/v1"] = "apps/v1"
    kind: Literal["Deployment"] = "Deployment"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: DeploymentSpec
    status: DeploymentStatus | None = None


class RollingUpdateDaemonSet(KubeType):
    max_surge: Integer | str | None = None
    max_unavailable: Integer | str | None = None


class DaemonSetUpdateStrategy(KubeType):
    rolling_update: RollingUpdateDaemonSet | None = None
    type: Literal["OnDelete", "RollingUpdate"] | None = None


class DaemonSetSpec(KubeType):
    min_ready_seconds: Integer | None = None
    revision_history_limit: Integer | None = None
    selector: LabelSelector
    template: PodTemplateSpec
    update_strategy: DaemonSetUpdateStrategy = Field(default_factory=DaemonSetUpdateStrategy)


class DaemonSetCondition(KubeType):
    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str
    type: str


class DaemonSetStatus(KubeType):
    collision_count: Integer | None = None
    conditions: list[DaemonSetCondition] = []
    current_number_scheduled: Integer
    desired_number_scheduled: Integer
    number_available: Integer | None = None
    number_misscheduled: Integer
    number_ready: Integer
    number_unavailable: Integer | None = None
    observed_generation: Integer | None = None
    updated_number_scheduled: Integer | None = None


class DaemonSet(KubeKind):
    api_version: Literal["apps/v1"] = "apps/v1"
    kind: Literal["DaemonSet"] = "DaemonSet"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: DaemonSetSpec
    status: DaemonSetStatus | None = None
