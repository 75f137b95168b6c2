"""How a component makes its children: options and labels in one place.

A component's own options are never merged into its children's: providers and protection reach them through
the parent, and the rest (aliases, import) is about the component alone.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pulumi

if TYPE_CHECKING:
    from pulumi_kubernetes import meta


def token(component: str) -> str:
    """The type token of a component."""
    return f"persia-infra:index:{component}"


def child_options(
    parent: pulumi.Resource,
    *,
    depends_on: Sequence[pulumi.Resource] | None = None,
    provider: pulumi.ProviderResource | None = None,
    providers: list[pulumi.ProviderResource] | None = None,
    ignore_changes: list[str] | None = None,
    replace_on_changes: list[str] | None = None,
    protect: bool | None = None,
    timeout: str | None = None,
) -> pulumi.ResourceOptions:
    """Options of a child resource.

    Args:
        parent: The component.
        depends_on: What has to be there before the child, and may go only after it.
        provider: For a child that does not inherit one through its parent.
        providers: Providers for a child that is a component itself.
        ignore_changes: Properties that others change after creation.
        replace_on_changes: Properties whose change makes a new resource although the provider would update it.
        protect: The engine refuses to delete or replace it, in a preview too.
        timeout: How long creating and updating may take, where the provider's own limit is too short.
    """
    return pulumi.ResourceOptions(
        parent=parent,
        depends_on=depends_on,
        provider=provider,
        providers=providers,
        ignore_changes=ignore_changes,
        replace_on_changes=replace_on_changes,
        protect=protect,
        custom_timeouts=pulumi.CustomTimeouts(create=timeout, update=timeout) if timeout else None,
    )


def selector_labels(app: str, instance: str, component: str) -> dict[str, str]:
    """Labels that never change once an object exists, fit for selectors."""
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


def metadata(object_name: str, namespace: pulumi.Input[str] | None, labels: dict[str, str]) -> "meta.v1.ObjectMetaArgs":
    """Metadata of an object whose name others rely on, so Pulumi must not add to it."""
    from pulumi_kubernetes import meta

    return meta.v1.ObjectMetaArgs(name=object_name, namespace=namespace, labels=labels)
