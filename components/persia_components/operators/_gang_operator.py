"""What the components of operators that know Volcano's gangs have in common."""

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import pulumi

from persia_components._children import token
from persia_components.operators._operator import Installation, Program

if TYPE_CHECKING:
    from persia_infra.gke.pools import Placement
    from persia_infra.operators.specs import OperatorSpec

Spec = TypeVar("Spec", bound="OperatorSpec")


class GangOperator(pulumi.ComponentResource, Generic[Spec]):
    """An operator of one kind of jobs, whose `_install` gives it its kind and rights."""

    _component: ClassVar[str]
    _called: ClassVar[str]

    def __init__(
        self,
        name: str,
        spec: Spec,
        *,
        gangs: bool = False,
        placement: "Placement | None" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declares the operator.

        Args:
            name: Of the component, and the beginning of its children's logical names.
            spec: The description.
            gangs: Volcano is there: the operator makes a PodGroup for every job.
            placement: The pool of its pods; anywhere when absent.
            opts: Of the component.
        """
        super().__init__(token(self._component), name, None, opts)
        parts = Installation(self, name, self._called, spec.namespace)
        parts.deploy(spec, self._install(parts, spec, gangs=gangs), placement=placement)
        self.register_outputs({})

    def _install(self, parts: Installation, spec: Spec, *, gangs: bool) -> Program:
        raise NotImplementedError
