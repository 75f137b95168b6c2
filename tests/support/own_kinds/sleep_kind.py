"""A kind of job and an operator that this library does not know: one module, which lists both at its end.

A project that wants them imports this module before `persia_infra.environment`.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field

from persia_infra.jobs import JOB_KINDS
from persia_infra.jobs.job import NAME_WHILE_CHECKING, Job, ManifestForm, Placements, Workload
from persia_infra.jobs.job_status import JobView
from persia_infra.jobs.settings.pods import final_pod
from persia_infra.jobs.settings.run_settings import RunSettings
from persia_infra.kube.crd import OPEN_OBJECT, Definition
from persia_infra.kube.objects import KubeObject, ObjectGroup, metadata, object_labels
from persia_infra.kube.placement import Placement
from persia_infra.kube.pod_templates import PodTemplate
from persia_infra.kube.programs import OperatorProgram
from persia_infra.operators import OPERATORS
from persia_infra.operators.installation import Installation, Program
from persia_infra.operators.operator import OperatorSpec, Tag
from persia_infra.operators.rights import Right, Rights
from persia_infra.spec.base import DnsLabel, Image, PodCount

API_VERSION = "toys.example.com/v1"
ROLE = "sleeper"
RIGHTS = Rights(
    watched=(
        Right("toys.example.com", ("sleepjobs",), ("list",)),
        Right("toys.example.com", ("sleepjobs/status",), ("patch",)),
        Right("", ("pods",), ("create", "list")),
    )
)


class SleepJobSpec(Job):
    """Pods that sleep for a while."""

    MANIFESTS = (ManifestForm("SleepJob", API_VERSION),)
    COMPONENT = "SleepJob"

    kind: Literal["SleepJob"] = Field(default="SleepJob", exclude=True)  # pyright: ignore[reportIncompatibleVariableOverride]
    sleepers: PodCount = Field(default=1, ge=1)
    """The number of pods; 1 by default."""
    seconds: int = Field(default=60, ge=1)
    """How long each of them sleeps; 60 seconds by default."""
    image: Image = "busybox:1.37"
    """The image of the pods; busybox by default."""
    pool: DnsLabel | None = Field(default=None, exclude=True)
    """The node pool of the pods; the only one without GPUs when absent."""

    def workloads(self, name: str = NAME_WHILE_CHECKING, placements: Placements | None = None) -> list[Workload]:
        """Returns the sleepers."""
        container = {
            "name": "sleep",
            "image": self.image,
            "command": ["sleep", str(self.seconds)],
            "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}},
        }
        template = PodTemplate.model_validate(
            {
                "metadata": {"labels": object_labels("sleep", name, ROLE)},
                "spec": {"restartPolicy": "Never", "securityContext": {"runAsUser": 1000}, "containers": [container]},
            }
        )
        final, _ = final_pod(template, RunSettings(), job=name, placement=(placements or {}).get(ROLE))
        return [Workload(ROLE, (), self.sleepers, final, self.pool)]

    def objects(self, name: str, namespace: str, placements: Placements) -> ObjectGroup:
        """Returns the SleepJob."""
        (load,) = self.workloads(name, placements)
        body = {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "metadata": metadata(name, namespace, object_labels("sleep", name, "job")),
            "spec": {"sleepers": self.sleepers, "template": load.template.as_kubernetes()},
        }
        return ObjectGroup(self.COMPONENT, (KubeObject("", body),))

    def view(self, name: str) -> JobView:
        """Returns where the SleepJob and its pods are found."""
        return JobView({ROLE: rf"{ROLE}-\d+"}, f"{API_VERSION}/sleepjobs", log_of=f"{name}-{ROLE}-0")

    def needed_operators(self) -> dict[str, str]:
        """The sleep operator."""
        return {"sleep": "a SleepJob is only an object until the sleep operator acts on it"}


class SleepOperatorSpec(OperatorSpec):
    """The operator that creates the pods of SleepJobs."""

    NAME = "sleep"
    COMPONENT = "SleepOperator"
    PROGRAMS = (OperatorProgram("sleep-operator", "sleep-operator", Path(__file__).with_name("sleep_operator.py")),)
    IMAGE = "example/sleep-operator"

    version: Tag = "1.0.0"
    """The version of the operator; 1.0.0 by default."""
    namespace: DnsLabel = "sleep-system"
    """The namespace that the operator runs in; sleep-system by default."""

    def objects(self, *, volcano_installed: bool, placement: Placement | None) -> ObjectGroup:  # noqa: ARG002
        """Returns the operator's objects."""
        parts = Installation("sleep-operator", self.namespace)
        kind = Definition("toys.example.com", "v1", "SleepJob", "sleepjobs", spec=OPEN_OBJECT, status=OPEN_OBJECT)
        parts.define([kind])
        parts.allow(RIGHTS)
        parts.deploy(self, Program(image=self.image_reference(), args=["--every=0.5"]), placement=placement)
        return ObjectGroup(self.COMPONENT, tuple(parts.objects))


JOB_KINDS.append(SleepJobSpec)
OPERATORS.append(SleepOperatorSpec)
