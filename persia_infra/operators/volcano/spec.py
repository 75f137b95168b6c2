"""The settings of Volcano (volcano-sh/volcano)."""

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from persia_infra.kube.objects import ObjectGroup
from persia_infra.kube.placement import Placement
from persia_infra.kube.pods import Resources
from persia_infra.kube.programs import GoSource, OperatorProgram
from persia_infra.operators.operator import Digest, OperatorSpec, Tag, container_resources
from persia_infra.operators.volcano.objects import ADMISSION, CONTROLLERS, SCHEDULER, WEBHOOK_PORT, volcano_objects
from persia_infra.operators.volcano.queue import QueueSpec
from persia_infra.operators.volcano.rights import SERVICE
from persia_infra.spec.base import DnsLabel, Finding


def _source(part: str, minutes: int) -> GoSource:
    package = f"volcano.sh/volcano/cmd/{part}"
    return GoSource("volcano", "volcano.sh/volcano", (package,), minutes, program=f"vc-{part}")


SOURCES = {
    part: _source(part, minutes)
    for part, minutes in (("scheduler", 3), ("controller-manager", 1), ("webhook-manager", 1))
}
_HEALTH = "http://127.0.0.1:{port}/healthz"
_ADDRESSES = ("--healthz-address=127.0.0.1:{port}", "--listen-address=127.0.0.1:{other_port}")


class VolcanoSpec(OperatorSpec):
    """Volcano, which schedules gangs of pods from queues.

    It consists of three programs: scheduler, controllers and admission webhooks.
    """

    NAME = "volcano"
    COMPONENT = "Volcano"
    PROGRAMS = (
        OperatorProgram(
            SCHEDULER, "vc-scheduler", SOURCES["scheduler"], _HEALTH, "--kubeconfig", added_arguments=_ADDRESSES
        ),
        OperatorProgram(
            ADMISSION,
            "vc-webhook-manager",
            SOURCES["webhook-manager"],
            None,
            "--kubeconfig",
            SERVICE,
            ("--listen-address=127.0.0.1", "--port={port}", "--healthz-address=127.0.0.1:{other_port}"),
        ),
        OperatorProgram(
            CONTROLLERS,
            "vc-controller-manager",
            SOURCES["controller-manager"],
            _HEALTH,
            "--kubeconfig",
            added_arguments=_ADDRESSES,
        ),
    )
    WEBHOOK_PORTS = (WEBHOOK_PORT,)
    IMAGE = "docker.io/volcanosh"
    TAG_PREFIX = "v"
    FLOOR = (1, 14, 0)
    TOO_OLD = (
        "it was built for Kubernetes 1.33 or older, has different webhooks, and lacks kinds that are declared here"
    )
    NEWEST = (1, 14, 1)
    TRIED = ((1, 14, 1),)
    IMAGES: ClassVar[tuple[str, ...]] = ("vc-scheduler", "vc-controller-manager", "vc-webhook-manager")

    version: Tag = "1.14.1"
    """The version of Volcano; 1.14.1 by default."""
    namespace: DnsLabel = "volcano-system"
    """The namespace that Volcano runs in; volcano-system by default."""
    resources: Resources = container_resources("250m", "512Mi")
    """Requests and limits of each of its three programs."""
    digests: dict[str, Digest] = Field(default={})
    """Digests that pin the images, by image: vc-scheduler, vc-controller-manager, vc-webhook-manager."""
    queues: dict[DnsLabel, QueueSpec] = Field(default={})
    """The queues that jobs can wait in, besides `default`."""
    webhook_certificate: str = "1"
    """Any text; changing it creates a new certificate for the webhooks at the next update."""

    def objects(self, *, volcano_installed: bool, placement: Placement | None) -> ObjectGroup:  # noqa: ARG002
        """Returns the objects of the three programs, the queues and the webhooks."""
        return ObjectGroup(self.COMPONENT, tuple(volcano_objects(self, placement)))

    def part_image(self, part: str) -> str:
        """The image of one of the three programs."""
        digest = f"@{self.digests[part]}" if part in self.digests else ""
        return self._reference(f"{self.image or self.IMAGE}/{part}") + digest

    def _findings(self) -> Iterator[Finding]:
        yield from super()._findings()
        if self.digest:
            yield (
                ("digest",),
                "Volcano has three images, so one digest is not enough; write digests with an entry for each",
            )
        for part in self.digests:
            if part not in self.IMAGES:
                yield ("digests", part), f"is not one of Volcano's images; write one of {', '.join(self.IMAGES)}"
        for name in self.queues:
            if name in ("root", "default"):
                yield ("queues", name), "is created by Volcano itself; choose another name"
