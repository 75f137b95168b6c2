"""A training on shared folders: an MPIJob on several nodes, one pod on one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pulumi

from persia_components._children import child_options, token
from persia_components.mpi_job import MpiJob
from persia_components.single_node_job import SingleNodeJob

if TYPE_CHECKING:
    from persia_infra.jobs import TrainingJobSpec
    from persia_infra.pools import Placement


class TrainingJob(pulumi.ComponentResource):
    """The same description for both; which one it becomes is decided by the number of nodes."""

    def __init__(
        self,
        name: str,
        spec: "TrainingJobSpec",
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
            placements: The pools of the roles `training`, or `launcher` and `worker`.
            opts: Of the component.
        """
        super().__init__(token("TrainingJob"), name, None, opts)
        runs_as = spec.runs_as
        component = MpiJob if runs_as.kind == "MPIJob" else SingleNodeJob
        component(
            name,
            runs_as,  # type: ignore[arg-type]
            namespace=namespace,
            object_name=object_name or name,
            placements=placements,
            opts=child_options(self),
        )
        self.register_outputs({})
