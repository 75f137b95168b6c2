"""The JSON Schema of a stack's configuration file, for editors.

It never objects to a file that `check` accepts: both spellings of a key are accepted (only Kubernetes' own is
offered), and so are older dialects of jobs. Rules between fields are left to `check`.
"""

import types
import typing
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel, BeforeValidator

from persia_infra.environment import EnvironmentSpec
from persia_infra.reference.fields import fields_of
from persia_infra.spec.descriptions import model_description
from persia_infra.spec.shapes import bare, key_of
from persia_infra.stack import CONFIG_KEY

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: Mapping[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    list: {"type": "array"},
    date: {"type": "string"},
    datetime: {"type": "string"},
}
_BOUNDS = ((Ge, "ge", "minimum"), (Gt, "gt", "exclusiveMinimum"), (Le, "le", "maximum"), (Lt, "lt", "exclusiveMaximum"))


def stack_schema(config_key: str = CONFIG_KEY) -> Schema:
    """Returns the JSON Schema (draft 2020-12) of a `Pulumi.<stack>.yaml`.

    Args:
        config_key: The key under `config` that holds the environment.
    """
    definitions = _Definitions()
    environment = definitions.reference(EnvironmentSpec)
    config = {
        "type": "object",
        "description": "The stack's configuration; keys of other packages are allowed.",
        "properties": {config_key: environment},
        "required": [config_key],
    }
    return {
        "$schema": _DRAFT,
        "title": "Configuration file of a persia-infra stack",
        "type": "object",
        "properties": {"config": config},
        "required": ["config"],
        "$defs": definitions.schemas,
    }


class _Definitions:
    """Schemas of models by name, each written once."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._names: dict[type[BaseModel], str] = {}

    def reference(self, model: type[BaseModel]) -> Schema:
        if model not in self._names:
            name = model.__name__.lstrip("_")
            if name in self.schemas:
                name = f"{model.__module__}.{name}"
            self._names[model] = name
            self.schemas[name] = {}
            self.schemas[name] = self._object(model)
        return {"$ref": f"#/$defs/{self._names[model]}"}

    def _object(self, model: type[BaseModel]) -> Schema:
        properties: dict[str, Schema] = {}
        spellings: list[str] = []
        required: list[Schema] = []
        for (name, field), doc in zip(model.model_fields.items(), fields_of(model), strict=True):
            key = key_of(name, field)
            schema = _bounded(self._value(field.annotation), field.metadata)
            if not field.is_required():
                # In Kubernetes' types and in jobs, null means absent.
                schema = _nullable(schema)
            properties[key] = {**schema, "description": doc.description}
            if doc.default is not None:
                properties[key]["default"] = doc.default
            if key != name:
                spellings.append(name)
            if field.is_required():
                required.append({"required": [key]} if key == name else _either_key(key, name))
        schema: Schema = {"type": "object", "description": model_description(model), "properties": properties}
        if not schema["description"]:
            del schema["description"]
        if _reads_other_dialects(model):
            return schema
        if spellings:
            # A pattern rather than properties: an editor offers one spelling and accepts both.
            schema["patternProperties"] = {f"^({'|'.join(spellings)})$": {}}
        if required:
            schema["allOf"] = required
        return {**schema, "additionalProperties": False}

    def _value(self, annotation: object) -> Schema:
        if typing.get_origin(annotation) is typing.Annotated and not isinstance(bare(annotation), dict):
            inner, *metadata = typing.get_args(annotation)
            return _bounded(self._value(inner), metadata)
        if typing.get_origin(annotation) in (typing.Union, types.UnionType):
            options = [argument for argument in typing.get_args(annotation) if argument is not type(None)]
            value = _either([self._value(option) for option in options])
            return _nullable(value) if len(options) < len(typing.get_args(annotation)) else value
        annotation = bare(annotation)
        if isinstance(annotation, dict):
            return self._by_kind(annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return self.reference(annotation)
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in (list, tuple) and arguments:
            return {"type": "array", "items": self._value(arguments[0])}
        if origin is dict and arguments:
            return {"type": "object", "additionalProperties": self._value(arguments[1])}
        return dict(_PLAIN.get(annotation, {}))

    def _by_kind(self, kinds: Mapping[str, type[BaseModel]]) -> Schema:
        """Returns a schema that depends on `kind`, so that an editor offers the fields of that kind only."""
        return {
            "type": "object",
            "properties": {"kind": {"enum": list(kinds), "description": "The kind of the job."}},
            "required": ["kind"],
            "allOf": [
                {
                    "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                    "then": self.reference(model),
                }
                for kind, model in kinds.items()
            ],
        }


def _bounded(schema: Schema, metadata: Iterable[object]) -> Schema:
    """Returns a schema with the limits that an annotation or field adds to it."""
    for mark in metadata:
        for kind, attribute, keyword in _BOUNDS:
            if isinstance(mark, kind):
                schema = {**schema, keyword: getattr(mark, attribute)}
        if isinstance(mark, MinLen):
            length = {"string": "minLength", "array": "minItems", "object": "minProperties"}
            kinds = schema.get("type", [])
            keywords = [length[kind] for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind in length]
            schema = {**schema, **dict.fromkeys(keywords, mark.min_length)}
        if isinstance(mark, BeforeValidator):
            # It reads other forms as well: a list in place of a mapping, a number in place of text.
            schema = _either([schema, {"type": ["string", "number", "array"]}])
    return schema


def _nullable(schema: Schema) -> Schema:
    """Returns a schema that accepts null too, if possible without alternatives, which make poor error messages."""
    if "enum" in schema:
        return {**schema, "enum": list(dict.fromkeys([*schema["enum"], None]))}
    if "type" in schema:
        types_before = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return {**schema, "type": list(dict.fromkeys([*types_before, "null"]))}
    return _either([schema, {"type": "null"}]) if schema else schema


def _either(schemas: list[Schema]) -> Schema:
    """Returns a schema for any of several, without repetition."""
    distinct: list[Schema] = []
    for schema in schemas:
        for option in schema["anyOf"] if set(schema) == {"anyOf"} else [schema]:
            if option not in distinct:
                distinct.append(option)
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _either_key(*keys: str) -> Schema:
    return {"anyOf": [{"required": [key]} for key in keys]}


def _reads_other_dialects(model: type[BaseModel]) -> bool:
    validators = model.__pydantic_decorators__.model_validators.values()
    return any(validator.info.mode == "wrap" for validator in validators)
