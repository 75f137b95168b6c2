"""A training on shared folders: an MPIJob on several nodes, one pod on one."""

from typing import TYPE_CHECKING

from persia_components._children import child_options
from persia_components._job import JobComponent
from persia_components.mpi_job import MpiJob
from persia_components.single_node_job import SingleNodeJob

if TYPE_CHECKING:
    from persia_infra.jobs import TrainingJobSpec


class TrainingJob(JobComponent["TrainingJobSpec"]):
    """The same description for both; which one it becomes is decided by the number of nodes.

    Its roles are `training` on one node, `launcher` and `worker` on several.
    """

    _component = "TrainingJob"

    def _declare(self, spec: "TrainingJobSpec") -> None:
        runs_as = spec.runs_as
        component = MpiJob if runs_as.kind == "MPIJob" else SingleNodeJob
        component(
            self._name,
            runs_as,  # type: ignore[arg-type]
            namespace=self._namespace,
            object_name=self._job,
            placements=self._placements,
            opts=child_options(self),
        )
        self.register_outputs({})
