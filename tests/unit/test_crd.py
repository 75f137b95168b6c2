"""Definitions of kinds from the models that descriptions are read with."""

from typing import Any, Literal

import pytest
from pydantic import Field

from persia_infra import volcano
from persia_infra.crd import OPEN_OBJECT, Definition, schema_of
from persia_infra.spec import Quantity, Spec


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
            "replicas": {"type": "integer", "minimum": 1},
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
                        },
                        "more": OPEN_OBJECT,
                    },
                },
            },
        },
    }


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


def test_names_are_as_the_api_server_completes_them() -> None:
    kind = Definition("example.com", "v1", "Thing", "things", spec=OPEN_OBJECT)

    assert kind.name == "things.example.com"
    assert kind.body()["names"] == {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"}
