"""Every field explains itself: its description is the docstring below it."""

import re
from typing import ClassVar

from pydantic import BaseModel

from persia_infra.environment import EnvironmentSpec
from persia_infra.nats.spec import NatsClusterSpec
from persia_infra.spec.descriptions import field_descriptions, model_description
from persia_infra.spec.shapes import key_of, reachable_models

LONGEST = 200
DOCUMENTED_BY_KUBERNETES = tuple(
    f"persia_infra.kube.{module}" for module in ("types", "pods", "pod_templates", "affinity")
)
"""Modules whose models are Kubernetes' own types, which `kubectl explain` describes."""


class Base(BaseModel):
    """A model.

    With details.
    """

    MOST: ClassVar[int] = 3
    """Not a field."""
    size: int
    """Size
    in bytes."""
    name: str
    """The name."""
    plain: str


class Derived(Base):
    name: str = "derived"
    size: int = 1
    """Another description."""


def test_a_description_is_the_docstring_below_the_field() -> None:
    assert field_descriptions(Base) == {"size": "Size in bytes.", "name": "The name."}


def test_a_field_inherits_its_description_unless_it_has_its_own() -> None:
    assert field_descriptions(Derived) == {"size": "Another description.", "name": "The name."}


def test_a_model_is_described_by_the_first_line_of_its_own_docstring() -> None:
    assert model_description(Base) == "A model."
    assert model_description(Derived) == ""


def test_every_field_has_a_description_of_one_sentence() -> None:
    wrong = [
        f"{model.__module__}.{model.__name__}: {key_of(name, field)}: {complaint}"
        for model in dict.fromkeys([*reachable_models(EnvironmentSpec), *reachable_models(NatsClusterSpec)])
        if not model.__module__.startswith(DOCUMENTED_BY_KUBERNETES)
        for name, field in model.model_fields.items()
        if (complaint := _complaint(field_descriptions(model).get(name, "")))
    ]

    assert not wrong, "\n".join(wrong)


def test_all_kinds_of_jobs_are_looked_at() -> None:
    names = {model.__name__ for model in reachable_models(EnvironmentSpec)}

    assert {"PersiaJobSpec", "MPIJobSpec", "PaddleJobSpec", "SingleNodeJobSpec", "TrainingJobSpec"} <= names
    assert {"SlotConfig", "NodePoolSpec", "RunVolume", "NatsTls"} <= names


def _complaint(description: str) -> str:
    if not description:
        return "has no description"
    if not re.match(r"[A-Z/`]", description):
        return "does not start with a capital letter"
    if not description.endswith("."):
        return "does not end with a full stop"
    if re.search(r"[.!?] ", description):
        return "is more than one sentence"
    if len(description) > LONGEST:
        return f"is longer than {LONGEST} characters"
    return ""
