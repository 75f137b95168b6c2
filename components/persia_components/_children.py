"""The resource options of the children of all components.

A component's own options are never merged into its children's: providers and protection are inherited from the
parent, and the others (aliases, import) apply only to the component.
"""

from collections.abc import Sequence

import pulumi


def token(component: str) -> str:
    """Returns the type token of a component."""
    return f"persia-infra:index:{component}"


def child_options(
    parent: pulumi.Resource,
    *,
    depends_on: Sequence[pulumi.Resource] | None = None,
    provider: pulumi.ProviderResource | None = None,
    providers: list[pulumi.ProviderResource] | None = None,
    ignore_changes: list[str] | None = None,
    replace_on_changes: list[str] | None = None,
    delete_before_replace: bool | None = None,
    protect: bool | None = None,
    timeout: str | None = None,
) -> pulumi.ResourceOptions:
    """Returns the options of a child resource.

    Args:
        parent: The component.
        depends_on: Resources that have to exist before the child, and are deleted after it.
        provider: The provider of a child that does not inherit one from its parent.
        providers: The providers of a child that is itself a component.
        ignore_changes: Properties that others change after the creation.
        replace_on_changes: Properties whose change requires a replacement, although the provider would update them.
        delete_before_replace: Whether a replacement deletes the old resource first.
        protect: Whether the engine refuses to delete or replace the resource, even in a preview.
        timeout: How long creating and updating may take, if the provider's own limit is too short.
    """
    return pulumi.ResourceOptions(
        parent=parent,
        depends_on=depends_on,
        provider=provider,
        providers=providers,
        ignore_changes=ignore_changes,
        replace_on_changes=replace_on_changes,
        delete_before_replace=delete_before_replace,
        protect=protect,
        custom_timeouts=pulumi.CustomTimeouts(create=timeout, update=timeout) if timeout else None,
    )
