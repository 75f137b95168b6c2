"""The rights of operators, and the RBAC rules that grant exactly those."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from persia_infra.kube.objects import Body, without_empty


@dataclass(frozen=True)
class Right:
    """One rule of a role; the tests compare it with the requests that the operator's own program makes."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """The names of the objects that it is limited to; empty for all objects."""
    used_when: str | None = None
    """When the operator needs it, if no test makes it do so; None if a test shows every verb in use."""


@dataclass(frozen=True)
class Rights:
    """The rights of an operator, by where they apply."""

    everywhere: tuple[Right, ...] = ()
    """Rights in the whole cluster, even if the operator watches only one namespace."""
    watched: tuple[Right, ...] = ()
    """Rights in the namespace that it watches, or in all namespaces if it watches all."""
    own: tuple[Right, ...] = ()
    """Rights in the namespace that it runs in."""

    def in_all_namespaces(self, watched: str | None) -> tuple[Right, ...]:
        """The rights that apply in the whole cluster."""
        return self.everywhere if watched else (*self.everywhere, *beyond(self.everywhere, self.watched))

    def in_watched(self) -> tuple[Right, ...]:
        """The rights in the only namespace that the operator watches."""
        return tuple(beyond(self.everywhere, self.watched))

    def in_own(self, own: str, watched: str | None) -> tuple[Right, ...]:
        """The rights in the namespace that it runs in, without those that it already has there."""
        wider = (*self.everywhere, *self.watched) if watched in (None, own) else self.everywhere
        return tuple(beyond(wider, self.own))


def beyond(wider: Sequence[Right], rights: Sequence[Right]) -> Iterator[Right]:
    """Yields the part of `rights` that is not covered by `wider`."""
    known = {
        (right.group, resource, verb)
        for right in wider
        if not right.names
        for resource in right.resources
        for verb in right.verbs
    }
    for right in rights:
        left: dict[tuple[str, ...], list[str]] = {}
        for resource in right.resources:
            verbs = tuple(verb for verb in right.verbs if (right.group, resource, verb) not in known)
            left.setdefault(verbs, []).append(resource)
        yield from (
            replace(right, resources=tuple(resources), verbs=verbs) for verbs, resources in left.items() if verbs
        )


def policy_rules(rights: Sequence[Right]) -> list[Body]:
    """Returns the rules of a Role or ClusterRole."""
    return [
        without_empty(
            {
                "apiGroups": [right.group],
                "resources": list(right.resources),
                "verbs": list(right.verbs),
                "resourceNames": list(right.names),
            }
        )
        for right in rights
    ]
