"""The fields of a model with everything that a reader wants to know about them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from persia_infra.environment import EnvironmentSpec
from persia_infra.spec.descriptions import field_descriptions
from persia_infra.spec.shapes import Shape, key_of, reachable_models, shape_of_field

_KUBERNETES_ROOM = "persia_infra.kube."
_POD_TEMPLATE = "PodTemplate"


@dataclass(frozen=True)
class FieldDoc:
    """A field as it is documented."""

    key: str
    """The field's key, as files spell it."""
    shape: Shape
    required: bool
    default: Any
    """The value of an absent field as JSON has it; None if there is none, or if it is empty."""
    description: str
    in_kubernetes: bool = False
    """Whether Kubernetes documents the field, and the description only says where."""

    @property
    def default_text(self) -> str:
        """The default as YAML has it on one line; nothing where there is none."""
        if self.default is None:
            return ""
        return self.default if isinstance(self.default, str) else json.dumps(self.default)

    def as_json(self) -> dict[str, Any]:
        """Returns the field as `explain --json` prints it."""
        return {
            "field": self.key,
            "type": self.shape.words,
            "required": self.required,
            "default": self.default,
            "description": self.description,
        }


def fields_of(model: type[BaseModel]) -> list[FieldDoc]:
    """Returns the documentation of a model's fields, in the model's order."""
    descriptions = field_descriptions(model)
    return [
        FieldDoc(
            key=key_of(name, field),
            shape=shape_of_field(field),
            required=field.is_required(),
            default=_default(field),
            description=descriptions.get(name) or _as_in_kubernetes(model, key_of(name, field)),
            in_kubernetes=name not in descriptions and is_kubernetes_type(model),
        )
        for name, field in model.model_fields.items()
    ]


def is_kubernetes_type(model: type[BaseModel]) -> bool:
    """Tells whether a model is a type of Kubernetes' own API, which `kubectl explain` documents."""
    return model.__module__.startswith(_KUBERNETES_ROOM)


def _default(field: FieldInfo) -> Any:  # noqa: ANN401
    default = field.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
        default = default.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return None if default is PydanticUndefined or default in ({}, [], ()) else default


def _as_in_kubernetes(model: type[BaseModel], key: str) -> str:
    if not is_kubernetes_type(model):
        return ""
    path = _kubectl_paths().get(model)
    return f"As in Kubernetes: kubectl explain {path}.{key}." if path else "As in Kubernetes."


@cache
def _kubectl_paths() -> dict[type[BaseModel], str]:
    """Returns the shortest path below `pod` at which each type of Kubernetes is documented."""
    paths: dict[type[BaseModel], str] = {}
    waiting = [(model, "pod") for model in _pod_templates()]
    while waiting:
        model, path = waiting.pop(0)
        if model in paths:
            continue
        paths[model] = path
        for name, field in model.model_fields.items():
            below = shape_of_field(field).objects.values()
            waiting += [(inner, f"{path}.{key_of(name, field)}") for inner in below]
    return paths


def _pod_templates() -> Iterator[type[BaseModel]]:
    for model in reachable_models(EnvironmentSpec):
        if is_kubernetes_type(model) and model.__name__.startswith(_POD_TEMPLATE):
            yield model
