"""The operators of an environment: version, image, size, and which namespaces each may act in.

Versions and forms that today's Kubernetes can't run are refused with the reason. Out of scope: an operator's
tuning flags beyond what its component sets, and more than one operator of a kind in a cluster.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from persia_infra.kube.pods import Resources
from persia_infra.spec.base import DnsLabel, Finding, Quantity, Spec, matching, refuse

Version = tuple[int, int, int]
VOLCANO_WEBHOOK_PORT = 8443
SYSTEM_NAMESPACES = re.compile(r"default|kube-.*|gke-.*|gmp-.*")
"""Those of Kubernetes and of GKE, which no stack may own."""

_REGISTRY = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?"
_PATH = r"[a-z0-9]+([._-]+[a-z0-9]+)*"
Mirror = Annotated[
    str, matching(rf"{_REGISTRY}(/{_PATH})*", "no registry; write its host and path, such as eu.pkg.dev/team/mirror")
]
Tag = Annotated[str, matching(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", "no image tag; write one such as 1.2.3")]
Repository = Annotated[
    str,
    matching(
        rf"({_REGISTRY}/)?{_PATH}(/{_PATH})*",
        "no repository; write it without a scheme, tag or digest, which version and digest are for",
    ),
]


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
    NEWEST: ClassVar[Version | None] = None
    """Rights and kinds are known up to this version; None where versions have no order."""
    TRIED: ClassVar[tuple[Version, ...]] = ()
    """What the tests run with the rights that are declared."""

    version: Tag
    namespace: DnsLabel
    image: Repository | None = None
    """Another repository than its authors', without a tag."""
    registry_mirror: Mirror | None = None
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
        known = _version(self.version)
        if known is not None and self.TRIED and known not in self.TRIED:
            tried = " and ".join(map(_dotted, self.TRIED))
            yield ("version",), f"its rights were tried with {tried} only; look for forbidden requests in its log"

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
        if SYSTEM_NAMESPACES.fullmatch(self.namespace):
            yield (
                ("namespace",),
                f"{self.namespace!r} belongs to Kubernetes or GKE, so this stack must not own it; choose another",
            )
        if self.NEWEST is None:
            return
        known = _version(self.version)
        if known is None:
            prefix = f", without {self.TAG_PREFIX!r}, which is put there anyway" if self.TAG_PREFIX else ""
            yield (
                ("version",),
                f"{self.version!r} tells no version, on which its rights depend; write {_dotted(self.NEWEST)}{prefix}",
            )
        elif known < self.FLOOR:
            yield (
                ("version",),
                f"{self.version} does not work: {self.TOO_OLD}; write {_dotted(self.FLOOR)} or newer",
            )
        elif known[:2] > self.NEWEST[:2]:
            yield (
                ("version",),
                f"{self.version} may need kinds and rights that are not known here; write {_dotted(self.NEWEST)}",
            )


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
    NEWEST = (0, 8, 3)
    TRIED = ((0, 8, 3),)
    ALL_NAMESPACES_FROM: ClassVar[str] = "nats-io"

    version: Tag = "0.8.3"
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
        yield from super().notes()
        yield (
            (),
            "the NATS maintainers advise against their operator for new deployments; a job's own nats: runs without it",
        )


class MpiOperatorSpec(ScopedOperatorSpec):
    """kubeflow/mpi-operator."""

    IMAGE = "mpioperator/mpi-operator"
    FLOOR = (0, 6, 0)
    TOO_OLD = (
        "before 0.4.0 it does not know kubeflow.org/v2beta1, in which MPI jobs are declared here, and before 0.6.0 "
        "not all of its fields (runPolicy.managedBy)"
    )
    NEWEST = (0, 8, 2)
    TRIED = ((0, 7, 0), (0, 8, 2))

    version: Tag = "0.8.2"
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

    NEWEST = (0, 3, 5)
    TRIED = ((0, 3, 1),)

    version: Tag = "0.3.1"
    namespace: DnsLabel = "paddle-system"


class PersiaOperatorSpec(OperatorSpec):
    """PERSIA's own operator, which is a program inside its runtime image."""

    IMAGE = "persiaml/persia-cpu-runtime"

    version: Tag = "latest"
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

    WITHOUT_EFFECT: ClassVar[dict[str, str]] = {
        "parent": "queues are no tree here: Volcano divides the cluster by weight, or by a tree without weights",
        "reclaimable": "Volcano takes nothing back from a gang that runs, because it would end the whole gang",
    }

    weight: int = Field(default=1, ge=1, le=65535)
    capability: dict[str, Quantity] = Field(default={})
    """The most that its jobs may use together."""
    priority: int | None = Field(default=None, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _refuse_what_has_no_effect(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, Mapping):
            refuse(((key,), f"{why}; leave it out") for key, why in cls.WITHOUT_EFFECT.items() if key in data)
        return data


class VolcanoSpec(OperatorSpec):
    """volcano-sh/volcano: scheduler, controllers and admission webhooks."""

    IMAGE = "docker.io/volcanosh"
    TAG_PREFIX = "v"
    FLOOR = (1, 14, 0)
    TOO_OLD = (
        "it was built for Kubernetes 1.33 or older, has other webhooks, and lacks kinds that the components declare"
    )
    NEWEST = (1, 14, 1)
    TRIED = ((1, 14, 1),)

    version: Tag = "1.14.1"
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
        for name in self.queues:
            if name in ("root", "default"):
                yield ("queues", name), "is made by Volcano itself; choose another name"


class OperatorsSpec(Spec):
    """The operators that an environment has; none unless it is named here."""

    registry_mirror: Mirror | None = None
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

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._findings())
        return self

    def _findings(self) -> Iterator[Finding]:
        taken: dict[str, str] = {}
        for name, spec in self.installed.items():
            first = taken.setdefault(spec.namespace, name)
            if first != name:
                yield (name, "namespace"), f"is that of the {first} operator, and both would declare it; choose another"


def _version(text: str) -> Version | None:
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)([-.][A-Za-z0-9_.-]+)?", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


def _path_in_registry(repository: str) -> str:
    host, _, rest = repository.partition("/")
    return rest if rest and ("." in host or ":" in host or host == "localhost") else repository
