"""Training jobs, one module for each kind; a new kind joins by an entry in `JOB_KINDS`."""

from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from persia_infra.jobs.job import Job, Workload
from persia_infra.jobs.mpi import MPIJobSpec
from persia_infra.jobs.paddle import PaddleJobSpec
from persia_infra.jobs.persia.spec import PersiaJobSpec
from persia_infra.jobs.run_job import RunJob
from persia_infra.jobs.single_node import SingleNodeJobSpec
from persia_infra.jobs.training import TrainingJobSpec

JOB_KINDS: dict[str, type[Job]] = {
    "PersiaJob": PersiaJobSpec,
    "MPIJob": MPIJobSpec,
    "PaddleJob": PaddleJobSpec,
    "Job": SingleNodeJobSpec,
    "TrainingJob": TrainingJobSpec,
}


class _ByKind:
    """Chooses the model by the key `kind`; unlike pydantic's own discriminator it also takes a single kind."""

    choices = JOB_KINDS

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        return core_schema.tagged_union_schema(
            {kind: handler.generate_schema(model) for kind, model in self.choices.items()}, discriminator="kind"
        )


AnyJob = Annotated[Job, _ByKind()]

__all__ = [
    "JOB_KINDS",
    "AnyJob",
    "Job",
    "MPIJobSpec",
    "PaddleJobSpec",
    "PersiaJobSpec",
    "RunJob",
    "SingleNodeJobSpec",
    "TrainingJobSpec",
    "Workload",
]
