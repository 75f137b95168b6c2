"""The operators that an environment installs, one module each. `OPERATORS` is the only list of them."""

from collections.abc import Iterator
from typing import Any, Self

from pydantic import Field, create_model, model_validator

from persia_infra.kube.programs import OperatorProgram
from persia_infra.operators.mpi import MpiOperatorSpec
from persia_infra.operators.nats import NatsOperatorSpec
from persia_infra.operators.operator import Mirror, OperatorSpec
from persia_infra.operators.paddle import PaddleOperatorSpec
from persia_infra.operators.persia import PersiaOperatorSpec
from persia_infra.operators.volcano.spec import VolcanoSpec
from persia_infra.spec.base import Finding, Spec, refuse
from persia_infra.spec.descriptions import model_description

OPERATORS: list[type[OperatorSpec]] = [
    VolcanoSpec,
    NatsOperatorSpec,
    MpiOperatorSpec,
    PaddleOperatorSpec,
    PersiaOperatorSpec,
]
"""All operators, in the order of installation. A new operator is one module and one entry here."""


class OperatorsSpec(Spec):
    """The operators of an environment; only those named here are installed."""

    registry_mirror: Mirror | None = None
    """A registry that holds copies of the official images, for every operator without a mirror of its own."""

    @property
    def installed(self) -> dict[str, OperatorSpec]:
        """The installed operators by their key, in the order of installation."""
        named = {operator.NAME: getattr(self, operator.NAME, None) for operator in OPERATORS}
        mirror = {"registry_mirror": self.registry_mirror}
        return {
            name: spec if spec.registry_mirror or not self.registry_mirror else spec.model_copy(update=mirror)
            for name, spec in named.items()
            if spec is not None
        }

    @property
    def volcano_installed(self) -> bool:
        """Whether the environment has Volcano, which schedules gangs."""
        return VolcanoSpec.NAME in self.installed

    @property
    def queues(self) -> list[str] | None:
        """The Volcano queues that jobs can wait in; None without Volcano."""
        volcano = self.installed.get(VolcanoSpec.NAME)
        return ["default", *volcano.queues] if isinstance(volcano, VolcanoSpec) else None

    @property
    def webhook_ports(self) -> list[int]:
        """The ports of pods that the control plane calls, which the firewall of a private cluster has to open."""
        return [port for spec in self.installed.values() for port in spec.WEBHOOK_PORTS]

    def notes(self) -> Iterator[Finding]:
        """Notes on choices that are allowed but have consequences."""
        for name, spec in self.installed.items():
            yield from (((name, *place), message) for place, message in spec.notes())

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        taken: dict[str, str] = {}
        for name, spec in self.installed.items():
            first = taken.setdefault(spec.namespace, name)
            if first != name:
                yield (
                    (name, "namespace"),
                    f"is also the namespace of the {first} operator, so both would declare it; choose another name",
                )


def operators_model() -> type[OperatorsSpec]:
    """Returns the model of `operators` in an environment, with a field for each operator in the list."""
    fields: dict[str, Any] = {
        # These fields have no source code that could contain a docstring.
        operator.NAME: (operator | None, Field(default=None, description=model_description(operator)))
        for operator in OPERATORS
    }
    return create_model("Operators", __base__=OperatorsSpec, __doc__=OperatorsSpec.__doc__, **fields)


def operator_programs() -> tuple[OperatorProgram, ...]:
    """Returns the programs of all operators, which a rehearsal runs instead of their pods."""
    return tuple(program for operator in OPERATORS for program in operator.PROGRAMS)


__all__ = [
    "OPERATORS",
    "MpiOperatorSpec",
    "NatsOperatorSpec",
    "OperatorSpec",
    "OperatorsSpec",
    "PaddleOperatorSpec",
    "PersiaOperatorSpec",
    "VolcanoSpec",
    "operator_programs",
    "operators_model",
]
