"""The operators of an environment: version, image, size, and which namespaces each may act in.

Versions and forms that today's Kubernetes can't run are refused with the reason. Out of scope: an operator's
tuning flags beyond what its component sets, and more than one operator of a kind in a cluster.
"""

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from persia_infra.pods import Resources
from persia_infra.spec import DnsLabel, Finding, Quantity, Spec, matching, refuse

Version = tuple[int, int, int]
VOLCANO_WEBHOOK_PORT = 8443


def _resources(cpu: str, memory: str) -> Resources:
    return Resources(requests={"cpu": cpu, "memory": memory}, limits={"memory": memory})


class OperatorSpec(Spec):
    """What every operator is described with."""

    IMAGE: ClassVar[str]
    """The repository that its authors publish to."""
    TAG_PREFIX: ClassVar[str] = ""
    FLOOR: ClassVar[Version] = (0, 0, 0)
    TOO_OLD: ClassVar[str] = ""
    """Completes "… does not work: " for versions below the floor."""

    version: str
    namespace: DnsLabel
    image: str | None = None
    """Another repository than its authors', without a tag."""
    registry_mirror: Annotated[str, matching(r"[a-z0-9][a-z0-9./:_-]*[a-z0-9]", "no registry and path")] | None = None
    """A registry, with or without a path, that holds copies of the official images."""
    digest: (
        Annotated[str, matching(r"sha256:[0-9a-f]{64}", "no digest; write sha256: and 64 hexadecimal digits")] | None
    ) = None
    """Pins the content as well as the tag."""
    replicas: int = Field(default=1, ge=1)
    """More than one: the others stand by and take over when the leader ends."""
    resources: Resources = _resources("100m", "256Mi")
    pool: DnsLabel | None = None
    """The pool of its pods; any node that takes pods without GPUs when absent."""

    def image_reference(self) -> str:
        """The image with everything that pins it."""
        return self._reference(self.image or self.IMAGE)

    def notes(self) -> Iterator[Finding]:
        """What a reader should know of a choice that is allowed."""
        return iter(())

    def _reference(self, repository: str) -> str:
        if self.registry_mirror:
            repository = f"{self.registry_mirror}/{_path_in_registry(repository)}"
        digest = f"@{self.digest}" if self.digest else ""
        return f"{repository}:{self.TAG_PREFIX}{self.version}{digest}"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        if self.image and re.search(r":[^/]*$|@", self.image):
            yield (
                ("image",),
                "has a tag or digest, which version and digest would contradict; write the repository alone",
            )
        if self.TAG_PREFIX and self.version.startswith(self.TAG_PREFIX):
            yield ("version",), f"starts with {self.TAG_PREFIX!r}, which is put there anyway; leave it out"
        known = _version(self.version)
        if known is not None and known < self.FLOOR:
            lowest = ".".join(map(str, self.FLOOR))
            yield ("version",), f"{self.version} does not work: {self.TOO_OLD}; write {lowest} or newer"


class ScopedOperatorSpec(OperatorSpec):
    """An operator that can be confined to one namespace."""

    watched_namespace: DnsLabel | None = None
    """The only namespace that it acts in, and has rights in; all of them when absent."""


class NatsOperatorSpec(ScopedOperatorSpec):
    """nats-io/nats-operator."""

    IMAGE = "natsio/nats-operator"
    FLOOR = (0, 8, 3)
    TOO_OLD = (
        "it registers its kinds through apiextensions.k8s.io/v1beta1, which Kubernetes 1.22 removed, and ends at once"
    )
    ALL_NAMESPACES_FROM: ClassVar[str] = "nats-io"

    version: str = "0.8.3"
    namespace: DnsLabel = ALL_NAMESPACES_FROM

    def _findings(self) -> Iterator[Finding]:
        yield from super()._findings()
        only = self.watched_namespace
        if only is None and self.namespace != self.ALL_NAMESPACES_FROM:
            yield (
                ("namespace",),
                f"the NATS operator acts in all namespaces only from {self.ALL_NAMESPACES_FROM}, and ends elsewhere; "
                f"leave namespace out, or write watchedNamespace: {self.namespace}",
            )
        if only is not None and self.namespace not in (only, self.ALL_NAMESPACES_FROM):
            yield (
                ("watchedNamespace",),
                "the NATS operator watches the namespace that it runs in, and no other single one; leave namespace out",
            )

    @property
    def own_namespace(self) -> str:
        """Where it runs."""
        return self.watched_namespace or self.namespace

    def notes(self) -> Iterator[Finding]:
        """What a reader should know of a choice that is allowed."""
        yield (
            (),
            "the NATS maintainers advise against their operator for new deployments; a job's own nats: runs without it",
        )


class MpiOperatorSpec(ScopedOperatorSpec):
    """kubeflow/mpi-operator."""

    IMAGE = "mpioperator/mpi-operator"
    FLOOR = (0, 6, 0)
    TOO_OLD = (
        "its API kubeflow.org/v1alpha2 or v1 came with a CustomResourceDefinition of v1beta1, which Kubernetes 1.22 "
        "removed, or is not the v2beta1 that MPI jobs are declared in here"
    )

    version: str = "0.8.2"
    namespace: DnsLabel = "mpi-operator"


