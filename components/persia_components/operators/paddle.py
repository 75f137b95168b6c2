"""The Paddle operator, which runs PaddleJob objects."""

from functools import cache
from typing import TYPE_CHECKING

from persia_components.operators._gang_operator import GangOperator
from persia_components.operators._operator import Installation, Program, Right, Rights, probe

if TYPE_CHECKING:
    from persia_infra.kube.crd import Definition
    from persia_infra.operators.specs import PaddleOperatorSpec

_IN_A_POD = "it runs in a pod, where it elects a leader"
RIGHTS = Rights(
    watched=(
        Right("batch.paddlepaddle.org", ("paddlejobs",), ("list", "update", "watch")),
        Right("batch.paddlepaddle.org", ("paddlejobs/status",), ("update",)),
        Right("", ("pods",), ("create", "delete", "list", "watch")),
        Right("", ("pods/exec",), ("create",), used_when="a pod's init container really waits for the others"),
        Right("", ("configmaps",), ("create", "list", "watch")),
        Right("", ("services",), ("create", "list", "watch")),
        Right("", ("services",), ("delete",), used_when="a job with intranet: Service is cleaned up"),
        Right("", ("events",), ("create",)),
        Right("", ("events",), ("patch",), used_when="it repeats an event"),
    ),
    own=(
        Right("", ("configmaps",), ("create", "get", "update"), used_when=_IN_A_POD),
        Right("coordination.k8s.io", ("leases",), ("create", "get", "update"), used_when=_IN_A_POD),
        Right("", ("events",), ("create",), used_when=_IN_A_POD),
    ),
)
GANG_RIGHTS = Rights(
    watched=(
        *RIGHTS.watched,
        Right("scheduling.volcano.sh", ("podgroups",), ("create", "list", "watch")),
        Right("scheduling.volcano.sh", ("podgroups",), ("delete",), used_when="a gang of version 0.3.5 ends"),
    ),
    own=RIGHTS.own,
)
"""With Volcano."""


class PaddleOperator(GangOperator["PaddleOperatorSpec"]):
    """The operator and the kind PaddleJob.

    Every PaddleJob carries the operator's finalizer, so jobs have to go before it does: let them depend on it.
    """

    _component = "PaddleOperator"
    _called = "paddle-operator"

    def _install(self, parts: Installation, spec: "PaddleOperatorSpec", *, gangs: bool) -> Program:
        parts.define([definition()])
        parts.allow(GANG_RIGHTS if gangs else RIGHTS, watched=spec.watched_namespace)
        return Program(
            image=spec.image_reference(),
            command=["/manager"],
            args=[
                "--leader-elect",
                *([f"--namespace={spec.watched_namespace}"] if spec.watched_namespace else []),
                *(["--scheduling=volcano"] if gangs else []),
            ],
            ports={"health": 8081},
            readiness=probe("/readyz", "health"),
            liveness=probe("/healthz", "health", delay=15),
        )


@cache
def definition() -> "Definition":
    """The kind PaddleJob."""
    from persia_infra.jobs.paddle import PaddleJobSpec
    from persia_infra.kube.crd import OPEN_OBJECT, Column, Definition, schema_of
    from persia_infra.kube.pod_templates import PodTemplate

    return Definition(
        group="batch.paddlepaddle.org",
        version="v1",
        kind="PaddleJob",
        plural="paddlejobs",
        short_names=("pdj",),
        spec=schema_of(PaddleJobSpec, open_models=(PodTemplate,)),
        status=OPEN_OBJECT,
        columns=(
            Column("Status", ".status.phase"),
            Column("Mode", ".status.mode"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )
