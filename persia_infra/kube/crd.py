"""CustomResourceDefinitions, generated from the same models that validate descriptions.

A model becomes a structural OpenAPI v3 schema: what the model knows is typed, and what a caller names as open
keeps unknown fields. Python-only checks (validators across fields) have no counterpart and are left to `check`.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

Schema = dict[str, Any]

OPEN_OBJECT: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_KEPT = ("type", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "required")
_INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_QUANTITY: Schema = {
    **_INT_OR_STRING,
    "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
}


@dataclass(frozen=True)
class Column:
    """A column that `kubectl get` shows."""

    name: str
    json_path: str
    type: str = "string"


@dataclass(frozen=True)
class Definition:
    """A custom resource: one kind of an API group, in one version."""

    group: str
    version: str
    kind: str
    plural: str
    spec: Schema | None = None
    """The schema of `spec`; None for a kind without it."""
    status: Schema | None = None
    """The schema of `status`, which is a subresource unless `status_is_plain` is set."""
    status_is_plain: bool = False
    """Whether the operator writes the status together with the rest, so that a subresource would discard it."""
    namespaced: bool = True
    short_names: Sequence[str] = ()
    columns: Sequence[Column] = ()
    spec_required: bool = True
    open_root: bool = False
    """Whether the kind has other fields than `spec` and `status`."""

    @property
    def name(self) -> str:
        """The name of the CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"

    @property
    def names(self) -> dict[str, Any]:
        """All names of the kind, including those that the API server would fill in, so that no difference appears."""
        short = {"shortNames": list(self.short_names)} if self.short_names else {}
        singular = self.kind.lower()
        return {"kind": self.kind, "listKind": f"{self.kind}List", "plural": self.plural, "singular": singular} | short

    def body(self) -> dict[str, Any]:
        """The `spec` of the CustomResourceDefinition."""
        properties: Schema = {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
        }
        if self.spec is not None:
            properties["spec"] = self.spec
        if self.status is not None:
            properties["status"] = self.status
        schema: Schema = {"type": "object", "properties": properties}
        if self.spec is not None and self.spec_required:
            schema["required"] = ["spec"]
        if self.open_root:
            schema["x-kubernetes-preserve-unknown-fields"] = True
        version: dict[str, Any] = {
            "name": self.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
        }
        if self.status is not None and not self.status_is_plain:
            version["subresources"] = {"status": {}}
        if self.columns:
            version["additionalPrinterColumns"] = [
                {"name": column.name, "type": column.type, "jsonPath": column.json_path} for column in self.columns
            ]
        return {
            "group": self.group,
            "names": self.names,
            "scope": "Namespaced" if self.namespaced else "Cluster",
            "versions": [version],
        }


def schema_of(
    model: type[BaseModel],
    *,
    required: Mapping[type[BaseModel], Sequence[str]] | None = None,
    replace: Mapping[str, Schema] | None = None,
    open_models: Collection[type[BaseModel]] = (),
    opaque_models: Collection[type[BaseModel]] = (),
    plain_quantities: bool = False,
) -> Schema:
    """Returns the structural schema of a model, with the keys that are sent to Kubernetes.

    Args:
        model: The model. Fields that are excluded from its serialization belong to this library and are left out;
            so are its defaults, which the operator chooses.
        required: Keys that are required in the object, although this library fills them in if a description lacks them.
        replace: Schemas of single top-level keys whose form in the object differs from that in the description.
        open_models: Models that describe only some of the fields that Kubernetes allows in them and below; other fields
            are kept as they are.
        opaque_models: Models whose content is not described: the API server checks a pod when an operator creates it.
        plain_quantities: Whether quantities must be strings, for operators that cannot read numbers.
    """

    class Generate(GenerateJsonSchema):
        """Stops at opaque models, instead of describing what is dropped afterwards."""

        def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
            return dict(OPEN_OBJECT) if schema["cls"] in opaque_models else super().model_schema(schema)

    document = model.model_json_schema(by_alias=True, schema_generator=Generate, mode="serialization")
    names = {opened.__name__ for opened in open_models}
    needed = {demanding.__name__: keys for demanding, keys in (required or {}).items()}
    walk = _Walk(document.get("$defs", {}), names, needed, plain_quantities)
    schema = walk.convert(document, model.__name__, (model.__name__,))
    schema["properties"].update(replace or {})
    return schema


@dataclass(frozen=True)
class _Walk:
    definitions: Mapping[str, Schema]
    open_names: Set[str]
    required: Mapping[str, Sequence[str]]
    plain_quantities: bool

    def convert(self, node: Schema, name: str = "", above: tuple[str, ...] = ()) -> Schema:
        if reference := node.get("$ref"):
            name = reference.rpartition("/")[2]
            if name in above:
                raise ValueError(f"{name} contains itself, which a structural schema cannot express; leave it open")
            return self.convert(self.definitions[name], name, (*above, name))
        if choices := node.get("anyOf") or node.get("oneOf"):
            return self._one_of([choice for choice in choices if choice.get("type") != "null"], above)
        if len(node.get("allOf", ())) == 1:
            return self.convert(node["allOf"][0], name, above)
        if node.get("format") == "quantity" and not self.plain_quantities:
            return dict(_QUANTITY)
        if "type" not in node and "const" not in node and "enum" not in node:
            return {"x-kubernetes-preserve-unknown-fields": True}
        schema = {key: node[key] for key in _KEPT if key in node}
        if schema.get("type") == "integer":
            schema["format"] = "int32"
        if "const" in node:
            schema |= {"type": "string", "enum": [node["const"]]}
        for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if bound in node:
                schema |= {limit: node[bound], bound: True}
        if "items" in node:
            schema["items"] = self.convert(node["items"], above=above)
        if "properties" in node:
            schema["properties"] = {key: self.convert(value, above=above) for key, value in node["properties"].items()}
            if needed := [*node.get("required", ()), *self.required.get(name, ())]:
                schema["required"] = needed
            if self.open_names & {name, *above}:
                schema["x-kubernetes-preserve-unknown-fields"] = True
        elif isinstance(values := node.get("additionalProperties"), dict):
            schema["additionalProperties"] = self.convert(values, above=above)
        elif schema.get("type") == "object":
            schema["x-kubernetes-preserve-unknown-fields"] = True
        return schema

    def _one_of(self, choices: list[Schema], above: tuple[str, ...]) -> Schema:
        converted = [self.convert(choice, above=above) for choice in choices]
        if len(converted) == 1:
            return converted[0]
        if {choice.get("type") for choice in converted} == {"integer", "string"}:
            return dict(_INT_OR_STRING)
        return {"x-kubernetes-preserve-unknown-fields": True}
