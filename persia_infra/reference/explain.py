"""Finds the documentation of a field by its path, such as `pools.gpu.spot`."""

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from persia_infra.environment import EnvironmentSpec
from persia_infra.reference.fields import FieldDoc, fields_of
from persia_infra.spec.errors import InputError, Problem, nearest
from persia_infra.spec.shapes import Shape

ROOT = "environment"
_KEY = re.compile(r"[^.\[\]]+|\[\d+\]")


@dataclass(frozen=True)
class Explanation:
    """What is known about one place of a description."""

    path: str
    shape: Shape
    """The shape of this place: that of one entry, if the path names an entry of a mapping or list."""
    field: FieldDoc | None
    """The field that the path ends in; None for the top, for an entry and for a kind of job."""
    fields: list[FieldDoc] = dataclasses.field(default_factory=list)
    """The fields of the object that is here."""
    kinds: list[str] = dataclasses.field(default_factory=list)
    """The kinds of the object that is here, where it has several."""
    found_in: list[str] = dataclasses.field(default_factory=list)
    """The kinds that have the field, where the path leaves the kind open."""

    def as_json(self) -> dict[str, Any]:
        """Returns the explanation as `explain --json` prints it."""
        own = self.field.as_json() if self.field else {"required": False, "default": None, "description": ""}
        return {
            **own,
            "field": self.path,
            "type": self.shape.words,
            "fields": [inner.as_json() for inner in self.fields],
            "kinds": self.kinds,
            "foundIn": self.found_in,
        }


def explain(path: str) -> Explanation:
    """Explains the field at a path from the top of an environment.

    Any key stands for an entry of a mapping, and `[0]` for one of a list, which may also be left out. A kind of job
    may stand where the job's name would.

    Raises:
        InputError: There is no such field.
    """
    keys = _KEY.findall(path)
    if keys[:1] == [ROOT]:
        keys = keys[1:]
    shape, doc = Shape("object", model=EnvironmentSpec), None
    found_in: list[str] = []
    for index, key in enumerate(keys):
        if _swallows_rest(shape):
            break
        found_in = [kind for kind, model in shape.objects.items() if kind and _find(model, key)] or found_in
        shape, doc = _step(shape, key, path=".".join(keys[: index + 1]))
    objects = shape.objects
    kinds = [kind for kind in objects if kind]
    fields = fields_of(objects[""]) if "" in objects else []
    return Explanation(".".join(keys).replace(".[", "[") or ROOT, shape, doc, fields, kinds, found_in)


def _swallows_rest(shape: Shape) -> bool:
    """Tells whether the rest of a path is a key of a mapping, which may contain dots: `limits.nvidia.com/gpu`."""
    return shape.values is not None and not shape.values.objects and shape.values.values is None


def _step(shape: Shape, key: str, *, path: str) -> tuple[Shape, FieldDoc | None]:
    if shape.values is not None:
        if shape.values.kinds and key in shape.values.kinds:
            return Shape("object", model=shape.values.kinds[key]), None
        return shape.values, None
    if shape.items is not None:
        return (shape.items, None) if key.startswith("[") else _step(shape.items, key, path=path)
    models = list(shape.objects.values())
    doc = next((doc for model in models if (doc := _find(model, key))), None)
    if doc is None:
        raise InputError([Problem("", path, f"there is no such field; {nearest(key, _known(shape))}")])
    return doc.shape, doc


def _known(shape: Shape) -> list[str]:
    return list(dict.fromkeys(doc.key for model in shape.objects.values() for doc in fields_of(model)))


def _find(model: type[BaseModel], key: str) -> FieldDoc | None:
    """Returns the field with a key in either spelling."""
    names = dict(zip(model.model_fields, fields_of(model), strict=True))
    return names.get(key) or next((doc for doc in names.values() if doc.key == key), None)
