"""PERSIA's own operator, which runs PersiaJob objects as bare pods."""

from collections.abc import Iterator
from functools import cache

from pydantic import Field

from persia_infra.jobs.persia.roles import PersiaEnv
from persia_infra.jobs.persia.spec import PersiaJobSpec
from persia_infra.kube.crd import Definition, schema_of
from persia_infra.kube.objects import ObjectGroup
from persia_infra.kube.placement import Placement
from persia_infra.kube.pods import EnvSource, Volume
from persia_infra.kube.programs import OperatorProgram, WheelSource
from persia_infra.kube.types.pods import ProjectedVolumeSource
from persia_infra.operators.installation import Installation, Program
from persia_infra.operators.operator import OperatorSpec, Tag
from persia_infra.operators.rights import Right, Rights
from persia_infra.spec.base import DnsLabel, Finding

_DEPLOYMENT = "persia-operator"
_COMMAND = ("persia-k8s-utils", "operator")

RIGHTS = Rights(
    watched=(
        Right("persia.com", ("persiajobs",), ("list", "patch", "watch")),
        Right("", ("pods", "services"), ("create", "delete", "list")),
    ),
)


class PersiaOperatorSpec(OperatorSpec):
    """PERSIA's own operator, which runs PersiaJobs.

    It is a program in PERSIA's runtime image. Every PersiaJob has its finalizer, so jobs have to be deleted before it.
    It has neither health checks nor leader election, so its pod has no probes, and there is only one.
    """

    NAME = "persia"
    COMPONENT = "PersiaOperator"
    PROGRAMS = (OperatorProgram(_DEPLOYMENT, "persia-operator", WheelSource("persia"), left_out_arguments=_COMMAND),)
    IMAGE = "persiaml/persia-cpu-runtime"

    version: Tag = "latest"
    """The tag of PERSIA's runtime image; latest by default, the only tag that was ever published."""
    namespace: DnsLabel = "persia-system"
    """The namespace that the operator runs in; persia-system by default."""
    replicas: int = Field(default=1, ge=1, le=1)
    """The number of pods, always 1: without leader election two operators would create every pod twice."""

    def objects(self, *, volcano_installed: bool, placement: Placement | None) -> ObjectGroup:  # noqa: ARG002
        """Returns the operator's objects."""
        parts = Installation(_DEPLOYMENT, self.namespace)
        parts.define([definition()])
        parts.allow(RIGHTS)
        program = Program(
            image=self.image_reference(),
            args=list(_COMMAND),
            pull_always=self.digest is None and self.version == "latest",
            recreate=True,
        )
        parts.deploy(self, program, placement=placement)
        return ObjectGroup(self.COMPONENT, tuple(parts.objects))

    def notes(self) -> Iterator[Finding]:
        """Notes on choices that are allowed but have consequences."""
        if self.version == "latest" and self.digest is None:
            yield (
                ("version",),
                "only the tag latest was ever published, and its content may change while an environment runs; "
                "add digest to pin it",
            )


@cache
def definition() -> Definition:
    """The kind PersiaJob, with the requirements of PERSIA's own definition and types that are no looser."""
    return Definition(
        group="persia.com",
        version="v1",
        kind="PersiaJob",
        plural="persiajobs",
        spec=schema_of(
            PersiaJobSpec,
            required={
                PersiaJobSpec: ["persiaEnv"],
                PersiaEnv: ["PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG"],
                ProjectedVolumeSource: ["sources"],
            },
            open_models=(EnvSource, Volume),
            plain_quantities=True,
        ),
    )
