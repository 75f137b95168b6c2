"""Training in one pod: a Kubernetes Job (batch/v1), or a Pod that is run as a Job.

A bare Pod is lost with its node; a Job starts it again. Out of scope: Jobs with several pods, which have
kinds of their own here.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from persia_infra.jobs.job import ManifestForm, Translation
from persia_infra.jobs.job_status import JobView
from persia_infra.jobs.run_job import (
    RoleSpec,
    RunJob,
    RunRole,
    dumped,
    network_findings,
    scheduler_findings,
    with_shared_memory,
)
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.jobs.shares import GROUP_ANNOTATION, VOLCANO, pod_group
from persia_infra.kube.objects import Body, KubeObject
from persia_infra.kube.pod_templates import PodTemplate, TemplateMetadata
from persia_infra.spec.base import DnsLabel, Finding, refuse

API_VERSION = "batch/v1"


class SingleNodeJobSpec(RunJob):
    """A job of one pod that trains until it is done."""

    MANIFESTS = (ManifestForm("Job", API_VERSION), ManifestForm("Pod", "v1", keeps=("labels", "annotations")))
    COMPONENT = "SingleNodeJob"
    APP = "training"
    ROLE: ClassVar[str] = "training"
    NAME_LIMIT: ClassVar[int] = 57

    kind: Literal["Job"] = Field(default="Job", exclude=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Always Job."""
    template: PodTemplate
    """The pod template, as in Kubernetes."""
    pool: DnsLabel | None = Field(default=None, exclude=True)
    """The node pool of the pod; needed when more than one pool could take it."""
    backoff_limit: int | None = Field(default=None, ge=0)
    """How often the pod is started again before the job counts as failed; 6 by default."""
    active_deadline_seconds: int | None = Field(default=None, ge=1)
    """Seconds after which the job is stopped; unlimited when absent."""
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0)
    """Seconds after its end at which the Job is removed; the next update would then train again."""
    suspend: bool | None = None
    """Keeps the job from starting, and removes its pod if it runs."""
    parallelism: int | None = Field(default=None, ge=0, le=1)
    """Number of pods at a time: 1, or 0 to pause."""
    completions: int | None = Field(default=None, ge=1, le=1)
    """Number of pods that must succeed; always 1."""
    completion_mode: Literal["NonIndexed", "Indexed"] | None = None
    """How completions are counted, as in Kubernetes."""
    pod_failure_policy: dict[str, Any] | None = None
    """What happens on which exit code or disruption, as in Kubernetes."""
    pod_replacement_policy: Literal["TerminatingOrFailed", "Failed"] | None = None
    """Whether a new pod starts before the old one has ended, as in Kubernetes."""

    def run_roles(self) -> list[RunRole]:
        """Returns the only role."""
        return [RunRole(self.ROLE, (), RoleSpec(template=self.template, pool=self.pool), 1)]

    def object_spec(self, templates: Mapping[str, Body]) -> Body:
        """Returns the Job's `spec`, with its pod."""
        return {**dumped(self), "template": templates[self.ROLE]}

    def _object_annotations(self) -> Mapping[str, str]:
        # Otherwise `pulumi up` would wait until the training has ended.
        return {"pulumi.com/skipAwait": "true"}

    def _finish(self, template: PodTemplate, role: RunRole, name: str) -> PodTemplate:  # noqa: ARG002
        pod = template.spec
        if pod.restart_policy is None:
            pod = pod.model_copy(update={"restart_policy": "Never"})
        if not self.needs_volcano:
            return template.model_copy(update={"spec": pod})
        annotations = {**template.metadata.annotations, GROUP_ANNOTATION: name}
        changes = {
            "metadata": template.metadata.model_copy(update={"annotations": annotations}),
            "spec": pod.model_copy(update={"scheduler_name": VOLCANO}),
        }
        return template.model_copy(update=changes)

    def _group_objects(self, name: str, namespace: str, labels: Mapping[str, str]) -> list[KubeObject]:
        if not self.needs_volcano:
            return []
        return [pod_group(name, namespace, labels, members=1, queue=self.queue)]

    def with_manifest_metadata(self, labels: dict[str, str], annotations: dict[str, str]) -> Self:
        """The job with the labels and annotations of the Pod that it was read from, on its own pod."""
        if not labels and not annotations:
            return self
        kept = TemplateMetadata(labels=labels, annotations=annotations)
        return self.model_copy(update={"template": self.template.model_copy(update={"metadata": kept})})

    def view(self, name: str) -> JobView:
        """Returns where to find the Job and its pod."""
        return JobView(
            {self.ROLE: r".*"}, f"{API_VERSION}/jobs", {"batch.kubernetes.io/job-name": name}, log_of=f"job/{name}"
        )

    def _remarks(self) -> Iterator[Finding]:
        """Fields that are overridden or have side effects."""
        yield from super()._remarks()
        if self.ttl_seconds_after_finished is not None:
            yield (
                ("ttlSecondsAfterFinished",),
                "removes the finished Job from the cluster, so the next update of the stack would train again",
            )

    def _settings_of(self, role: RunRole) -> RunSettings:
        return with_shared_memory(super()._settings_of(role), role.spec.template)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        yield from scheduler_findings(self)
        yield from network_findings(self)
        if self.template.spec.restart_policy == "Always":
            yield (
                ("template", "spec", "restartPolicy"),
                "is Always, which Kubernetes refuses in a Job; write Never or OnFailure",
            )
        if self.pod_failure_policy and self.template.spec.restart_policy == "OnFailure":
            yield ("podFailurePolicy",), "needs restartPolicy: Never in the template; Kubernetes refuses it otherwise"

    # Last, so that it sees what the other validators refuse.
    @model_validator(mode="wrap")
    @classmethod
    def _from_pod(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401
        if not isinstance(data, Mapping) or "containers" not in data or "template" in data:
            return handler(data)
        ours = {name for field, info in cls.model_fields.items() for name in (field, info.alias)}
        pod = {key: value for key, value in data.items() if key not in ours or key == "activeDeadlineSeconds"}
        job = {key: value for key, value in data.items() if key not in pod} | {"template": {"spec": pod}}
        note = "a bare Pod is lost with its node, so it is run as a Job, which starts it again"
        return cls._read(Translation(job, [((), note)], {("template", "spec"): ()}), handler)
