"""Bad input as one line each: the file, the place in it, what follows from it, and the fix.

The text never shows the value that was found: descriptions may hold secrets.
"""

import difflib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from persia_infra.spec.base import Finding, Place


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with, or worth saying about, an input."""

    file: str
    path: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.path, self.message) if part)


class InputError(Exception):
    """Input that cannot be used; holds every problem that was found, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


def problems_from(
    error: ValidationError,
    model: type[BaseModel],
    data: object,
    *,
    file: str = "",
    prefix: Place = (),
) -> list[Problem]:
    """Says each error of a validation in the words of the file that was validated.

    Args:
        error: What pydantic raised.
        model: The model that `data` was validated against.
        data: The input, read for its spelling of the keys only.
        file: Shown first in every line.
        prefix: Keys that lead from the top of the file to `data`.
    """
    problems: list[Problem] = []
    for place, message in findings_from(error, model, data):
        problem = Problem(file, dotted((*prefix, *place)), message)
        if problem not in problems:
            problems.append(problem)
    return problems


def findings_from(error: ValidationError, model: type[BaseModel], data: object) -> list[Finding]:
    """The same as places and messages, for a model that validates a part of itself by another one."""
    found: list[Finding] = []
    for one in error.errors(include_url=False, include_input=False):
        for place, message in one.get("ctx", {}).get("findings") or [((), _message(one))]:
            shown, owner = _follow(model, data, (*one["loc"], *place))
            if one["type"] == "extra_forbidden":
                message = _unknown_key(str(one["loc"][-1]), owner)
            found.append((tuple(shown), message))
    return found


def nearest(word: str, known: Sequence[str]) -> str:
    """A ready clause that names the nearest known word, or all of them when none is near."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known here: " + ", ".join(known) if known else "nothing is known here"


def _message(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    match kind:
        case "missing":
            return "is required and missing"
        case "value_error":
            return str(context["error"])
        case "literal_error" | "enum":
            return f"not one of the values it can have; write {context['expected']}"
        case "union_tag_not_found":
            return f"says no {context['discriminator']}, so nobody can tell what it describes; add it"
        case "union_tag_invalid":
            return f"is of an unknown {context['discriminator']}; known: {context['expected_tags']}"
        case "string_type":
            return "must be text; put it in quotes"
        case "int_type" | "int_parsing" | "int_from_float":
            return "must be a whole number"
        case "bool_type" | "bool_parsing":
            return "must be true or false"
        case "model_type" | "dict_type" | "mapping_type" | "model_attributes_type":
            return "must be a mapping of keys to values"
        case "too_short" | "string_too_short":
            return "is empty; give at least one"
        case "invalid_key":
            return "has a key that is no text; put it in quotes"
        case "list_type" | "tuple_type":
            return "must be a list"
        case _:
            text = str(error["msg"]).removeprefix("Input should be ")
            return text if text == error["msg"] else f"must be {text}"


def _unknown_key(key: str, owner: type[BaseModel] | None) -> str:
    known = [field.alias or name for name, field in owner.model_fields.items()] if owner else []
    if owner and key in owner.model_fields:
        return f"is {owner.model_fields[key].alias!r} in its other spelling, and both are given; remove one"
    return f"unknown key, which would have no effect; {nearest(key, known)}"


def dotted(keys: Sequence[str | int]) -> str:
    """A place as it is shown: `environment.pools.gpu.taints[0].key`."""
    text = ""
    for key in keys:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f".{key}" if text else str(key)
    return text


def traced(place: Place, origins: Mapping[Place, Place]) -> Place:
    """The place that a thing has in the input, by the longest part of its way that has an origin there."""
    for length in range(len(place), 0, -1):
        if place[:length] in origins:
            return (*origins[place[:length]], *place[length:])
    return place


def document_place(documents: Sequence[object], *indexes: int) -> tuple[str, ...]:
    """Where in a file something is said, of one document or of several in the same words."""
    return (f"documents[{','.join(map(str, indexes))}]",) if len(documents) > 1 else ()


def _follow(model: type[BaseModel], data: object, loc: Place) -> tuple[list[str | int], type[BaseModel] | None]:
    """Walks down to the place of an error.

    Returns:
        The keys as the input spells them, without the tags that pydantic adds for unions, and the model
        that holds the last key.
    """
    here: object = model
    owner: type[BaseModel] | None = model
    shown: list[str | int] = []
    for key in loc:
        if key == "[key]":
            continue
        here = _bare(here)
        if isinstance(here, dict):
            if key in here:
                here = here[key]
                continue
            here = here.get(data.get("kind")) if isinstance(data, Mapping) else None
        if isinstance(here, type) and issubclass(here, BaseModel):
            owner = here
            field = _field(here, str(key))
            spelled = _spelling(key, field, data)
            shown.append(spelled)
            here = field[1].annotation if field else None
            data = data.get(spelled) if isinstance(data, Mapping) else None
        else:
            owner = None
            shown.append(key)
            arguments = typing.get_args(here)
            here = arguments[-1] if arguments and arguments[-1] is not Ellipsis else (arguments or (None,))[0]
            if isinstance(data, Mapping):
                data = data.get(key)
            elif isinstance(data, Sequence) and isinstance(key, int) and key < len(data):
                data = data[key]
    return shown, owner


def _bare(annotation: object) -> object:
    """An annotation without Annotated and without None; a tagged union becomes its choices by tag."""
    while True:
        metadata = getattr(annotation, "__metadata__", ())
        choices = next((m.choices for m in metadata if hasattr(m, "choices")), None)
        if choices is not None:
            return dict(choices)
        if typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
            continue
        if typing.get_origin(annotation) in (typing.Union, types.UnionType):
            rest = [a for a in typing.get_args(annotation) if a is not type(None)]
            if len(rest) == 1:
                annotation = rest[0]
                continue
        return annotation


def _field(model: type[BaseModel], key: str) -> tuple[str, FieldInfo] | None:
    for name, field in model.model_fields.items():
        if key in (name, field.alias):
            return name, field
    return None


def _spelling(key: str | int, field: tuple[str, FieldInfo] | None, data: object) -> str | int:
    if field and isinstance(data, Mapping):
        name, info = field
        for candidate in (key, info.alias, name):
            if candidate in data:
                return typing.cast("str | int", candidate)
    return field[1].alias or key if field else key
