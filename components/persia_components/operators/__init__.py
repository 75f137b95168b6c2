"""Operators as components, one module each."""

from typing import TYPE_CHECKING, Any

import pulumi

if TYPE_CHECKING:
    from persia_infra.gke.pools import Placement
    from persia_infra.operators.specs import OperatorSpec


def operator(
    kind: str,
    name: str,
    spec: "OperatorSpec",
    *,
    gangs: bool,
    placement: "Placement | None",
    opts: pulumi.ResourceOptions,
) -> pulumi.Resource:
    """The component of an operator, by its key in an environment's `operators`."""
    from persia_components.operators.mpi import MpiOperator
    from persia_components.operators.nats import NatsOperator
    from persia_components.operators.paddle import PaddleOperator
    from persia_components.operators.persia import PersiaOperator
    from persia_components.operators.volcano import Volcano

    components: dict[str, Any] = {
        "mpi": MpiOperator,
        "nats": NatsOperator,
        "paddle": PaddleOperator,
        "persia": PersiaOperator,
        "volcano": Volcano,
    }
    more = {"gangs": gangs} if kind in ("mpi", "paddle") else {}
    return components[kind](name, spec, placement=placement, opts=opts, **more)
