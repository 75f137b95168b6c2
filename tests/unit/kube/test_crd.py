"""Definitions of kinds from the models that descriptions are read with."""

import re
from typing import Any, Literal
from unittest.mock import ANY

import pytest
from pydantic import Field

from persia_infra.kube.crd import OPEN_OBJECT, Definition, schema_of
from persia_infra.operators.volcano import kinds as volcano
from persia_infra.spec.base import Quantity, Spec


class Inner(Spec):
    amount: Quantity
    more: dict[str, Any] | None = None


class Outer(Spec):
    replicas: int = Field(ge=1)
    policy: Literal["Never", "OnFailure"] | None = None
    inner: list[Inner] = Field(default=[])
    own: str | None = Field(default=None, exclude=True)


class Loop(Spec):
    again: "Loop | None" = None


def test_a_model_becomes_a_structural_schema() -> None:
    assert schema_of(Outer, open_models=(Inner,)) == {
        "type": "object",
        "required": ["replicas"],
        "properties": {
            "replicas": {"type": "integer", "format": "int32", "minimum": 1},
            "policy": {"type": "string", "enum": ["Never", "OnFailure"]},
            "inner": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["amount"],
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {
                        "amount": {
                            "anyOf": [{"type": "integer"}, {"type": "string"}],
                            "x-kubernetes-int-or-string": True,
                            "pattern": ANY,
                        },
                        "more": OPEN_OBJECT,
                    },
                },
            },
        },
    }


def test_what_is_below_an_open_model_is_open_too() -> None:
    schema = schema_of(Outer, open_models=(Outer,))

    assert schema["properties"]["inner"]["items"]["x-kubernetes-preserve-unknown-fields"] is True


@pytest.mark.parametrize("text", ["1", "500m", "16Gi", "1.5", ".5", "1e3", "-2", "+1E"])
def test_quantities_pass_the_definition(text: str) -> None:
    assert re.search(schema_of(Inner)["properties"]["amount"]["pattern"], text)


@pytest.mark.parametrize("text", ["", "many", "16GB", "1 Gi", "16gi", "."])
def test_other_texts_do_not(text: str) -> None:
    assert not re.search(schema_of(Inner)["properties"]["amount"]["pattern"], text)


def test_what_the_wire_demands_can_be_stricter_than_the_description() -> None:
    schema = schema_of(Outer, required={Outer: ["policy"]}, plain_quantities=True)

    assert schema["required"] == ["replicas", "policy"]
    assert schema["properties"]["inner"]["items"]["properties"]["amount"] == {"type": "string"}


def test_a_model_within_itself_has_no_schema() -> None:
    with pytest.raises(ValueError, match="contains itself"):
        schema_of(Loop)


def test_a_status_that_is_written_with_the_rest_is_no_subresource() -> None:
    kinds = {kind.plural: kind.body()["versions"][0] for kind in volcano.definitions()}

    assert "subresources" not in kinds["podgroups"]
    assert kinds["queues"]["subresources"] == {"status": {}}
    assert kinds["podgroups"]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["queue"]["default"] == (
        "default"
    )


def test_a_kind_can_have_its_fields_beside_the_spec() -> None:
    (command,) = (kind for kind in volcano.definitions() if kind.kind == "Command")
    schema = command.body()["versions"][0]["schema"]["openAPIV3Schema"]

    assert "spec" not in schema["properties"]
    assert schema["x-kubernetes-preserve-unknown-fields"] is True


def test_names_are_as_the_api_server_completes_them() -> None:
    kind = Definition("example.com", "v1", "Thing", "things", spec=OPEN_OBJECT)

    assert kind.name == "things.example.com"
    assert kind.body()["names"] == {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"}
