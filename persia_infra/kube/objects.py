"""Kubernetes objects as plain values, and what their declaration has to know besides.

A job, a NATS cluster, an operator or a driver installer is a group of objects, made by a pure function of its spec.
`render` prints the objects of a group; the Pulumi components turn them into resources.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Body = dict[str, Any]
"""A Kubernetes object, or a part of one, as it is sent to the API server."""

_FIRST_KEYS: Final = ("apiVersion", "kind", "type", "name", "namespace", "metadata", "image", "command", "args", "key")


@dataclass(frozen=True, eq=False)
class KubeObject:
    """One object, and the options that Pulumi declares it with.

    A value that is known only while deploying stands in the body as a placeholder such as `${namespace}`; the
    component that declares the object knows what each placeholder means.
    """

    suffix: str
    """What the component's name is completed with to the object's logical name; empty for the main object."""
    body: Body
    needs: "tuple[KubeObject | ObjectGroup, ...]" = ()
    """What has to exist before this object, and is deleted after it."""
    ignore_changes: tuple[str, ...] = ()
    """Properties that others change after creation."""
    replace_on_changes: tuple[str, ...] = ()
    """Properties whose change needs a new object although the API server would accept an update."""
    delete_before_replace: bool = False
    timeout: str | None = None
    """How long creation and updates may take, where the provider's own limit is too short."""

    @property
    def type_token(self) -> str:
        """Pulumi's name for the object's type, such as `kubernetes:apps/v1:StatefulSet`."""
        version = self.body["apiVersion"]
        return f"kubernetes:{version if '/' in version else f'core/{version}'}:{self.body['kind']}"


@dataclass(frozen=True, eq=False)
class ObjectGroup:
    """The objects that one component declares, each after everything that it needs."""

    component: str
    """The component's type, such as `PersiaJob`."""
    members: "tuple[KubeObject | ObjectGroup, ...]"
    suffix: str = ""
    """What the parent's name is completed with, for a group inside another one."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Values that other stacks may want to know, such as `natsUrl`."""

    def named_objects(self, name: str) -> Iterator[tuple[str, KubeObject]]:
        """Every object with its logical name, those of inner groups included."""
        for member in self.members:
            if isinstance(member, ObjectGroup):
                yield from member.named_objects(name + member.suffix)
            else:
                yield name + member.suffix, member


def documents(groups: Iterable[tuple[str, ObjectGroup]]) -> list[Body]:
    """The objects of named groups, in the order and with the order of keys that `render` prints."""
    objects = [named for name, group in groups for named in group.named_objects(name)]
    objects.sort(key=lambda named: render_position(named[1].type_token, named[0]))
    return [ordered(one.body) for _, one in objects]


_TYPE_ORDER: Final = ("gcp:", "pulumi:", "kubernetes:core/v1:Namespace", "kubernetes:core/v1:ConfigMap", "kubernetes:")


def render_position(type_token: str, name: str) -> tuple[int, str, str]:
    """Where a resource stands among all that are printed."""
    rank = next(index for index, prefix in enumerate(_TYPE_ORDER) if type_token.startswith(prefix))
    return rank, type_token, name


def ordered(value: Any) -> Any:  # noqa: ANN401
    """A value whose keys are in a fixed order, the telling ones first."""
    if isinstance(value, Mapping):
        return {key: ordered(value[key]) for key in sorted(value, key=_key_position)}
    if isinstance(value, list | tuple):
        return [ordered(inner) for inner in value]
    return value


def _key_position(key: str) -> tuple[int, str]:
    return (_FIRST_KEYS.index(key) if key in _FIRST_KEYS else len(_FIRST_KEYS)), key


def without_empty(body: Mapping[str, Any]) -> Body:
    """A mapping without keys whose value is None or an empty list or mapping."""
    return {key: value for key, value in body.items() if value is not None and value not in ([], {}, ())}


def selector_labels(app: str, instance: str, component: str) -> dict[str, str]:
    """Labels that never change once an object exists, so that selectors can use them."""
    return {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": instance,
        "app.kubernetes.io/component": component,
    }


def object_labels(app: str, instance: str, component: str) -> dict[str, str]:
    """Kubernetes' recommended labels."""
    return {
        **selector_labels(app, instance, component),
        "app.kubernetes.io/part-of": "persia-infra",
        "app.kubernetes.io/managed-by": "pulumi",
    }


def metadata(
    name: str, namespace: str | None, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> Body:
    """The metadata of an object; the name is exact, because others rely on it."""
    return without_empty(
        {"name": name, "namespace": namespace, "labels": dict(labels), "annotations": dict(annotations or {})}
    )


def hashed_name(base: str, files: Mapping[str, str]) -> str:
    """A name that changes with the content, so that running pods keep the files they started with."""
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    return f"{base}-{digest[:10]}"
