"""The base class of operators: version, image, size, rights, objects and programs.

An operator is one module with one class that derives from `OperatorSpec`. Versions that current Kubernetes cannot
run are refused with the reason. Out of scope: command-line flags beyond those that the modules set, and more than one
operator of a kind in a cluster.
"""

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from persia_infra.kube.objects import ObjectGroup
from persia_infra.kube.placement import Placement
from persia_infra.kube.pods import Resources
from persia_infra.kube.programs import OperatorProgram
from persia_infra.spec.base import DnsLabel, Finding, Spec, matching, refuse

Version = tuple[int, int, int]
SYSTEM_NAMESPACES = re.compile(r"default|kube-.*|gke-.*|gmp-.*")
"""Namespaces of Kubernetes and GKE, which a stack must not own."""

_REGISTRY = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?"
_PATH = r"[a-z0-9]+([._-]+[a-z0-9]+)*"
Mirror = Annotated[
    str, matching(rf"{_REGISTRY}(/{_PATH})*", "registry; write its host and path, such as eu.pkg.dev/team/mirror")
]
Tag = Annotated[str, matching(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", "image tag; write one such as 1.2.3")]
Digest = Annotated[str, matching(r"sha256:[0-9a-f]{64}", "digest; write sha256: and 64 hexadecimal digits")]
Repository = Annotated[
    str,
    matching(
        rf"({_REGISTRY}/)?{_PATH}(/{_PATH})*",
        "repository; write it without a scheme, tag or digest; version and digest are fields of their own",
    ),
]


def container_resources(cpu: str, memory: str) -> Resources:
    """Returns requests for CPU and memory, and a limit for the memory."""
    return Resources(requests={"cpu": cpu, "memory": memory}, limits={"memory": memory})


class OperatorSpec(Spec):
    """An operator of any kind."""

    NAME: ClassVar[str]
    """The operator's key under `operators`."""
    COMPONENT: ClassVar[str]
    """The type of the Pulumi component that declares the operator."""
    PROGRAMS: ClassVar[tuple[OperatorProgram, ...]] = ()
    """The programs that a rehearsal runs instead of the operator's pods."""
    INSTALL_AFTER: ClassVar[tuple[str, ...]] = ()
    """Operators whose kinds it uses, and which are installed before it if the environment has them."""
    WEBHOOK_PORTS: ClassVar[tuple[int, ...]] = ()
    """The ports of its pods that the control plane calls, which the firewall of a private cluster has to open."""
    IMAGE: ClassVar[str]
    """The repository of the official image."""
    TAG_PREFIX: ClassVar[str] = ""
    """The part of the image's tag before the version."""
    FLOOR: ClassVar[Version] = (0, 0, 0)
    """The oldest version that works."""
    TOO_OLD: ClassVar[str] = ""
    """Why older versions do not work; completes "<version> does not work: ..."."""
    NEWEST: ClassVar[Version | None] = None
    """The newest version whose kinds and rights are known; None if versions have no order."""
    TRIED: ClassVar[tuple[Version, ...]] = ()
    """The versions that the tests run with the declared rights."""

    version: Tag
    """The version of the operator, which is the image's tag."""
    namespace: DnsLabel
    """The namespace that the operator runs in; the stack creates it."""
    image: Repository | None = None
    """The image's repository, without a tag; the official one when absent."""
    registry_mirror: Mirror | None = None
    """A registry, with or without a path, that holds copies of the official images."""
    digest: Digest | None = None
    """The digest that pins the image's content in addition to the tag."""
    replicas: int = Field(default=1, ge=1)
    """The number of pods; one leads, and the others take over when it ends."""
    resources: Resources = container_resources("100m", "256Mi")
    """Requests and limits of each pod."""
    pool: DnsLabel | None = None
    """The node pool of its pods; the first pool without GPUs when absent."""

    def objects(self, *, volcano_installed: bool, placement: Placement | None) -> ObjectGroup:
        """Returns the operator's Kubernetes objects.

        Args:
            volcano_installed: Whether Volcano schedules gangs in the same cluster.
            placement: The pool of its pods; any node when absent.
        """
        raise NotImplementedError

    @property
    def only_namespace(self) -> str | None:
        """The only namespace that the operator acts in; None for all of them."""
        return None

    def image_reference(self) -> str:
        """The image with its tag and, if given, its digest."""
        return self._reference(self.image or self.IMAGE)

    def notes(self) -> Iterator[Finding]:
        """Notes on choices that are allowed but have consequences."""
        version = parsed_version(self.version)
        if version is not None and self.TRIED and version not in self.TRIED:
            tried = " and ".join(map(_dotted, self.TRIED))
            yield ("version",), f"its rights were tested only with {tried}; check its log for forbidden requests"

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
                f"{self.namespace!r} belongs to Kubernetes or GKE, so a stack must not own it; choose another name",
            )
        if self.NEWEST is None:
            return
        version = parsed_version(self.version)
        if version is None:
            prefix = f", without {self.TAG_PREFIX!r}, which is added automatically" if self.TAG_PREFIX else ""
            yield (
                ("version",),
                f"{self.version!r} is not a valid version, and its kinds and rights depend on the version; "
                f"write {_dotted(self.NEWEST)}{prefix}",
            )
        elif version < self.FLOOR:
            yield (
                ("version",),
                f"{self.version} does not work: {self.TOO_OLD}; write {_dotted(self.FLOOR)} or newer",
            )
        elif version[:2] > self.NEWEST[:2]:
            yield (
                ("version",),
                f"{self.version} is newer than this library and may need other kinds and rights; write "
                f"{_dotted(self.NEWEST)}",
            )


class ScopedOperatorSpec(OperatorSpec):
    """An operator that can be confined to one namespace."""

    watched_namespace: DnsLabel | None = None
    """The only namespace that it acts in and has rights in; all namespaces when absent."""

    @property
    def only_namespace(self) -> str | None:
        """The namespace that the operator watches; None for all of them."""
        return self.watched_namespace


def parsed_version(text: str) -> Version | None:
    """The three numbers of a version; None if it has another form."""
    match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)([-.][A-Za-z0-9_.-]+)?", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


def _path_in_registry(repository: str) -> str:
    host, _, rest = repository.partition("/")
    return rest if rest and ("." in host or ":" in host or host == "localhost") else repository
