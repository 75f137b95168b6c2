"""The Paddle operator (PaddleFlow/paddle-operator), which runs PaddleJob objects."""

from functools import cache

from persia_infra.jobs.paddle import PaddleJobSpec
from persia_infra.kube.crd import OPEN_OBJECT, Column, Definition, schema_of
from persia_infra.kube.objects import ObjectGroup
from persia_infra.kube.placement import Placement
from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.kube.programs import GoSource, OperatorProgram
from persia_infra.operators.installation import Installation, Program, http_probe
from persia_infra.operators.operator import ScopedOperatorSpec, Tag
from persia_infra.operators.rights import Right, Rights
from persia_infra.spec.base import DnsLabel

_DEPLOYMENT = "paddle-operator"
SOURCE = GoSource(
    "paddle-operator",
    "github.com/paddleflow/paddle-operator",
    ("github.com/paddleflow/paddle-operator",),
    1,
    program="paddle-operator",
)

_IN_A_POD = "it runs in a pod, where it elects a leader"
RIGHTS = Rights(
    watched=(
        Right("batch.paddlepaddle.org", ("paddlejobs",), ("list", "update", "watch")),
        Right("batch.paddlepaddle.org", ("paddlejobs/status",), ("update",)),
        Right("", ("pods",), ("create", "delete", "list", "watch")),
        Right("", ("pods/exec",), ("create",), used_when="the init container of a pod waits for the other pods"),
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
"""The rights with Volcano installed, when the operator creates a PodGroup for every job."""


class PaddleOperatorSpec(ScopedOperatorSpec):
    """The Paddle operator, which runs PaddleJobs.

    Every PaddleJob has the operator's finalizer, so jobs have to be deleted before the operator.
    """

    NAME = "paddle"
    COMPONENT = "PaddleOperator"
    PROGRAMS = (
        OperatorProgram(
            _DEPLOYMENT,
            "paddle-operator",
            SOURCE,
            "http://127.0.0.1:{port}/readyz",
            added_arguments=(
                "--metrics-bind-address=127.0.0.1:{other_port}",
                "--health-probe-bind-address=127.0.0.1:{port}",
            ),
            # Leader election needs the namespace of a pod, which a process outside the cluster does not have.
            left_out_arguments=("--leader-elect",),
        ),
    )
    INSTALL_AFTER = ("volcano",)
    IMAGE = "registry.baidubce.com/paddlecloud/controller"
    TAG_PREFIX = "v"
    FLOOR = (0, 3, 0)
    TOO_OLD = (
        "it supports neither gang scheduling through PodGroups nor clean-up policies, and its definition uses "
        "apiextensions.k8s.io/v1beta1, which Kubernetes 1.22 removed"
    )
    NEWEST = (0, 3, 5)
    TRIED = ((0, 3, 1),)

    version: Tag = "0.3.1"
    """The version of the operator; 0.3.1 by default."""
    namespace: DnsLabel = "paddle-system"
    """The namespace that the operator runs in; paddle-system by default."""

    def objects(self, *, volcano_installed: bool, placement: Placement | None) -> ObjectGroup:
        """Returns the operator's objects; with Volcano it creates a PodGroup for every job."""
        parts = Installation(_DEPLOYMENT, self.namespace)
        parts.define([definition()])
        parts.allow(GANG_RIGHTS if volcano_installed else RIGHTS, watched=self.watched_namespace)
        program = Program(
            image=self.image_reference(),
            command=["/manager"],
            args=[
                "--leader-elect",
                *([f"--namespace={self.watched_namespace}"] if self.watched_namespace else []),
                *(["--scheduling=volcano"] if volcano_installed else []),
            ],
            ports={"health": 8081},
            readiness=http_probe("/readyz", "health"),
            liveness=http_probe("/healthz", "health", delay=15),
        )
        parts.deploy(self, program, placement=placement)
        return ObjectGroup(self.COMPONENT, tuple(parts.objects))


@cache
def definition() -> Definition:
    """Returns the definition of the kind PaddleJob."""
    return Definition(
        group="batch.paddlepaddle.org",
        version="v1",
        kind="PaddleJob",
        plural="paddlejobs",
        short_names=("pdj",),
        spec=schema_of(PaddleJobSpec, opaque_models=(PodTemplate,)),
        status=OPEN_OBJECT,
        columns=(
            Column("Status", ".status.phase"),
            Column("Mode", ".status.mode"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )
