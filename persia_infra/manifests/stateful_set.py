"""The manifest of a StatefulSet that is read as a role of PERSIA, and notes on what is left out of it."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_snake

from persia_infra.kube.pod_templates import Container, PodSpec, PodTemplate
from persia_infra.kube.types.base import KubeType
from persia_infra.manifests.metadata import STATUS_LEFT_OUT, ObjectMetadata, without_nulls
from persia_infra.spec.base import Finding, Place, Spec
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
_KEPT_OF_POD = frozenset(
    (
        *("containers", "volumes", "restart_policy", "node_selector", "tolerations", "affinity"),
        *("service_account_name", "priority_class_name", "security_context"),
    )
)
_KEPT_OF_CONTAINER = frozenset(
    ("name", "image", "image_pull_policy", "command", "args", "env", "ports", "resources", "volume_mounts")
)
_LEFT_OUT = {
    "serviceName": "is left out: each role has a headless Service of its own",
    "selector": "is left out: the declared objects have labels of their own",
    "podManagementPolicy": "is left out: all pods of a role start at once",
    "updateStrategy": "is left out: the pods of a role are replaced one after the other",
    "revisionHistoryLimit": "is left out: a PersiaJob has no field for it",
    "minReadySeconds": "is left out: a PersiaJob has no field for it",
    "persistentVolumeClaimRetentionPolicy": "is left out: the pods have no disks of their own",
    "ordinals": "is left out: PERSIA numbers its pods from 0",
}


class _Part(Spec):
    """A part of the manifest; unknown keys are collected, so that each can be refused with its own message."""

    model_config = ConfigDict(extra="allow")

    _dropping_nulls = model_validator(mode="before")(without_nulls)

    def unknown_keys(self) -> Iterator[Finding]:
        """Yields the keys that a StatefulSet does not have."""
        known = sorted(field.alias or name for name, field in type(self).model_fields.items())
        for key in self.model_extra or {}:
            yield (key,), f"is not a key of a StatefulSet; {nearest(key, known)}"


class _StatefulSetSpec(_Part):
    replicas: int = Field(default=1, ge=0)
    template: PodTemplate
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
    """A StatefulSet."""

    api_version: str
    kind: Literal["StatefulSet"]
    metadata: ObjectMetadata
    spec: _StatefulSetSpec
    status: Any = None

    @property
    def pod(self) -> PodSpec:
        """The pod that its template describes."""
        return self.spec.template.spec

    @property
    def container(self) -> Container:
        """The container that runs in each pod."""
        return self.pod.containers[0]

    @property
    def words(self) -> list[str]:
        """The command and arguments of the container."""
        return [*self.container.command, *self.container.args]

    def findings(self) -> Iterator[Finding]:
        """Yields unknown keys, and fields that a PersiaJob cannot represent."""
        if self.api_version != API_VERSION:
            yield ("apiVersion",), f"is not a supported version of StatefulSet; write {API_VERSION}"
        yield from self.unknown_keys()
        yield from ((("spec", *place), message) for place, message in self.spec.unknown_keys())
        yield from _not_kept(self.pod, _KEPT_OF_POD, POD)
        yield from _not_kept(self.container, _KEPT_OF_CONTAINER, CONTAINER)
        if len(self.pod.containers) != 1:
            yield (*POD, "containers"), "must have exactly one container, which runs the role; remove the others"
        if self.pod.restart_policy not in (None, "Always"):
            yield (*POD, "restartPolicy"), "must be Always in a StatefulSet; write Always or remove it"
        if self.spec.volume_claim_templates:
            yield (
                ("spec", "volumeClaimTemplates"),
                "a PersiaJob has no disks that outlive their pods; mount a volume instead, such as an ephemeral one",
            )

    def notes(self) -> Iterator[Finding]:
        """Yields notes on fields that are left out, because the role runs without them."""
        for place, message in self.metadata.notes():
            yield ("metadata", *place), message
        for key, message in _LEFT_OUT.items():
            if getattr(self.spec, to_snake(key)):
                yield ("spec", key), message
        template = self.spec.template.metadata
        if template.labels:
            yield ("spec", "template", "metadata", "labels"), _LEFT_OUT["selector"]
        if template.annotations:
            message = "is left out: a PersiaJob has no field for the annotations of its pods"
            yield ("spec", "template", "metadata", "annotations"), message
        if self.container.ports:
            yield (*CONTAINER, "ports"), "is left out: PERSIA determines the ports of a role"
        if script := next((word for word in self.words if word.endswith(".sh")), None):
            message = f"{script} is not run: persia-launcher starts the role with the same settings"
            yield (*CONTAINER, "command" if script in self.container.command else "args"), message
        elif self.words:
            message = "is not run: persia-launcher starts the role instead"
            yield (*CONTAINER, "command" if self.container.command else "args"), message
        if self.status:
            yield ("status",), STATUS_LEFT_OUT


def _not_kept(part: KubeType, kept: Collection[str], place: Place) -> Iterator[Finding]:
    aliases = {name: field.alias or name for name, field in type(part).model_fields.items()}
    known = sorted(aliases[name] for name in kept)
    for name in sorted(part.model_fields_set - set(kept)):
        key = aliases[name]
        if _FILLED_IN_BY_KUBERNETES.get(key) != getattr(part, name):
            yield (*place, key), f"has no counterpart in a PersiaJob; {nearest(key, known)}"
