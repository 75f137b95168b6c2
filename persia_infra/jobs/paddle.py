"""A PaddleJob in the words of its CRD (batch.paddlepaddle.org/v1), checked for what its operator ignores.

The CRD has neither enums nor defaults, so a misspelt value would pass unseen; here it is refused or put right.
Out of scope: the PaddleJob of Kubeflow's training operator (kubeflow.org/v1), which is another API.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator
from pydantic.alias_generators import to_camel

from persia_infra.gke.pools import Placement
from persia_infra.jobs.job import Translation
from persia_infra.jobs.run_job import (
    VOLCANO,
    RoleSpec,
    RunJob,
    RunRole,
    dumped,
    network_findings,
    scheduler_findings,
    with_shared_memory,
)
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.kube.pod_security import LEVELS, Need
from persia_infra.kube.pods import GPU
from persia_infra.spec.base import Finding, Place, PodCount, Quantity, Spec, refuse

API_VERSION = "batch.paddlepaddle.org/v1"

Mode = Literal["PS", "Collective", "Single"]

NEWER_THAN_OPERATOR = {
    "pod": ("host_users", "hostname_override", "os", "resource_claims", "resources", "scheduling_gates"),
    "below": (
        *("app_armor_profile", "se_linux_change_policy", "supplemental_groups_policy"),
        *("resize_policy", "restart_policy", "restart_policy_rules"),
        *("match_label_keys", "mismatch_label_keys", "namespace_selector"),
    ),
}
"""Keys of a pod, and of what is in it, that its operator does not know, and leaves out."""


class PaddleSchedulingPolicy(Spec):
    """How Volcano treats the job."""

    min_available: int | None = Field(default=None, ge=0)
    queue: str | None = None
    priority_class: str | None = None
    min_resources: dict[str, Quantity] | None = None


class PaddleRole(RoleSpec):
    """Parameter servers, workers or heterogeneous workers."""

    replicas: PodCount = Field(ge=1)  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    requests: int | None = Field(default=None, ge=0)
    limits: int | None = Field(default=None, ge=0)


class PaddleJobSpec(RunJob):
    """With `ps` a parameter server job, with several workers a collective one, with one a single one."""

    NAME_LIMIT: ClassVar[int] = 50

    kind: Literal["PaddleJob"] = Field(default="PaddleJob", exclude=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    clean_pod_policy: Literal["Always", "Never", "OnFailure", "OnCompletion"] | None = None
    scheduling_policy: PaddleSchedulingPolicy | None = None
    intranet: Literal["PodIP", "Service", "Host"] | None = None
    with_gloo: Literal[0, 1, 2] | None = None
    ps: PaddleRole | None = None
    worker: PaddleRole | None = None
    heter: PaddleRole | None = None
    elastic: int | None = Field(default=None, ge=0)

    @property
    def mode(self) -> Mode:
        """How the operator sees it."""
        if self.ps:
            return "PS"
        return "Collective" if self.worker and self.worker.replicas > 1 else "Single"

    def run_roles(self) -> list[RunRole]:
        """Those that are there, parameter servers first."""
        named = (("ps", self.ps), ("worker", self.worker), ("heter", self.heter))
        return [RunRole(name, (name,), role, role.replicas) for name, role in named if role]

    def object_spec(self, job: str, placements: Mapping[str, Placement]) -> dict[str, Any]:
        """The PaddleJob's `spec`, with settings, pools and gang in it."""
        spec = dumped(self)
        for role in self.run_roles():
            template = self.template_of(role, job, placements.get(role.name))
            spec[role.name]["template"] = template.as_kubernetes()
            spec[role.name].pop("requests", None)
            spec[role.name].pop("limits", None)
        if self.needs_volcano:
            scheduling = spec.setdefault("schedulingPolicy", {})
            scheduling.setdefault("minAvailable", sum(role.replicas for role in self.run_roles()))
            if self.queue:
                scheduling["queue"] = self.queue
        return spec

    def security_need(self) -> Need | None:
        """What its pods need, those parts that only the operator adds included."""
        needs: list[Need] = [
            ("baseline", "the Paddle operator adds an init container that says nothing of its privileges")
        ]
        if self.intranet == "Host":
            needs.append(("privileged", "intranet: Host gives its pods the node's network"))
        if of_templates := super().security_need():
            needs.append(of_templates)
        return max(needs, key=lambda need: LEVELS.index(need[0]))

    def _remarks(self) -> Iterator[Finding]:
        """What is overridden, or has no effect."""
        yield from super()._remarks()
        if self.with_gloo and not self.ps:
            yield ("withGloo",), "has no effect without ps: the operator sets Gloo up for parameter server jobs only"
        elif self.with_gloo and self.intranet != "Service":
            yield (
                ("withGloo",),
                "shares the first parameter server's port unless intranet is Service: the operator moves it to a port "
                "of its own only there",
            )
        for role in self.run_roles():
            for key in ("requests", "limits"):
                if getattr(role.spec, key) is not None:
                    yield (
                        (*role.place, key),
                        "is read by no version of the operator, and was left out; the containers' resources count",
                    )
        if self.elastic:
            yield (
                ("elastic",),
                "needs an etcd that the operator does not bring; name it in PADDLE_ELASTIC_SERVER of the workers' envs",
            )
        if self.clean_pod_policy is None:
            yield (
                ("cleanPodPolicy",),
                "is not given: pods of a job that completes are removed, and their logs with them",
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
            yield ("heter",), "belongs to parameter server jobs, and there are no ps; add them or leave it out"
        for role in self.run_roles():
            template = role.spec.template.spec
            if template.restart_policy == "Always":
                yield (
                    (*role.place, "template", "spec", "restartPolicy"),
                    "is Always, so the job could never complete; write Never or OnFailure, or leave it out",
                )
            for _, container in template.all_containers[: len(template.init_containers)]:
                if container.name == "coord-paddle":
                    yield (
                        (*role.place, "template", "spec", "initContainers"),
                        "coord-paddle is the name of the operator's own init container; choose another",
                    )
            for place in _newer_than_operator(template):
                yield (
                    (*role.place, "template", "spec", *place),
                    "is newer than the Paddle operator, whose pods would not have it; leave it out",
                )
        idle = self.ps and self.ps.template.resources.gpus and self.worker and not self.worker.template.resources.gpus
        if idle:
            yield (
                ("ps", "template"),
                f"asks for {GPU} while the workers train without: parameter servers keep tables in memory and "
                "would hold GPUs that nobody uses; move the limit to the workers",
            )

    def _elastic_findings(self) -> Iterator[Finding]:
        if self.elastic and self.ps:
            yield ("elastic",), "works for collective jobs only, and this one has parameter servers; leave it out"
        if self.elastic and self.worker and self.elastic > self.worker.replicas:
            yield (
                ("elastic",),
                f"{self.elastic} is more than the {self.worker.replicas} workers there are; lower it or add workers",
            )

    def _gang_findings(self) -> Iterator[Finding]:
        policy = self.scheduling_policy
        total = sum(role.replicas for role in self.run_roles())
        if policy and policy.min_available is not None and policy.min_available > total:
            yield (
                ("schedulingPolicy", "minAvailable"),
                f"{policy.min_available} is more than the job's {total} pods, so it would wait for ever; lower it",
            )
        if policy and policy.queue and self.queue and policy.queue != self.queue:
            yield ("queue",), "is not the queue of schedulingPolicy; keep one"
        yield from scheduler_findings(self)
        if self.intranet != "Host":
            yield from network_findings(self, ", or write intranet: Host where the job can't do without")

    # Last, so that it sees what the other validators refuse.
    @model_validator(mode="wrap")
    @classmethod
    def _put_right(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401
        return cls._read(_corrected(data), handler) if isinstance(data, Mapping) else handler(data)


def _newer_than_operator(part: Spec, place: Place = ()) -> Iterator[Place]:
    newer = NEWER_THAN_OPERATOR["below" if place else "pod"]
    for name in sorted(part.model_fields_set):
        value, here = getattr(part, name), (*place, to_camel(name))
        if name in newer:
            yield here
        inner = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, one in inner:
            if isinstance(one, Spec):
                yield from _newer_than_operator(one, here if index is None else (*here, index))


def _corrected(data: Mapping[str, Any]) -> Translation:
    """Well-known mistakes of manifests that circulate, put right and noted."""
    new, said, origins = dict(data), [], {}
    if "cleanPolicy" in new and "cleanPodPolicy" not in new:
        new["cleanPodPolicy"] = new.pop("cleanPolicy")
        origins["cleanPodPolicy",] = ("cleanPolicy",)
        said.append((("cleanPolicy",), "is no key of a PaddleJob and would be dropped; it was read as cleanPodPolicy"))
    if new.get("cleanPodPolicy") == "OnFailed":
        new["cleanPodPolicy"] = "OnFailure"
        said.append((("cleanPodPolicy",), "OnFailed is no policy and would have no effect; it was read as OnFailure"))
    by_hand = [role for role in ("ps", "worker", "heter") if _scheduler(new.get(role)) == VOLCANO]
    if by_hand and not new.get("gang") and not new.get("queue"):
        new["gang"] = True
        said.append(
            (
                (by_hand[0], "template", "spec", "schedulerName"),
                "Volcano gets all pods of the job or none, as with gang: true; a PodGroup made by hand is linked to "
                "no pod since version 0.2.1 of the operator",
            )
        )
    for role in by_hand:
        pod = {key: value for key, value in new[role]["template"]["spec"].items() if key != "schedulerName"}
        new[role] = {**new[role], "template": {**new[role]["template"], "spec": pod}}
    return Translation(new, said, origins)


def _scheduler(role: Any) -> str | None:  # noqa: ANN401
    try:
        return role["template"]["spec"]["schedulerName"]
    except (KeyError, TypeError):
        return None
