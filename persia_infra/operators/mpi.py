"""The MPI operator (kubeflow/mpi-operator), which runs MPIJob objects."""

from functools import cache

from persia_infra.jobs.mpi import MPIJobSpec
from persia_infra.kube.crd import OPEN_OBJECT, Column, Definition, schema_of
from persia_infra.kube.objects import ObjectGroup
from persia_infra.kube.placement import Placement
from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.kube.programs import GoSource, OperatorProgram
from persia_infra.operators.installation import Installation, Program, http_probe
from persia_infra.operators.operator import ScopedOperatorSpec, Tag
from persia_infra.operators.rights import Right, Rights
from persia_infra.spec.base import DnsLabel

_DEPLOYMENT = "mpi-operator"
_HEALTH_PORT = 8080
SOURCE = GoSource(
    "mpi-operator",
    "github.com/kubeflow/mpi-operator",
    ("github.com/kubeflow/mpi-operator/cmd/mpi-operator",),
    3,
    program="mpi-operator",
)

RIGHTS = Rights(
    everywhere=(Right("scheduling.k8s.io", ("priorityclasses",), ("list", "watch")),),
    watched=(
        Right("kubeflow.org", ("mpijobs",), ("list", "watch")),
        Right("kubeflow.org", ("mpijobs/status",), ("update",)),
        Right("", ("pods",), ("create", "delete", "list", "watch")),
        Right("", ("configmaps",), ("create", "list", "update", "watch")),
        Right("", ("secrets", "services"), ("create", "list", "watch")),
        Right("", ("secrets", "services"), ("update",), used_when="someone changed a job's Secret or Service by hand"),
        Right("batch", ("jobs",), ("create", "list", "update", "watch")),
        Right(
            "batch",
            ("jobs/status",),
            ("update",),
            used_when="a job is resumed on a Kubernetes version that keeps the start time of a suspended Job",
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
        Right("scheduling.volcano.sh", ("podgroups",), ("list",), used_when="the API server cannot stream lists"),
    ),
    own=RIGHTS.own,
)
"""The rights with Volcano installed, when the operator creates a PodGroup for every job."""


class MpiOperatorSpec(ScopedOperatorSpec):
    """The MPI operator, which runs MPIJobs."""

    NAME = "mpi"
    COMPONENT = "MpiOperator"
    PROGRAMS = (
        OperatorProgram(
            _DEPLOYMENT,
            "mpi-operator",
            SOURCE,
            "http://127.0.0.1:{port}/healthz",
            # The flag for the address is added by tools/mpi-operator/patch; upstream listens on all addresses.
            added_arguments=("--monitoring-port=0", "--health-address=127.0.0.1:{port}"),
        ),
    )
    INSTALL_AFTER = ("volcano",)
    IMAGE = "mpioperator/mpi-operator"
    FLOOR = (0, 6, 0)
    TOO_OLD = (
        "before 0.4.0 it does not support kubeflow.org/v2beta1, in which MPI jobs are declared here, and before 0.6.0 "
        "not all of its fields (runPolicy.managedBy)"
    )
    NEWEST = (0, 8, 2)
    TRIED = ((0, 7, 0), (0, 8, 2))

    version: Tag = "0.8.2"
    """The version of the operator; 0.8.2 by default."""
    namespace: DnsLabel = "mpi-operator"
    """The namespace that the operator runs in; mpi-operator by default."""

    def objects(self, *, volcano_installed: bool, placement: Placement | None) -> ObjectGroup:
        """Returns the operator's objects; with Volcano it creates a PodGroup for every job."""
        parts = Installation(_DEPLOYMENT, self.namespace)
        parts.define([definition()])
        parts.allow(GANG_RIGHTS if volcano_installed else RIGHTS, watched=self.watched_namespace)
        program = Program(
            image=self.image_reference(),
            args=[
                "-alsologtostderr",
                f"--lock-namespace={self.namespace}",
                *([f"--namespace={self.watched_namespace}"] if self.watched_namespace else []),
                *(["--gang-scheduling=volcano"] if volcano_installed else []),
            ],
            ports={"health": _HEALTH_PORT},
            readiness=http_probe("/healthz", "health"),
            liveness=http_probe("/healthz", "health", delay=15),
        )
        parts.deploy(self, program, placement=placement)
        return ObjectGroup(self.COMPONENT, tuple(parts.objects))


@cache
def definition() -> Definition:
    """Returns the definition of the kind MPIJob."""
    return Definition(
        group="kubeflow.org",
        version="v2beta1",
        kind="MPIJob",
        plural="mpijobs",
        spec=schema_of(MPIJobSpec, opaque_models=(PodTemplate,)),
        status=OPEN_OBJECT,
        columns=(
            Column("State", ".status.conditions[-1:].type"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )
