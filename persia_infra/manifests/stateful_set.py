"""A StatefulSet's manifest, as far as a role of PERSIA is read from it, and what of it is left out."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_snake

from persia_infra.kube.pod_templates import Affinity, PodSecurity, TemplateMetadata, Toleration
from persia_infra.kube.pods import EnvVar, Resources, Volume, VolumeMount
from persia_infra.manifests.metadata import STATUS_LEFT_OUT, ObjectMetadata, without_nulls
from persia_infra.spec.base import DnsLabel, Finding, Place, Spec
from persia_infra.spec.errors import nearest

API_VERSION, KIND = "apps/v1", "StatefulSet"
POD: Place = ("spec", "template", "spec")
CONTAINER: Place = (*POD, "containers", 0)

_FILLED_IN_BY_KUBERNETES: Mapping[str, Any] = {
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_LEFT_OUT = {
    "serviceName": "is left out: each role has a headless Service of its own",
    "selector": "is left out: the objects that are declared have labels of their own",
    "podManagementPolicy": "is left out: all pods of a role start at once",
    "updateStrategy": "is left out: the pods of a role are replaced one after the other",
    "revisionHistoryLimit": "is left out: a PersiaJob has no word for it",
    "minReadySeconds": "is left out: a PersiaJob has no word for it",
    "persistentVolumeClaimRetentionPolicy": "is left out: the pods have no disks of their own",
    "ordinals": "is left out: PERSIA counts its pods from 0",
}


class _Part(Spec):
    """Keys beyond those that are kept are collected, and refused in words of their own."""

    model_config = ConfigDict(extra="allow")

    _dropping_nulls = model_validator(mode="before")(without_nulls)

    def others(self) -> Iterator[tuple[str, list[str]]]:
        """Keys that are not kept, each with those that are."""
        known = sorted(field.alias or name for name, field in type(self).model_fields.items())
        for key, value in (self.model_extra or {}).items():
            if _FILLED_IN_BY_KUBERNETES.get(key) != value:
                yield key, known


class Container(_Part):
    """The only one of a role's pods."""

    name: str = ""
    image: str | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    command: list[str] = Field(default=[])
    args: list[str] = Field(default=[])
    env: list[EnvVar] = Field(default=[])
    ports: list[Any] = Field(default=[])
    resources: Resources = Resources()
    volume_mounts: list[VolumeMount] = Field(default=[])


def _one(containers: list[Container]) -> list[Container]:
    if len(containers) != 1:
        raise ValueError("must be one container, which runs the role; move or remove the others")
    return containers


class Pod(_Part):
    """How a role's pods are run."""

    containers: Annotated[list[Container], AfterValidator(_one)]
    volumes: list[Volume] = Field(default=[])
    restart_policy: Literal["Always"] | None = None
    node_selector: dict[str, str] = Field(default={})
    tolerations: list[Toleration] = Field(default=[])
    affinity: Affinity | None = None
    service_account_name: DnsLabel | None = None
    priority_class_name: DnsLabel | None = None
    security_context: PodSecurity | None = None


class _Template(Spec):
    metadata: TemplateMetadata = TemplateMetadata()
    spec: Pod

    _dropping_nulls = model_validator(mode="before")(without_nulls)


class _StatefulSetSpec(_Part):
    replicas: int = Field(default=1, ge=0)
    template: _Template
    volume_claim_templates: list[Any] = Field(default=[])
    service_name: Any = None
    selector: Any = None
    pod_management_policy: Any = None
    update_strategy: Any = None
    revision_history_limit: Any = None
    min_ready_seconds: Any = None
    persistent_volume_claim_retention_policy: Any = None
    ordinals: Any = None


class StatefulSet(_Part):
    """One document."""

    api_version: str
    kind: Literal["StatefulSet"]
    metadata: ObjectMetadata
    spec: _StatefulSetSpec
    status: Any = None

    @property
    def pod(self) -> Pod:
        """What its template makes."""
        return self.spec.template.spec

    @property
    def container(self) -> Container:
        """What runs in each pod."""
        return self.pod.containers[0]

    @property
    def words(self) -> list[str]:
        """What the container is started with."""
        return [*self.container.command, *self.container.args]

    def findings(self) -> Iterator[Finding]:
        """What cannot be kept, and what nobody knows."""
        if self.api_version != API_VERSION:
            yield ("apiVersion",), f"a StatefulSet of this version is not known; write {API_VERSION}"
        parts: list[tuple[Place, _Part]] = [((), self), (("spec",), self.spec)]
        for place, part in parts:
            for key, known in part.others():
                yield (*place, key), f"is no key of a StatefulSet; {nearest(key, known)}"
        for place, part in ((POD, self.pod), (CONTAINER, self.container)):
            for key, known in part.others():
                yield (*place, key), f"is not kept in a PersiaJob; {nearest(key, known)}"
        if self.spec.volume_claim_templates:
            yield (
                ("spec", "volumeClaimTemplates"),
                "a PersiaJob has no disks that outlive their pods; mount a volume instead, such as one with ephemeral",
            )

    def notes(self) -> Iterator[Finding]:
        """What is left out, though the role runs without it."""
        for place, said in self.metadata.notes():
            yield ("metadata", *place), said
        for key, said in _LEFT_OUT.items():
            if getattr(self.spec, to_snake(key)):
                yield ("spec", key), said
        template = self.spec.template.metadata
        if template.labels:
            yield ("spec", "template", "metadata", "labels"), _LEFT_OUT["selector"]
        if template.annotations:
            said = "is left out: a PersiaJob has no word for the annotations of its pods"
            yield ("spec", "template", "metadata", "annotations"), said
        if self.container.ports:
            yield (*CONTAINER, "ports"), "is left out: the ports of a role are PERSIA's own"
        if script := next((word for word in self.words if word.endswith(".sh")), None):
            said = f"{script} is not run: persia-launcher starts the role with the same settings"
            yield (*CONTAINER, "command" if script in self.container.command else "args"), said
        elif self.words:
            said = "is not run as it is: persia-launcher starts the role"
            yield (*CONTAINER, "command" if self.container.command else "args"), said
        if self.status:
            yield ("status",), STATUS_LEFT_OUT
