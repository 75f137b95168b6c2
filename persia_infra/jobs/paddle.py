"""A PaddleJob with the fields of its CRD (batch.paddlepaddle.org/v1), checked for what its operator ignores.

The CRD has neither enums nor defaults, so a misspelt value would go unnoticed; here it is refused or corrected.
Out of scope: the PaddleJob of Kubeflow's training operator (kubeflow.org/v1), which is another API.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from persia_infra.jobs.job import ManifestForm, QueueRequest, Translation
from persia_infra.jobs.job_status import JobView, Object, Phase
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
from persia_infra.jobs.shares import VOLCANO
from persia_infra.kube.objects import Body
from persia_infra.kube.pod_security import LEVELS, Need
from persia_infra.kube.pod_templates import keys_given
from persia_infra.kube.pods import GPU
from persia_infra.kube.requests import gpus, template_requests
from persia_infra.spec.base import Finding, PodCount, Quantity, Spec, refuse

API_VERSION = "batch.paddlepaddle.org/v1"

Mode = Literal["PS", "Collective", "Single"]

NEWER_THAN_OPERATOR: Mapping[str, tuple[str, ...]] = {
    "Container": ("resize_policy", "restart_policy", "restart_policy_rules"),
    "EnvVarSource": ("file_key_ref",),
    "Lifecycle": ("stop_signal",),
    "LifecycleHandler": ("sleep",),
    "PersistentVolumeClaimSpec": ("data_source_ref", "volume_attributes_class_name"),
    "PodAffinityTerm": ("match_label_keys", "mismatch_label_keys", "namespace_selector"),
    "PodSecurityContext": ("app_armor_profile", "se_linux_change_policy", "supplemental_groups_policy"),
    "PodSpec": (
        *("host_users", "hostname_override", "os", "resource_claims", "resources", "scheduling_gates"),
        "scheduling_group",
    ),
    "Probe": ("grpc", "termination_grace_period_seconds"),
    "ResourceRequirements": ("claims",),
    "SecurityContext": ("app_armor_profile",),
    "TopologySpreadConstraint": ("match_label_keys", "min_domains", "node_affinity_policy", "node_taints_policy"),
    "Volume": ("image",),
    "VolumeMount": ("recursive_read_only",),
    "VolumeProjection": ("cluster_trust_bundle", "pod_certificate"),
    "WindowsSecurityContextOptions": ("host_process",),
}
"""Keys of each Kubernetes type that the Paddle operator does not know and drops."""


class PaddleSchedulingPolicy(Spec):
    """How Volcano treats the job."""

    min_available: int | None = Field(default=None, ge=0)
    """Number of pods that must be able to start together; all of them by default."""
    queue: str | None = None
    """The Volcano queue of the job."""
    priority_class: str | None = None
    """The PriorityClass of the gang."""
    min_resources: dict[str, Quantity] | None = None
    """Resources that must be free before any pod starts."""


class PaddleRole(RoleSpec):
    """Parameter servers, workers or heterogeneous workers."""

    replicas: PodCount = Field(ge=1)  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    """Number of pods."""
    requests: int | None = Field(default=None, ge=0)
    """Lower bound for elastic training in the CRD; no version of the operator reads it."""
    limits: int | None = Field(default=None, ge=0)
    """Upper bound for elastic training in the CRD; no version of the operator reads it."""


class PaddleJobSpec(RunJob):
    """A Paddle job: with `ps` a parameter server job, otherwise a collective one, or a single one with one worker."""

    MANIFESTS = (ManifestForm("PaddleJob", API_VERSION),)
    COMPONENT = "PaddleJob"
    APP = "paddle"
    NAME_LIMIT: ClassVar[int] = 50
    TAKES_POD_GROUP = True

    kind: Literal["PaddleJob"] = Field(default="PaddleJob", exclude=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Always PaddleJob."""
    clean_pod_policy: Literal["Always", "Never", "OnFailure", "OnCompletion"] | None = None
    """When pods are removed at the job's end; by default only the pods of a completed job are."""
    scheduling_policy: PaddleSchedulingPolicy | None = None
    """Gang scheduling through Volcano."""
    intranet: Literal["PodIP", "Service", "Host"] | None = None
    """How the pods address each other: by pod IP, through Services, or over the nodes' network."""
    with_gloo: Literal[0, 1, 2] | None = None
    """Whether parameter server jobs use Gloo: 0 for none, 1 for workers only, 2 for all roles."""
    ps: PaddleRole | None = None
    """The parameter servers; their presence makes it a parameter server job."""
    worker: PaddleRole | None = None
    """The pods that train; more than one without `ps` makes it a collective job."""
    heter: PaddleRole | None = None
    """Heterogeneous workers of a parameter server job, such as CPU pods beside GPU pods."""
    elastic: int | None = Field(default=None, ge=0)
    """Minimum number of pods of an elastic job; requires an etcd server of your own."""

    @property
    def mode(self) -> Mode:
        """The mode that the operator derives from the roles."""
        if self.ps:
            return "PS"
        return "Collective" if self.worker and self.worker.replicas > 1 else "Single"

    def run_roles(self) -> list[RunRole]:
        """Returns the roles that the job has, parameter servers first."""
        named = (("ps", self.ps), ("worker", self.worker), ("heter", self.heter))
        return [RunRole(name, (name,), role, role.replicas) for name, role in named if role]

    def object_spec(self, templates: Mapping[str, Body]) -> Body:
        """Returns the PaddleJob's `spec`, with its pods and its gang."""
        spec = dumped(self)
        for role in self.run_roles():
            spec[role.name]["template"] = templates[role.name]
            spec[role.name].pop("requests", None)
            spec[role.name].pop("limits", None)
        if self.needs_volcano:
            scheduling = spec.setdefault("schedulingPolicy", {})
            scheduling.setdefault("minAvailable", sum(role.replicas for role in self.run_roles()))
            if self.queue:
                scheduling["queue"] = self.queue
        return spec

    def _object_annotations(self) -> Mapping[str, str]:
        # With foreground deletion the pods would go first, and the operator would keep creating them again.
        return {"pulumi.com/deletionPropagationPolicy": "background"}

    def needed_operators(self) -> dict[str, str]:
        """The Paddle operator, and Volcano where the job asks for it."""
        reason = "only the Paddle operator creates the pods of a PaddleJob"
        return {"paddle": reason, **super().needed_operators()}

    def queue_requests(self) -> Iterator[QueueRequest]:
        """The queue of the scheduling policy, and templates that name Volcano."""
        if (policy := self.scheduling_policy) and policy.queue:
            yield QueueRequest(("schedulingPolicy", "queue"), policy.queue)
        yield from super().queue_requests()

    def view(self, name: str) -> JobView:
        """Returns where to find the PaddleJob and its pods."""
        return JobView(
            {role: rf"{role}-\d+" for role in ("worker", "ps", "heter")},
            f"{API_VERSION}/paddlejobs",
            log_of=f"{name}-worker-0",
            final_phase=_final_phase,
        )

    def security_need(self) -> Need | None:
        """The level that its pods need, including what only the operator adds to them."""
        needs: list[Need] = [("baseline", "the Paddle operator adds an init container without a security context")]
        if self.intranet == "Host":
            needs.append(("privileged", "intranet: Host gives its pods the node's network"))
        if of_templates := super().security_need():
            needs.append(of_templates)
        return max(needs, key=lambda need: LEVELS.index(need[0]))

    def _remarks(self) -> Iterator[Finding]:
        """Fields that are overridden or have no effect, and defaults worth knowing."""
        yield from super()._remarks()
        if self.with_gloo and not self.ps:
            yield ("withGloo",), "has no effect without ps: the operator sets Gloo up for parameter server jobs only"
        elif self.with_gloo and self.intranet != "Service":
            yield (
                ("withGloo",),
                "shares the first parameter server's port: the operator gives it a port of its own only with "
                "intranet: Service; write that",
            )
        for role in self.run_roles():
            for key in ("requests", "limits"):
                if getattr(role.spec, key) is not None:
                    yield (
                        (*role.place, key),
                        "was left out, because no version of the operator reads it; set the containers' resources "
                        "instead",
                    )
        if self.elastic:
            yield (
                ("elastic",),
                "needs an etcd server, which the operator does not install; set PADDLE_ELASTIC_SERVER in the workers' "
                "env",
            )
        if self.clean_pod_policy is None:
            yield (
                ("cleanPodPolicy",),
                "is missing, so the pods of a completed job are removed together with their logs; write Never to keep "
                "them",
            )

    def _settings_of(self, role: RunRole) -> RunSettings:
        return with_shared_memory(super()._settings_of(role), role.spec.template)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse([*self._role_findings(), *self._elastic_findings(), *self._gang_findings()])
        return self

    def _role_findings(self) -> Iterator[Finding]:
        if not self.run_roles():
            yield (), "has no role, so nothing would run; describe worker, and ps as well for parameter servers"
        elif not self.worker:
            yield ("worker",), "is missing, so nothing would train; add it beside ps"
        if self.heter and not self.ps:
            yield ("heter",), "is only for parameter server jobs, but the job has no ps; add ps or remove this"
        for role in self.run_roles():
            template = role.spec.template.spec
            if template.restart_policy == "Always":
                yield (
                    (*role.place, "template", "spec", "restartPolicy"),
                    "is Always, so the job could never complete; write Never or OnFailure, or leave it out",
                )
            for container in template.init_containers:
                if container.name == "coord-paddle":
                    yield (
                        (*role.place, "template", "spec", "initContainers"),
                        "coord-paddle is the name of the operator's own init container; choose another name",
                    )
            for place in keys_given(template, NEWER_THAN_OPERATOR):
                yield (
                    (*role.place, "template", "spec", *place),
                    "is newer than the Paddle operator, which would drop it from the pods; remove it",
                )
        with_gpus = {role.name: gpus(template_requests(role.spec.template)) for role in self.run_roles()}
        if with_gpus.get("ps") and with_gpus.get("worker") == 0:
            yield (
                ("ps", "template"),
                f"asks for {GPU}, but the workers do not: parameter servers keep tables in memory and would leave "
                "the GPUs idle; move the limit to the workers",
            )

    def _elastic_findings(self) -> Iterator[Finding]:
        if self.elastic and self.ps:
            yield ("elastic",), "works only for collective jobs, but this one has parameter servers; remove it"
        if self.elastic and self.worker and self.elastic > self.worker.replicas:
            yield (
                ("elastic",),
                f"{self.elastic} is more than the job's {self.worker.replicas} workers; lower it or add workers",
            )

    def _gang_findings(self) -> Iterator[Finding]:
        policy = self.scheduling_policy
        total = sum(role.replicas for role in self.run_roles())
        if policy and policy.min_available is not None and policy.min_available > total:
            yield (
                ("schedulingPolicy", "minAvailable"),
                f"{policy.min_available} is more than the job's {total} pods, so it would wait forever; lower it",
            )
        if policy and policy.queue and self.queue and policy.queue != self.queue:
            yield ("queue",), "differs from schedulingPolicy.queue, so it is ambiguous which queue applies; remove one"
        yield from scheduler_findings(self)
        if self.intranet != "Host":
            yield from network_findings(self, ", or write intranet: Host if the job needs it")

    # Last, so that it sees what the other validators refuse.
    @model_validator(mode="wrap")
    @classmethod
    def _with_corrections(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401
        return cls._read(_corrected(data), handler) if isinstance(data, Mapping) else handler(data)


def _final_phase(job: Object) -> Phase | None:
    """The final phase; the Paddle operator reports a phase instead of conditions."""
    phases: dict[str, Phase] = {
        "Failed": "Failed",
        "Aborted": "Failed",
        "Terminated": "Failed",
        "Completed": "Succeeded",
        "Succeed": "Succeeded",
    }
    return phases.get((job.get("status") or {}).get("phase", ""))


def _corrected(data: Mapping[str, Any]) -> Translation:
    """Corrects mistakes that are common in published manifests, with a note for each."""
    new, notes, origins = dict(data), [], {}
    if "cleanPolicy" in new and "cleanPodPolicy" not in new:
        new["cleanPodPolicy"] = new.pop("cleanPolicy")
        origins["cleanPodPolicy",] = ("cleanPolicy",)
        notes.append(
            (("cleanPolicy",), "is not a field of a PaddleJob and would be dropped; it was read as cleanPodPolicy")
        )
    if new.get("cleanPodPolicy") == "OnFailed":
        new["cleanPodPolicy"] = "OnFailure"
        notes.append(
            (("cleanPodPolicy",), "OnFailed is not a valid policy and would have no effect; it was read as OnFailure")
        )
    by_hand = [role for role in ("ps", "worker", "heter") if _scheduler(new.get(role)) == VOLCANO]
    if by_hand and not new.get("gang") and not new.get("queue"):
        new["gang"] = True
        notes.append(
            (
                (by_hand[0], "template", "spec", "schedulerName"),
                "was read as gang: true, so Volcano schedules all pods of the job; since operator 0.2.1 a "
                "hand-written PodGroup is not linked to any pod",
            )
        )
    for role in by_hand:
        pod = {key: value for key, value in new[role]["template"]["spec"].items() if key != "schedulerName"}
        new[role] = {**new[role], "template": {**new[role]["template"], "spec": pod}}
    return Translation(new, notes, origins)


def _scheduler(role: Any) -> str | None:  # noqa: ANN401
    try:
        return role["template"]["spec"]["schedulerName"]
    except (KeyError, TypeError):
        return None
