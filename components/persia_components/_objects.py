"""Declares Kubernetes objects, which are plain values, as typed Pulumi resources.

This is the only module that declares them. What an object contains is decided in `persia_infra`; here
it gets its class, its options and the values that are known only during the deployment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import pulumi
from pulumi_kubernetes import apiextensions

from persia_components._children import child_options, token
from persia_infra.kube.objects import KubeObject, ObjectGroup


@dataclass(frozen=True)
class FromDeclared:
    """A value that comes from the deployed state of another object of the same group."""

    kind: str
    """The kind of that object, of which the group has exactly one."""
    value: Callable[[Any], pulumi.Input[Any]]
    """Returns the value, given the resource."""


Values = Mapping[str, pulumi.Input[Any] | FromDeclared]
"""The values of placeholders, such as `${namespace}`, in the objects."""

NAMESPACE_VALUE = "${namespace}"
"""The placeholder for a namespace whose name is known only during the deployment."""

_GROUPS = {
    "admissionregistration.k8s.io": "admissionregistration",
    "apiextensions.k8s.io": "apiextensions",
    "apps": "apps",
    "batch": "batch",
    "core": "core",
    "networking.k8s.io": "networking",
    "policy": "policy",
    "rbac.authorization.k8s.io": "rbac",
    "scheduling.k8s.io": "scheduling",
    "storage.k8s.io": "storage",
}
"""The modules of `pulumi_kubernetes` by API group; objects of other groups are custom resources."""
_SNAKE_CASE = {
    "roleRef": "role_ref",
    "automountServiceAccountToken": "automount_service_account_token",
    "apiVersion": "api_version",
}
"""Pulumi's names for top-level keys of an object, where they differ."""


def namespace_value(namespace: pulumi.Input[str]) -> tuple[str, Values]:
    """The text that stands for a namespace in objects, and what it means where only the deployment knows its name."""
    return (namespace, {}) if isinstance(namespace, str) else (NAMESPACE_VALUE, {NAMESPACE_VALUE: namespace})


class ObjectsComponent(pulumi.ComponentResource):
    """A component that declares a group of objects."""

    def __init__(
        self,
        name: str,
        group: ObjectGroup,
        *,
        values: Values | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(token(group.component), name, None, opts)
        self._resources = _declare(self, name, group, values or {})
        # The values are already known, but are available to others only when the objects exist.
        self.outputs = {
            key: pulumi.Output.all(*(child.urn for child in self._resources.values())).apply(lambda _, text=text: text)
            for key, text in group.outputs.items()
        }
        self.register_outputs(self.outputs)


def _declare(
    parent: pulumi.Resource, name: str, group: ObjectGroup, values: Values
) -> dict[KubeObject | ObjectGroup, pulumi.Resource]:
    resources: dict[KubeObject | ObjectGroup, pulumi.Resource] = {}
    for member in group.members:
        logical_name = name + member.suffix
        if isinstance(member, ObjectGroup):
            resources[member] = ObjectsComponent(logical_name, member, values=values, opts=child_options(parent))
        else:
            resources[member] = _resource(parent, logical_name, member, values, resources)
    return resources


def _resource(
    parent: pulumi.Resource,
    logical_name: str,
    declared: KubeObject,
    values: Values,
    resources: Mapping[KubeObject | ObjectGroup, pulumi.Resource],
) -> pulumi.Resource:
    options = child_options(
        parent,
        depends_on=[resources[needed] for needed in declared.needs],
        ignore_changes=list(declared.ignore_changes) or None,
        replace_on_changes=list(declared.replace_on_changes) or None,
        delete_before_replace=declared.delete_before_replace or None,
        timeout=declared.timeout,
    )
    known = {placeholder: _meaning(value, resources) for placeholder, value in values.items()}
    body = {_SNAKE_CASE.get(key, key): _resolved(value, known) for key, value in declared.body.items()}
    kind = _class_of(declared.body["apiVersion"], declared.body["kind"])
    if kind is None:
        return apiextensions.CustomResource(logical_name, opts=options, **body)
    del body["api_version"], body["kind"]
    return kind(logical_name, opts=options, **body)


@cache
def _class_of(api_version: str, kind: str) -> Any:  # noqa: ANN401
    """Returns the typed class of an object; None for a custom resource."""
    group, _, version = api_version.rpartition("/")
    module = _GROUPS.get(group or "core")
    return getattr(import_module(f"pulumi_kubernetes.{module}.{version}"), kind) if module else None


def _meaning(
    value: pulumi.Input[Any] | FromDeclared, resources: Mapping[KubeObject | ObjectGroup, pulumi.Resource]
) -> Any:  # noqa: ANN401
    if not isinstance(value, FromDeclared):
        return value
    sources = (
        resource
        for declared, resource in resources.items()
        if isinstance(declared, KubeObject) and declared.body["kind"] == value.kind
    )
    return next(map(value.value, sources), None)


def _resolved(value: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Returns a value with its placeholders replaced."""
    if isinstance(value, Mapping):
        return {key: _resolved(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(inner, values) for inner in value]
    for placeholder, meaning in values.items() if isinstance(value, str) else ():
        if value == placeholder:
            return meaning
        if placeholder in value:
            before, _, after = value.partition(placeholder)
            return pulumi.Output.concat(before, meaning, after)
    return value
