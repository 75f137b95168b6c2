"""What a field can hold, read from its type: an object, a list, a mapping, one of several kinds, or a plain value."""

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_PLAIN_WORDS: Mapping[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Any: "anything",
    dict: "mapping",
    list: "list",
}
_PLURALS: Mapping[str, str] = {
    "object": "objects",
    "object with a kind": "objects with a kind",
    "whole number": "whole numbers",
    "list": "lists",
    "mapping": "mappings",
}


@dataclass(frozen=True)
class Shape:
    """The type of a field as a reader sees it; at most one of its parts is set, and none for a plain value."""

    words: str
    """The type in plain words."""
    model: type[BaseModel] | None = None
    """The object that it is."""
    items: "Shape | None" = None
    """What the entries of the list are."""
    values: "Shape | None" = None
    """What the values of the mapping are."""
    kinds: Mapping[str, type[BaseModel]] | None = None
    """The objects that it can be, by their `kind`."""

    @property
    def objects(self) -> Mapping[str, type[BaseModel]]:
        """The objects that it holds, directly or as entries, by kind; the kind is empty where there is only one."""
        inner = self.items or self.values
        if inner is not None:
            return inner.objects
        if self.model is not None:
            return {"": self.model}
        return self.kinds or {}


def shape_of_field(field: FieldInfo) -> Shape:
    """Returns the shape of a model's field."""
    kinds = _kinds(field.metadata)
    if kinds is not None:
        return Shape("object with a kind", kinds=kinds)
    return shape_of(field.annotation)


def shape_of(annotation: object) -> Shape:
    """Returns the shape of an annotation; None as an alternative is left out."""
    annotation = bare(annotation)
    if isinstance(annotation, dict):
        return Shape("object with a kind", kinds=annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return Shape("object", model=annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        values = ", ".join(map(str, arguments))
        return Shape(f"one of {values}" if len(arguments) > 1 else values)
    if origin in (list, tuple) and arguments:
        items = shape_of(arguments[0])
        return Shape(f"list of {_plural(items.words)}", items=items)
    if origin is dict and arguments:
        values = shape_of(arguments[1])
        return Shape(f"mapping of names to {_plural(values.words)}", values=values)
    if origin in (typing.Union, types.UnionType):
        shapes = [shape_of(argument) for argument in arguments if argument is not type(None)]
        words = " or ".join(dict.fromkeys(shape.words for shape in shapes))
        return Shape(words, model=next((shape.model for shape in shapes if shape.model), None))
    return Shape(_PLAIN_WORDS.get(annotation, getattr(annotation, "__name__", "anything")))


def bare(annotation: object) -> object:
    """Returns an annotation without Annotated and None; a union that is told apart by kind becomes a dict of models."""
    while True:
        kinds = _kinds(getattr(annotation, "__metadata__", ()))
        if kinds is not None:
            return dict(kinds)
        if typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
            continue
        if typing.get_origin(annotation) in (typing.Union, types.UnionType):
            rest = [argument for argument in typing.get_args(annotation) if argument is not type(None)]
            if len(rest) == 1:
                annotation = rest[0]
                continue
        return annotation


def reachable_models(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yields a model and all models below it, each once, in the order of their first use."""
    seen: set[type[BaseModel]] = set()
    waiting = [root]
    while waiting:
        model = waiting.pop(0)
        if model in seen:
            continue
        seen.add(model)
        yield model
        for field in model.model_fields.values():
            waiting += shape_of_field(field).objects.values()


def key_of(name: str, field: FieldInfo) -> str:
    """Returns the key of a field as files spell it."""
    return field.alias or name


def _kinds(metadata: typing.Iterable[object]) -> Mapping[str, type[BaseModel]] | None:
    return next((mark.choices for mark in metadata if hasattr(mark, "choices")), None)  # pyright: ignore[reportAttributeAccessIssue]


def _plural(words: str) -> str:
    noun, _, rest = words.partition(" of ") if words.startswith(("list", "mapping")) else (words, "", "")
    plural = _PLURALS.get(noun, noun)
    return f"{plural} of {rest}" if rest else plural
