"""The metadata of a manifest, which was written by hand or printed by `kubectl get -o yaml`."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import Field, model_validator

from persia_infra.spec.base import DnsLabel, Finding, Spec

STATUS_LEFT_OUT = "has no effect: Kubernetes sets it"
_WRITTEN_BY_KUBECTL = "kubectl.kubernetes.io/last-applied-configuration"
_WRITTEN_BY_SERVER = (
    "uid",
    "resource_version",
    "creation_timestamp",
    "generation",
    "managed_fields",
    "finalizers",
    "owner_references",
    "self_link",
)


def without_nulls(data: Any) -> Any:  # noqa: ANN401
    """A mapping without null values, which Kubernetes treats as absent; any other value unchanged."""
    return {key: value for key, value in data.items() if value is not None} if isinstance(data, Mapping) else data


class ObjectMetadata(Spec):
    """The name, labels and annotations of an object, and the fields that the API server sets."""

    name: DnsLabel
    namespace: DnsLabel | None = None
    labels: dict[str, str] = Field(default={})
    annotations: dict[str, str] = Field(default={})
    uid: Any = None
    resource_version: Any = None
    creation_timestamp: Any = None
    generation: Any = None
    managed_fields: Any = None
    finalizers: Any = None
    owner_references: Any = None
    self_link: Any = None

    _dropping_nulls = model_validator(mode="before")(without_nulls)

    @property
    def own_annotations(self) -> dict[str, str]:
        """The annotations without those that kubectl adds."""
        return {key: value for key, value in self.annotations.items() if key != _WRITTEN_BY_KUBECTL}

    def notes(self, *, kept: Collection[str] = ()) -> Iterator[Finding]:
        """Notes on the fields that are left out; `kept` names fields that are not."""
        if self.labels and "labels" not in kept:
            yield ("labels",), "is left out: the declared objects have labels of their own"
        if self.own_annotations and "annotations" not in kept:
            yield ("annotations",), "is left out: the declared objects have no annotations from the manifest"
        written = [type(self).model_fields[name].alias or name for name in _WRITTEN_BY_SERVER if getattr(self, name)]
        if self.annotations != self.own_annotations:
            written.append(f"the annotation {_WRITTEN_BY_KUBECTL}")
        if written:
            reason = "is left out: it belongs" if len(written) == 1 else "are left out: they belong"
            yield (), f"{', '.join(written)} {reason} to the existing object, not to a new one"
