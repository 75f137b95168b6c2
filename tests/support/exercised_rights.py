"""What an operator's program asked for, held against the rights that its component gives it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from persia_infra.operators.rights import Right, Rights

SCOPES = ("everywhere", "watched", "own")


class Use(NamedTuple):
    """One thing done to objects of one kind, in one namespace or, where that is None, in the whole cluster."""

    namespace: str | None
    group: str
    resource: str
    verb: str
    name: str = ""
    """Of the only object, where a right names it."""

    def allows(self, use: "Use") -> bool:
        return self.namespace in (None, use.namespace) and self[1:4] == use[1:4] and self.name in ("", use.name)


@dataclass(frozen=True)
class Account:
    """An operator's ServiceAccount: what it may do, and what it was seen to do."""

    namespace: str
    rights: Rights
    requests: list[dict[str, Any]]
    watched: str | None = None
    group: str | None = None
    """Only rights of this group have to have been used."""
    tries: frozenset[tuple[str, str]] = frozenset()
    """Resources and verbs that it tries everywhere and does without where it may not."""
    partly: bool = False
    """Only the rights in its own namespace have all been used."""

    def wrong(self) -> dict[str, list[Use]]:
        """What was refused, what is too much, and what is not declared."""
        used, refused, grants = self._used(), self._refused(), self.grants()
        found = {
            "asked for what it may not": {use for use in refused if (use.resource, use.verb) not in self.tries},
            "has rights that it does not use": {
                grant for grant in self._to_be_used() if not any(grant.allows(use) for use in used)
            },
            "has rights from elsewhere": {use for use in used if not any(grant.allows(use) for grant in grants)},
        }
        return {what: sorted(uses, key=str) for what, uses in found.items() if uses}

    def grants(self) -> set[Use]:
        return {use for namespace, rights in self._granted().items() for use in _uses(namespace, rights)}

    def unnoticed(self) -> list[str]:
        """Rights in use that could be left out of the declared ones without a complaint."""
        found = []
        for scope, left_out, fewer in _each_left_out(self.rights, self.group):
            less = replace(self, rights=fewer)
            if less.grants() != self.grants() and not less.wrong() and self._uses(scope, left_out):
                found.append(f"{scope}: {' '.join(filter(None, left_out[1:]))}")
        return found

    def _uses(self, scope: str, declared: Use) -> bool:
        if not self.partly or scope == "own":
            return True
        alike = (use for use in self._used() if use[1:4] == declared[1:4])
        return any(scope == "everywhere" or use.namespace == self.watched for use in alike)

    def _used(self) -> set[Use]:
        return {self._use(event) for event in self._about_objects() if event["responseStatus"]["code"] != 403}

    def _refused(self) -> set[Use]:
        return {self._use(event) for event in self._about_objects() if event["responseStatus"]["code"] == 403}

    def _about_objects(self) -> Iterator[dict[str, Any]]:
        return (event for event in self.requests if "objectRef" in event)

    def _use(self, event: dict[str, Any]) -> Use:
        target = event["objectRef"]
        resource = "/".join(filter(None, [target.get("resource", ""), target.get("subresource", "")]))
        name = target.get("name", "")
        named = name if any(name in right.names for right in self.rights.everywhere) else ""
        return Use(target.get("namespace"), target.get("apiGroup", ""), resource, event["verb"], named)

    def _to_be_used(self) -> Iterator[Use]:
        own = {self.namespace: self.rights.in_own(self.namespace, self.watched)}
        for namespace, rights in (own if self.partly else self._granted()).items():
            for use in _uses(namespace, (right for right in rights if right.used_when is None)):
                if self.group in (None, use.group):
                    yield use

    def _granted(self) -> Mapping[str | None, tuple[Right, ...]]:
        rights, watched = self.rights, self.watched
        granted: dict[str | None, tuple[Right, ...]] = {None: rights.in_all_namespaces(watched)}
        if watched:
            granted[watched] = rights.in_watched()
        granted[self.namespace] = granted.get(self.namespace, ()) + rights.in_own(self.namespace, watched)
        return granted


def _uses(namespace: str | None, rights: Iterable[Right]) -> Iterator[Use]:
    for right in rights:
        for resource in right.resources:
            for verb in right.verbs:
                yield from (Use(namespace, right.group, resource, verb, name) for name in right.names or ("",))


def _each_left_out(rights: Rights, group: str | None) -> Iterator[tuple[str, Use, Rights]]:
    """The rights without one verb on one resource of one scope, for each that a test shows in use."""
    for scope in SCOPES:
        declared: tuple[Right, ...] = getattr(rights, scope)
        for index, right in enumerate(declared):
            if right.used_when is not None or group not in (None, right.group):
                continue
            for use in _uses(None, [right]):
                fewer = (*declared[:index], *_without(right, use), *declared[index + 1 :])
                yield scope, use, replace(rights, **{scope: fewer})


def _without(right: Right, left_out: Use) -> Iterator[Right]:
    for use in _uses(None, [right]):
        if use != left_out:
            names = (use.name,) if use.name else ()
            yield Right(use.group, (use.resource,), (use.verb,), names=names)
