"""What a simulated Pulumi package answers.

The server (`server.py`) speaks Pulumi's provider protocol and turns each request into one of these calls,
on plain Python values: secrets are unwrapped before the call and wrapped again, at the same paths, in what
comes back; a value that is not known yet is `UNKNOWN`.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

# What JSON holds, or UNKNOWN, or a Secret, at any depth.
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
    """A value that a package marks as secret of its own accord, wherever in its answer."""

    value: Any


class Seed(bytes):
    """The random bytes a name is made from, with what the project's configuration says about names."""

    proposed_name: str = ""
    naming: Literal["propose", "enforce", "disable"] = "propose"


@dataclass(frozen=True)
class Urn:
    """A resource's URN, taken apart: `type` is the resource's own token, without its parents'."""

    text: str

    @property
    def type(self) -> str:
        return self.text.split("::")[2].rsplit("$", 1)[-1]

    @property
    def name(self) -> str:
        return self.text.split("::", 3)[3]


@dataclass(frozen=True)
class CheckFailure:
    property: str
    reason: str


ChangeKind = Literal["add", "delete", "update", "add-replace", "delete-replace", "update-replace"]


@dataclass
class Difference:
    """Keys of `detailed` are property paths, as Pulumi writes them: `spec.template.spec.containers[0].image`."""

    detailed: dict[str, ChangeKind] = field(default_factory=dict)
    delete_before_replace: bool = False

    @property
    def replaces(self) -> list[str]:
        return [path for path, kind in self.detailed.items() if kind.endswith("-replace")]


class ProviderError(Exception):
    """A refusal; its text reaches the user as it is."""


class InitializationFailed(Exception):
    """The object exists but did not come up: it is kept in the state, and tried again on the next `up`."""

    def __init__(self, object_id: str, outputs: Properties, inputs: Properties, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.object_id, self.outputs, self.inputs, self.reasons = object_id, outputs, inputs, reasons


class Package(Protocol):
    """One package (`kubernetes`, `gcp`), one configured provider of it: the server makes one for each."""

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
        """The id and outputs; in a preview the id is empty and what only the real thing knows is `UNKNOWN`."""
        ...

    def read(
        self, urn: Urn, object_id: str, inputs: Properties, outputs: Properties
    ) -> tuple[Properties, Properties] | None:
        """The inputs and outputs as they are now; None when it is gone. With empty inputs it is an import."""
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
        """Returns when it is gone; an object that is gone already is not an error."""
        ...

    def invoke(self, token: str, arguments: Properties) -> Properties: ...

    def cancel(self) -> None:
        """Ends every wait under way."""
        ...
