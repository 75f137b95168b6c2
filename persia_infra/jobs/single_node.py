"""A training that runs in one pod: a Job of Kubernetes itself (batch/v1), or a Pod that is run as one.

A bare Pod is gone with its node; as a Job it is started again. Out of scope: Jobs with several pods, which have
kinds of their own here.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from persia_infra.gke.pools import Placement
from persia_infra.jobs.job import Translation
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
from persia_infra.kube.pod_templates import Plain, PodTemplate
from persia_infra.spec.base import DnsLabel, Finding, refuse

API_VERSION = "batch/v1"


class SingleNodeJobSpec(RunJob):
    """One pod that trains until it is done."""

    NAME_LIMIT: ClassVar[int] = 57

    kind: Literal["Job"] = Field(default="Job", exclude=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    template: PodTemplate
    pool: DnsLabel | None = Field(default=None, exclude=True)
    backoff_limit: int | None = Field(default=None, ge=0)
    active_deadline_seconds: int | None = Field(default=None, ge=1)
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0)
    suspend: bool | None = None
    parallelism: int | None = Field(default=None, ge=0, le=1)
    completions: int | None = Field(default=None, ge=1, le=1)
    completion_mode: Literal["NonIndexed", "Indexed"] | None = None
    pod_failure_policy: Plain | None = None
    pod_replacement_policy: Literal["TerminatingOrFailed", "Failed"] | None = None

    def run_roles(self) -> list[RunRole]:
        """The only one."""
        return [RunRole("training", (), RoleSpec(template=self.template, pool=self.pool), 1)]

    def object_spec(self, job: str, placements: Mapping[str, Placement]) -> dict[str, Any]:
        """The Job's `spec`, with settings and pool in it."""
        (role,) = self.run_roles()
        template = self.template_of(role, job, placements.get(role.name))
        if template.spec.restart_policy is None:
            template = template.model_copy(
                update={"spec": template.spec.model_copy(update={"restart_policy": "Never"})}
            )
        return {**dumped(self), "template": template.as_kubernetes()}

    def _remarks(self) -> Iterator[Finding]:
        """What is overridden, or worth knowing."""
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
        said = "a bare Pod is gone with its node; it is run as a Job, which starts it again"
        return cls._read(Translation(job, [((), said)], {("template", "spec"): ()}), handler)
