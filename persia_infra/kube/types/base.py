"""What all generated types have in common: null means absent, and rules apply to what users write.

Types say which keys there are and what shape their values have. Rules, in the other modules of `kube`, say which of
those values are acceptable. `rule_for` and `constrain` attach a rule to a type before the type is first used.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Self, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Strict, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel

from persia_infra.spec.base import Finding, Spec, refuse

TRUSTED: Final = {"trusted": True}
"""Validation context for objects that this library makes itself: rules do not apply to them."""

Rule = Callable[[Any], Iterator[Finding]]


def _as_text(value: Any) -> Any:  # noqa: ANN401
    return value.isoformat() if isinstance(value, datetime) else value


Integer = Annotated[int, Strict()]
Boolean = Annotated[bool, Strict()]
Time = Annotated[str, BeforeValidator(_as_text)]
"""A point in time. YAML reads one without quotes as a date."""


class KubeType(Spec):
    """A part of a Kubernetes object.

    It remembers which keys were given: lists and mappings that were left out are empty, but are not written.
    """

    model_config = ConfigDict(alias_generator=cache(to_camel))

    _rules: ClassVar[tuple[Rule, ...]] = ()

    def as_kubernetes(self) -> dict[str, Any]:
        """Returns exactly the keys that were given, in Kubernetes' spelling."""
        given = self.model_fields_set
        return {
            field.alias or name: _plain(value)
            for name, field in type(self).model_fields.items()
            if name in given and not field.exclude and (value := getattr(self, name)) is not None
        }

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:  # noqa: ANN401
        if not isinstance(data, Mapping) or all(value is not None for value in data.values()):
            return data
        known = {key for name, field in cls.model_fields.items() for key in (name, field.alias)}
        return {key: value for key, value in data.items() if value is not None or key not in known}

    @model_validator(mode="after")
    def _apply_rules(self, info: ValidationInfo) -> Self:
        if self._rules and info.context is not TRUSTED:
            refuse(finding for rule in self._rules for finding in rule(self))
        return self


def _plain(value: Any) -> Any:  # noqa: ANN401
    # Faster than pydantic's own way, which first builds a serializer for everything below.
    if isinstance(value, KubeType):
        return value.as_kubernetes()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


class KubeKind(KubeType):
    """An object with a kind of its own, which is always written."""

    @model_validator(mode="after")
    def _write_kind(self) -> Self:
        self.model_fields_set.update(("api_version", "kind"))
        return self


_Type = TypeVar("_Type", bound=KubeType)
_Rule = TypeVar("_Rule", bound=Rule)


def trusted(model: type[_Type], data: Mapping[str, Any]) -> _Type:
    """Returns an object that this library made itself, without validating it: building a validator takes longer.

    The tests validate everything that the library makes.

    Raises:
        KeyError: The type has no such key.
    """
    fields = _fields_by_key(model)
    values = {}
    for key, value in data.items():
        name, part = fields[key]
        values[name] = _trusted_value(part, value) if part else value
    return model.model_construct(**values)


def _trusted_value(part: type[KubeType], value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, list):
        return [_trusted_value(part, item) for item in value]
    return trusted(part, value) if isinstance(value, Mapping) else value


@cache
def _fields_by_key(model: type[KubeType]) -> dict[str, tuple[str, type[KubeType] | None]]:
    """The name of each field by its key in Kubernetes, and the type of its parts where that is a type of its own."""
    return {field.alias or name: (name, _part_of(field.annotation)) for name, field in model.model_fields.items()}


def _part_of(annotation: object) -> type[KubeType] | None:
    if isinstance(annotation, type) and issubclass(annotation, KubeType):
        return annotation
    if get_origin(annotation) is dict:
        return None
    return next((part for argument in get_args(annotation) if (part := _part_of(argument))), None)


def rule_for(model: type[KubeType], *fields: str) -> Callable[[_Rule], _Rule]:
    """Registers a function that finds what is wrong with a value.

    Args:
        model: The type that the rule is about, and its subclasses.
        fields: Without any, the rule is given the whole object. Otherwise it is given the value of each of these
            fields, even if other fields are wrong, and the places of its findings start at the field.
    """

    def register(rule: _Rule) -> _Rule:
        def check(value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401
            if info.context is not TRUSTED:
                refuse(rule(value))
            return value

        if not fields:
            model._rules = (*model._rules, rule)
        for field in fields:
            model.model_fields[field].metadata.append(AfterValidator(check))
        return rule

    return register


def constrain(annotation: object, *places: tuple[type[KubeType], str]) -> None:
    """Makes fields accept only what an annotated type such as `DnsLabel` accepts, in trusted data too."""
    for model, field in places:
        model.model_fields[field].metadata.extend(getattr(annotation, "__metadata__", ()))
