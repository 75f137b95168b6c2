"""Errors in the input, one line each: the file, the place in it, the consequence and the fix.

A line never shows the value itself, because descriptions may hold secrets.
"""

import difflib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from persia_infra.spec.base import Finding, Place
from persia_infra.spec.shapes import bare


@dataclass(frozen=True)
class Problem:
    """One error in an input, or one note about it."""

    file: str
    path: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.path, self.message) if part)


class InputError(Exception):
    """Input that cannot be used, with all of its problems, not only the first."""

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
    """Returns the errors of a validation as problems of the file that was validated.

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
    """Returns the errors of a validation as places and messages, with keys as the input spells them."""
    findings: list[Finding] = []
    for details in error.errors(include_url=False, include_input=False):
        for place, message in details.get("ctx", {}).get("findings") or [((), _message(details))]:
            shown, owner = _follow(model, data, (*details["loc"], *place))
            if details["type"] == "extra_forbidden":
                message = _unknown_key(str(details["loc"][-1]), owner)
            findings.append((tuple(shown), message))
    return findings


def nearest(word: str, known: Sequence[str]) -> str:
    """Returns a clause that suggests the most similar known word, or lists all of them if none is similar."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known here: " + ", ".join(known) if known else "no key is known here"


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
            return f"has no {context['discriminator']}; add it"
        case "union_tag_invalid":
            return f"has an unknown {context['discriminator']}; known: {context['expected_tags']}"
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
            return "has a key that is not text; put it in quotes"
        case "list_type" | "tuple_type":
            return "must be a list"
        case "float_type" | "float_parsing":
            return "must be a number"
        case "finite_number":
            return "must be a finite number"
        case "greater_than":
            return f"must be greater than {context['gt']}"
        case "greater_than_equal":
            return f"must be greater than or equal to {context['ge']}"
        case "less_than":
            return f"must be less than {context['lt']}"
        case "less_than_equal":
            return f"must be less than or equal to {context['le']}"
        case "datetime_type" | "datetime_parsing" | "datetime_from_date_parsing":
            return "must be a date and time, such as 2026-12-24T00:00:00Z"
        case _:
            return str(error["msg"])


def _unknown_key(key: str, owner: type[BaseModel] | None) -> str:
    known = [field.alias or name for name, field in owner.model_fields.items()] if owner else []
    if owner and key in owner.model_fields:
        return f"is another spelling of {owner.model_fields[key].alias!r}, which is given too; remove one"
    return f"unknown key, which would have no effect; {nearest(key, known)}"


def dotted(keys: Sequence[str | int]) -> str:
    """Returns a place as messages show it: `environment.pools.gpu.taints[0].key`."""
    text = ""
    for key in keys:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f".{key}" if text else str(key)
    return text


def traced(place: Place, origins: Mapping[Place, Place]) -> Place:
    """Returns the place in the input that a place in its translation comes from.

    The longest prefix of the place that has an origin decides.
    """
    for length in range(len(place), 0, -1):
        if place[:length] in origins:
            return (*origins[place[:length]], *place[length:])
    return place


def document_place(documents: Sequence[object], *indexes: int) -> tuple[str, ...]:
    """Returns the place of documents in a file; nothing if the file has only one."""
    return (f"documents[{','.join(map(str, indexes))}]",) if len(documents) > 1 else ()


def _follow(model: type[BaseModel], data: object, loc: Place) -> tuple[list[str | int], type[BaseModel] | None]:
    """Follows a model down to the place of an error.

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
        here = bare(here)
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