class PaddleOperatorSpec(ScopedOperatorSpec):
    """PaddleFlow/paddle-operator."""

    IMAGE = "registry.baidubce.com/paddlecloud/controller"
    TAG_PREFIX = "v"
    FLOOR = (0, 3, 0)
    TOO_OLD = (
        "it knows neither gang scheduling through PodGroups nor clean-up policies, and its CustomResourceDefinition "
        "of v1beta1 was removed by Kubernetes 1.22"
    )

    version: str = "0.3.1"
    namespace: DnsLabel = "paddle-system"


class PersiaOperatorSpec(OperatorSpec):
    """PERSIA's own operator, which is a program inside its runtime image."""

    IMAGE = "persiaml/persia-cpu-runtime"

    version: str = "latest"
    namespace: DnsLabel = "persia-system"
    replicas: int = Field(default=1, ge=1, le=1)
    """It elects no leader, so two of them would make every pod twice."""

    def notes(self) -> Iterator[Finding]:
        """What a reader should know of a choice that is allowed."""
        if self.version == "latest" and self.digest is None:
            yield (
                ("version",),
                "only the tag latest was ever published, and it may change under a running environment; "
                "write digest: as well",
            )


class QueueSpec(Spec):
    """A Volcano queue: a share of the cluster that gangs wait in."""

    weight: int = Field(default=1, ge=1, le=65535)
    capability: dict[str, Quantity] = Field(default={})
    """The most that its jobs may use together."""
    reclaimable: bool = True
    """Whether other queues may take back what it uses above its share."""
    parent: DnsLabel | None = None
    priority: int | None = Field(default=None, ge=0)


class VolcanoSpec(OperatorSpec):
    """volcano-sh/volcano: scheduler, controllers and admission webhooks."""

    IMAGE = "docker.io/volcanosh"
    TAG_PREFIX = "v"
    FLOOR = (1, 14, 0)
    TOO_OLD = (
        "it was built for Kubernetes 1.33 or older, has other webhooks, and lacks kinds that the components declare"
    )

    version: str = "1.14.1"
    namespace: DnsLabel = "volcano-system"
    resources: Resources = _resources("250m", "512Mi")
    digests: dict[str, Annotated[str, matching(r"sha256:[0-9a-f]{64}", "no digest")]] = Field(default={})
    """By image: vc-scheduler, vc-controller-manager, vc-webhook-manager."""
    queues: dict[DnsLabel, QueueSpec] = Field(default={})
    webhook_certificate: str = "1"
    """Any text; another one makes a new certificate at the next update."""

    IMAGES: ClassVar[tuple[str, ...]] = ("vc-scheduler", "vc-controller-manager", "vc-webhook-manager")

    def part_image(self, part: str) -> str:
        """The image of one of its three programs."""
        digest = f"@{self.digests[part]}" if part in self.digests else ""
        return self._reference(f"{self.image or self.IMAGE}/{part}") + digest

    def _findings(self) -> Iterator[Finding]:
        yield from super()._findings()
        if self.digest:
            yield ("digest",), "Volcano has three images; write digests: with one entry for each"
        for part in self.digests:
            if part not in self.IMAGES:
                yield ("digests", part), f"is none of its images; write {', '.join(self.IMAGES)}"
        for name, queue in self.queues.items():
            if name in ("root", "default"):
                yield (
                    ("queues", name),
                    "is made by Volcano itself; choose another name",
                )
            if queue.parent not in (None, "root", *self.queues):
                yield ("queues", name, "parent"), f"no queue {queue.parent!r} is described; add it to queues"


class OperatorsSpec(Spec):
    """The operators that an environment has; none unless it is named here."""

    registry_mirror: str | None = None
    """For every operator that names none of its own."""
    nats: NatsOperatorSpec | None = None
    mpi: MpiOperatorSpec | None = None
    paddle: PaddleOperatorSpec | None = None
    persia: PersiaOperatorSpec | None = None
    volcano: VolcanoSpec | None = None

    @property
    def installed(self) -> dict[str, OperatorSpec]:
        """Those that are there, Volcano first: gangs need it."""
        named: dict[str, OperatorSpec | None] = {
            "volcano": self.volcano,
            "nats": self.nats,
            "mpi": self.mpi,
            "paddle": self.paddle,
            "persia": self.persia,
        }
        mirror = {"registry_mirror": self.registry_mirror}
        return {
            name: spec if spec.registry_mirror or not self.registry_mirror else spec.model_copy(update=mirror)
            for name, spec in named.items()
            if spec is not None
        }

    @property
    def webhook_ports(self) -> list[int]:
        """Ports of pods that the control plane calls; a private GKE cluster's firewall must let it through."""
        return [VOLCANO_WEBHOOK_PORT] if self.volcano else []

    def notes(self) -> Iterator[Finding]:
        """What a reader should know of choices that are allowed."""
        for name, spec in self.installed.items():
            yield from (((name, *place), message) for place, message in spec.notes())


def _version(text: str) -> Version | None:
    found = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def _path_in_registry(repository: str) -> str:
    host, _, rest = repository.partition("/")
    return rest if rest and ("." in host or ":" in host or host == "localhost") else repository
