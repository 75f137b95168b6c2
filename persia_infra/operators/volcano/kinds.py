"""The kinds of Volcano 1.14: PodGroups, queues and jobs with a schema, the others without one.

Defaults are left to the scheduler and the controllers, except where Volcano expects its definitions to set
them.
"""

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field

from persia_infra.kube.crd import OPEN_OBJECT, Column, Definition, Schema, schema_of
from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.operators.volcano.queue import QueueSpec
from persia_infra.spec.base import Quantity, Spec

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"^{_LABEL}(\.{_LABEL})*$"
ObjectName = Annotated[str, Field(max_length=253, pattern=_SUBDOMAIN)]

_OBJECT_NAME: Schema = {"type": "string", "maxLength": 253, "pattern": _SUBDOMAIN}
_DEFAULT_QUEUE: Schema = {**_OBJECT_NAME, "default": "default"}
_AGE = Column("Age", ".metadata.creationTimestamp", "date")


class NetworkTopology(Spec):
    """How close to each other the pods of a gang have to run."""

    mode: Literal["hard", "soft"] | None = None
    highest_tier_allowed: int | None = Field(default=None, ge=0)
    highest_tier_name: ObjectName | None = None


class PodGroupSpec(Spec):
    """Pods that start together or not at all."""

    min_member: int | None = Field(default=None, ge=0)
    min_task_member: dict[str, int] | None = None
    min_resources: dict[str, Quantity] | None = None
    priority_class_name: ObjectName | None = None
    queue: str | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[dict[str, Any]] | None = None


class VolcanoTask(Spec):
    """The pods of one kind in a Volcano job."""

    name: str | None = Field(default=None, max_length=63, pattern=f"^{_LABEL}$")
    replicas: int | None = Field(default=None, ge=0)
    min_available: int | None = Field(default=None, ge=0)
    max_retry: int | None = Field(default=None, ge=0)
    template: PodTemplate | None = None


class VolcanoJobSpec(Spec):
    """A job of Volcano's own API."""

    min_available: int | None = Field(default=None, ge=0)
    min_success: int | None = Field(default=None, ge=1)
    max_retry: int | None = Field(default=None, ge=0)
    queue: str | None = None
    priority_class_name: ObjectName | None = None
    scheduler_name: str | None = Field(default=None, max_length=63)
    plugins: dict[str, list[str]] | None = None
    tasks: list[VolcanoTask] | None = Field(default=None, min_length=1)
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0)
    network_topology: NetworkTopology | None = None


@cache
def definitions() -> tuple[Definition, ...]:
    """Returns all kinds that the scheduler and the controllers watch; they wait forever for a missing one."""
    job = schema_of(
        VolcanoJobSpec,
        open_models=(VolcanoJobSpec,),
        opaque_models=(PodTemplate,),
        replace={
            "queue": _DEFAULT_QUEUE,
            "maxRetry": {"type": "integer", "format": "int32", "default": 3, "minimum": 0},
        },
    )
    return (
        Definition(
            group="scheduling.volcano.sh",
            version="v1beta1",
            kind="PodGroup",
            plural="podgroups",
            short_names=("pg", "podgroup-v1beta1"),
            spec=schema_of(PodGroupSpec, replace={"queue": _DEFAULT_QUEUE}),
            status=OPEN_OBJECT,
            status_is_plain=True,
            spec_required=False,
            columns=(
                Column("Status", ".status.phase"),
                Column("MinMember", ".spec.minMember", "integer"),
                Column("Running", ".status.running", "integer"),
                Column("Queue", ".spec.queue"),
                _AGE,
            ),
        ),
        Definition(
            group="scheduling.volcano.sh",
            version="v1beta1",
            kind="Queue",
            plural="queues",
            short_names=("q", "queue-v1beta1"),
            namespaced=False,
            spec=schema_of(
                QueueSpec,
                open_models=(QueueSpec,),
                replace={
                    "weight": {"type": "integer", "format": "int32", "default": 1, "minimum": 1, "maximum": 65535},
                    "parent": _OBJECT_NAME,
                    "reclaimable": {"type": "boolean"},
                    "dequeueStrategy": {"type": "string", "default": "traverse", "enum": ["fifo", "traverse"]},
                },
            ),
            status=OPEN_OBJECT,
            spec_required=False,
            columns=(Column("Parent", ".spec.parent"), Column("State", ".status.state"), _AGE),
        ),
        Definition(
            group="batch.volcano.sh",
            version="v1alpha1",
            kind="Job",
            plural="jobs",
            short_names=("vcjob", "vj"),
            spec=job,
            status=OPEN_OBJECT,
            spec_required=False,
            columns=(
                Column("Status", ".status.state.phase"),
                Column("MinAvailable", ".status.minAvailable", "integer"),
                Column("Running", ".status.running", "integer"),
                Column("Queue", ".spec.queue"),
                _AGE,
            ),
        ),
        Definition(
            group="flow.volcano.sh",
            version="v1alpha1",
            kind="JobTemplate",
            plural="jobtemplates",
            short_names=("jt",),
            spec=job,
            status=OPEN_OBJECT,
            spec_required=False,
        ),
        _open("flow.volcano.sh", "JobFlow", "jobflows", ("jf",)),
        _open("batch.volcano.sh", "CronJob", "cronjobs", ("cronvcjob", "cronvj")),
        _open("topology.volcano.sh", "HyperNode", "hypernodes", ("hn",), namespaced=False),
        Definition(
            group="nodeinfo.volcano.sh",
            version="v1alpha1",
            kind="Numatopology",
            plural="numatopologies",
            short_names=("numatopo",),
            namespaced=False,
            spec=OPEN_OBJECT,
            spec_required=False,
        ),
        _open("shard.volcano.sh", "NodeShard", "nodeshards", ("nsh",), namespaced=False, spec_required=True),
        _open("config.volcano.sh", "ColocationConfiguration", "colocationconfigurations", spec_required=True),
        Definition(
            group="bus.volcano.sh",
            version="v1alpha1",
            kind="Command",
            plural="commands",
            open_root=True,
        ),
    )


def _open(
    group: str,
    kind: str,
    plural: str,
    short_names: tuple[str, ...] = (),
    *,
    namespaced: bool = True,
    spec_required: bool = False,
) -> Definition:
    return Definition(
        group=group,
        version="v1alpha1",
        kind=kind,
        plural=plural,
        short_names=short_names,
        namespaced=namespaced,
        spec=OPEN_OBJECT,
        status=OPEN_OBJECT,
        spec_required=spec_required,
    )
