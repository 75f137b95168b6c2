"""Training jobs, one module per kind. `JOB_KINDS` is the only list of kinds."""

from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from persia_infra.jobs.job import Job, Workload
from persia_infra.jobs.mpi import MPIJobSpec
from persia_infra.jobs.paddle import PaddleJobSpec
from persia_infra.jobs.persia.spec import PersiaJobSpec
from persia_infra.jobs.single_node import SingleNodeJobSpec
from persia_infra.jobs.training import TrainingJobSpec

JOB_KINDS: list[type[Job]] = [PersiaJobSpec, MPIJobSpec, PaddleJobSpec, SingleNodeJobSpec, TrainingJobSpec]
"""Every kind of job. A new kind is one module and one entry here."""


class _ByKind:
    """Chooses the model by the key `kind`; unlike pydantic's own discriminator it also accepts a single kind."""

    @property
    def choices(self) -> dict[str, type[Job]]:
        return {kind.model_fields["kind"].default: kind for kind in JOB_KINDS}

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        return core_schema.tagged_union_schema(
            {kind: handler.generate_schema(model) for kind, model in self.choices.items()}, discriminator="kind"
        )


AnyJob = Annotated[Job, _ByKind()]
"""A job of any kind."""

__all__ = [
    "JOB_KINDS",
    "AnyJob",
    "Job",
    "MPIJobSpec",
    "PaddleJobSpec",
    "PersiaJobSpec",
    "SingleNodeJobSpec",
    "TrainingJobSpec",
    "Workload",
]
