"""Types of the Kubernetes API: the group batch.

Generated from the OpenAPI documents of Kubernetes 1.36.3 by `make types`. Do not edit.
"""

# ruff: noqa: RUF012

from typing import Literal

from pydantic import Field

from persia_infra.kube.types.base import Boolean, Integer, KubeKind, KubeType, Time
from persia_infra.kube.types.meta import LabelSelector, ObjectMeta
from persia_infra.kube.types.pods import PodTemplateSpec


class PodFailurePolicyOnExitCodesRequirement(KubeType):
    container_name: str | None = None
    operator: Literal["In", "NotIn"]
    values: list[Integer]


class PodFailurePolicyOnPodConditionsPattern(KubeType):
    status: str | None = None
    type: str


class PodFailurePolicyRule(KubeType):
    action: Literal["Count", "FailIndex", "FailJob", "Ignore"]
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: list[PodFailurePolicyOnPodConditionsPattern] = []


class PodFailurePolicy(KubeType):
    rules: list[PodFailurePolicyRule]


class SuccessPolicyRule(KubeType):
    succeeded_count: Integer | None = None
    succeeded_indexes: str | None = None


class SuccessPolicy(KubeType):
    rules: list[SuccessPolicyRule]


class JobSpec(KubeType):
    active_deadline_seconds: Integer | None = None
    backoff_limit: Integer | None = None
    backoff_limit_per_index: Integer | None = None
    completion_mode: Literal["Indexed", "NonIndexed"] | None = None
    completions: Integer | None = None
    managed_by: str | None = None
    manual_selector: Boolean | None = None
    max_failed_indexes: Integer | None = None
    parallelism: Integer | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: Literal["Failed", "TerminatingOrFailed"] | None = None
    selector: LabelSelector | None = None
    success_policy: SuccessPolicy | None = None
    suspend: Boolean | None = None
    template: PodTemplateSpec
    ttl_seconds_after_finished: Integer | None = None


class JobCondition(KubeType):
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    message: str | None = None
    reason: str | None = None
    status: str
    type: str


class UncountedTerminatedPods(KubeType):
    failed: list[str] = []
    succeeded: list[str] = []


class JobStatus(KubeType):
    active: Integer | None = None
    completed_indexes: str | None = None
    completion_time: Time | None = None
    conditions: list[JobCondition] = []
    failed: Integer | None = None
    failed_indexes: str | None = None
    ready: Integer | None = None
    start_time: Time | None = None
    succeeded: Integer | None = None
    terminating: Integer | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


class Job(KubeKind):
    api_version: Literal["batch/v1"] = "batch/v1"
    kind: Literal["Job"] = "Job"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: JobSpec
    status: JobStatus | None = None
