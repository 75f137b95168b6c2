"""Looks things up among the Kubernetes objects that a spec returns as values."""

from collections.abc import Iterator
from typing import Any

from persia_infra.kube.objects import Body, KubeObject, ObjectGroup


class Objects:
    """The objects of a group, by kind and by their name in Kubernetes."""

    def __init__(self, group: ObjectGroup) -> None:
        self.group = group
        self.all = [member for _, member in group.named_objects("")]

    def one(self, kind: str, name: str) -> KubeObject:
        """The only object of that kind and name."""
        matching = [each for each in self.all if (each.body["kind"], each.body["metadata"]["name"]) == (kind, name)]
        assert len(matching) == 1, f"{kind} {name}: {len(matching)} among {sorted(self._all_names())}"
        return matching[0]

    def hashed(self, kind: str, base_name: str) -> Body:
        """The body of the only object of that kind whose name is the base and a hash of its content."""
        matching = [body for body in self.of_kind(kind) if body["metadata"]["name"].rpartition("-")[0] == base_name]
        assert len(matching) == 1, f"{kind} {base_name}: {len(matching)} among {sorted(self._all_names())}"
        return matching[0]

    def body(self, kind: str, name: str) -> Body:
        """The body of the only object of that kind and name."""
        return self.one(kind, name).body

    def of_kind(self, kind: str) -> list[Body]:
        """The bodies of all objects of a kind."""
        return [each.body for each in self.all if each.body["kind"] == kind]

    def names(self, kind: str) -> set[str]:
        """The names of all objects of a kind."""
        return {body["metadata"]["name"] for body in self.of_kind(kind)}

    def needs(self, kind: str, name: str) -> set[tuple[str, str]]:
        """Kind and name of everything that an object needs directly; a whole group stands for all of its objects."""
        return set(_flat(self.one(kind, name).needs))

    def pods(self) -> list[Body]:
        """The pod specs of all objects that have a template."""
        return [each.body["spec"]["template"]["spec"] for each in self.all if "template" in each.body.get("spec", {})]

    def _all_names(self) -> Iterator[tuple[str, str]]:
        return ((each.body["kind"], each.body["metadata"]["name"]) for each in self.all)


def _flat(needs: tuple[KubeObject | ObjectGroup, ...]) -> Iterator[tuple[str, str]]:
    for needed in needs:
        members = [member for _, member in needed.named_objects("")] if isinstance(needed, ObjectGroup) else [needed]
        yield from ((member.body["kind"], member.body["metadata"]["name"]) for member in members)


def container(pod: Body) -> dict[str, Any]:
    """The only container of a pod."""
    (only,) = pod["containers"]
    return only
