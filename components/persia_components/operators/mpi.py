"""The MPI operator, which runs MPIJob objects."""

from functools import cache
from typing import TYPE_CHECKING

from persia_components.operators._gang_operator import GangOperator
from persia_components.operators._operator import Installation, Program, Right, Rights, probe

if TYPE_CHECKING:
    from persia_infra.kube.crd import Definition
    from persia_infra.operators.specs import MpiOperatorSpec

RIGHTS = Rights(
    everywhere=(Right("scheduling.k8s.io", ("priorityclasses",), ("list", "watch")),),
    watched=(
        Right("kubeflow.org", ("mpijobs",), ("list", "watch")),
        Right("kubeflow.org", ("mpijobs/status",), ("update",)),
        Right("", ("pods",), ("create", "delete", "list", "watch")),
        Right("", ("configmaps",), ("create", "list", "update", "watch")),
        Right("", ("secrets", "services"), ("create", "list", "watch")),
        Right("", ("secrets", "services"), ("update",), used_when="somebody changed a job's Secret or Service by hand"),
        Right("batch", ("jobs",), ("create", "list", "update", "watch")),
        Right(
            "batch",
            ("jobs/status",),
            ("update",),
            used_when="a job is resumed on a Kubernetes that keeps the start time of a suspended Job",
        ),
        Right("", ("events",), ("create",)),
        Right("", ("events",), ("patch",), used_when="it repeats an event"),
    ),
    own=(
        Right("coordination.k8s.io", ("leases",), ("create", "get", "update")),
        Right("", ("events",), ("create",)),
    ),
)
GANG_RIGHTS = Rights(
    everywhere=RIGHTS.everywhere,
    watched=(
        *RIGHTS.watched,
        Right("scheduling.volcano.sh", ("podgroups",), ("create", "update", "watch")),
        Right("scheduling.volcano.sh", ("podgroups",), ("delete",), used_when="a job is suspended or cleaned up"),
        Right("scheduling.volcano.sh", ("podgroups",), ("list",), used_when="the API server can't stream lists"),
    ),
    own=RIGHTS.own,
)
"""With Volcano."""


class MpiOperator(GangOperator["MpiOperatorSpec"]):
    """The operator and the kind MPIJob."""

    _component = "MpiOperator"
    _called = "mpi-operator"

    def _install(self, parts: Installation, spec: "MpiOperatorSpec", *, gangs: bool) -> Program:
        parts.define([definition()])
        parts.allow(GANG_RIGHTS if gangs else RIGHTS, watched=spec.watched_namespace)
        return Program(
            image=spec.image_reference(),
            args=[
                "-alsologtostderr",
                f"--lock-namespace={spec.namespace}",
                *([f"--namespace={spec.watched_namespace}"] if spec.watched_namespace else []),
                *(["--gang-scheduling=volcano"] if gangs else []),
            ],
            ports={"health": 8080},
            readiness=probe("/healthz", "health"),
            liveness=probe("/healthz", "health", delay=15),
        )


@cache
def definition() -> "Definition":
    """The kind MPIJob."""
    from persia_infra.jobs.mpi import MPIJobSpec
    from persia_infra.kube.crd import OPEN_OBJECT, Column, Definition, schema_of
    from persia_infra.kube.pod_templates import PodTemplate

    return Definition(
        group="kubeflow.org",
        version="v2beta1",
        kind="MPIJob",
        plural="mpijobs",
        spec=schema_of(MPIJobSpec, open_models=(PodTemplate,)),
        status=OPEN_OBJECT,
        columns=(
            Column("State", ".status.conditions[-1:].type"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )
