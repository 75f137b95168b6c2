"""What the components of all kinds of jobs have in common."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import pulumi

from persia_components._children import token

if TYPE_CHECKING:
    from persia_infra.gke.pools import Placement

Spec = TypeVar("Spec")


class JobComponent(pulumi.ComponentResource, Generic[Spec]):
    """A job of one kind, whose `_declare` makes its children."""

    _component: ClassVar[str]

    def __init__(
        self,
        name: str,
        spec: Spec,
        *,
        namespace: pulumi.Input[str],
        object_name: str | None = None,
        placements: "Mapping[str, Placement] | None" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declares the job.

        Args:
            name: Of the component, and the beginning of its children's logical names.
            spec: The description.
            namespace: Where its objects are.
            object_name: The job's name in Kubernetes; `name` when absent.
            placements: The pool of each role; a role that is missing goes wherever its pods may.
            opts: Of the component.
        """
        super().__init__(token(self._component), name, None, opts)
        self._name = name
        self._spec = spec
        self._namespace = namespace
        self._job = object_name or name
        self._placements: Mapping[str, Placement] = placements or {}
        self._declare(spec)

    def _declare(self, spec: Spec) -> None:
        raise NotImplementedError
