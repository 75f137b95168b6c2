"""The interface of a simulated Pulumi package.

The server (`server.py`) speaks Pulumi's provider protocol and turns each request into one of these calls, on
plain Python values: secrets are unwrapped before the call and wrapped again, at the same paths, in the result; a
value that is not known yet is `UNKNOWN`.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

# A JSON value that may hold UNKNOWN or a Secret at any depth.
PropertyValue = Any
Properties = dict[str, PropertyValue]


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Unknown":
        return self


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True)
class Secret:
    """A value that the package itself marks as secret, anywhere in its answer."""

    value: Any


class Seed(bytes):
    """The random bytes for an automatic name, with the project's configuration of such names."""

    proposed_name: str = ""
    naming: Literal["propose", "enforce", "disable"] = "propose"


@dataclass(frozen=True)
class Urn:
    """The URN of a resource; `type` is the resource's own token, without those of its parents."""

    text: str

    @property
    def type(self) -> str:
        return self.text.split("::")[2].rsplit("$", 1)[-1]

    @property
    def name(self) -> str:
        return self.text.split("::", 3)[3]


@dataclass(frozen=True)
class CheckFailure:
    """An input that a package refuses, with the reason."""

    property: str
    reason: str


ChangeKind = Literal["add", "delete", "update", "add-replace", "delete-replace", "update-replace"]


@dataclass
class Difference:
    """Changed properties, by paths in Pulumi's notation: `spec.template.spec.containers[0].image`."""

    detailed: dict[str, ChangeKind] = field(default_factory=dict)
    delete_before_replace: bool = False

    @property
    def replaces(self) -> list[str]:
        return [path for path, kind in self.detailed.items() if kind.endswith("-replace")]


class ProviderError(Exception):
    """A refusal; its text is shown to the user unchanged."""


class InitializationFailed(Exception):
    """The object exists but is not ready: it stays in the state, and the next `up` tries again."""

    def __init__(self, object_id: str, outputs: Properties, inputs: Properties, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.object_id, self.outputs, self.inputs, self.reasons = object_id, outputs, inputs, reasons


class Package(Protocol):
    """One configured provider of a package (`kubernetes`, `gcp`)."""

    name: str
    version: str

    def configure(self, variables: Properties) -> None: ...

    def check(
        self, urn: Urn, olds: Properties, news: Properties, seed: bytes
    ) -> tuple[Properties, list[CheckFailure]]: ...

    def diff(
        self, urn: Urn, object_id: str, old_inputs: Properties, old_outputs: Properties, news: Properties
    ) -> Difference: ...

    def create(self, urn: Urn, inputs: Properties, *, preview: bool, timeout: float) -> tuple[str, Properties]:
        """Returns id and outputs; in a preview the id is empty, and values that do not exist yet are `UNKNOWN`."""
        ...

    def read(
        self, urn: Urn, object_id: str, inputs: Properties, outputs: Properties
    ) -> tuple[Properties, Properties] | None:
        """Returns the current inputs and outputs, or None if the object is gone; empty inputs mean an import."""
        ...

    def update(
        self,
        urn: Urn,
        object_id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
        *,
        preview: bool,
        timeout: float,
    ) -> Properties: ...

    def delete(self, urn: Urn, object_id: str, inputs: Properties, outputs: Properties, *, timeout: float) -> None:
        """Returns once the object is gone; it is not an error if it was gone already."""
        ...

    def invoke(self, token: str, arguments: Properties) -> Properties: ...

    def cancel(self) -> None:
        """Ends all waits."""
        ...
