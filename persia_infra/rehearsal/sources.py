"""The programs of a rehearsal and the pinned modules from which they are built."""

import re
from dataclasses import dataclass
from pathlib import Path

from persia_infra.kube.programs import GoSource

Version = tuple[int, ...]


class ToolMissing(Exception):
    """A program cannot be found or built; the text says which, why and what to do."""


@dataclass(frozen=True)
class OnPath:
    """Programs that are used instead of a build if all are on PATH, in this range of versions."""

    programs: tuple[str, ...]
    arguments: tuple[str, ...]
    floor: Version
    below: Version


def _kubernetes_version_variables() -> tuple[tuple[str, str], ...]:
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    fields = (("gitVersion", "v{version}"), ("gitMajor", "{major}"), ("gitMinor", "{minor}"))
    return tuple((f"{package}.{name}", value) for package in packages for name, value in fields)


PULUMI = GoSource(
    "pulumi",
    "github.com/pulumi/pulumi/pkg/v3",
    ("github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",),
    5,
    (("github.com/pulumi/pulumi/sdk/v3/go/common/version.Version", "v{version}"),),
)
LANGUAGE_HOST = GoSource(
    "language-python",
    "github.com/pulumi/pulumi/sdk/v3",
    ("github.com/pulumi/pulumi/sdk/v3/python/cmd/pulumi-language-python",),
    1,
)
KUBERNETES = GoSource(
    "kubernetes",
    "k8s.io/kubernetes",
    tuple(f"k8s.io/kubernetes/cmd/{name}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")),
    7,
    _kubernetes_version_variables(),
)
KWOK = GoSource("kwok", "sigs.k8s.io/kwok", ("sigs.k8s.io/kwok/cmd/kwok",), 2)
ETCD = GoSource("etcd", "go.etcd.io/etcd/server/v3", ("go.etcd.io/etcd/server/v3",), 1, program="etcd")

SOURCES: tuple[tuple[GoSource, OnPath], ...] = (
    (KUBERNETES, OnPath(KUBERNETES.programs, ("--version",), (1, 34), (1, 37))),
    (PULUMI, OnPath(("pulumi", "pulumi-language-python"), ("version",), (3, 231), (4,))),
    (KWOK, OnPath(("kwok",), ("--version",), (0, 7), (1,))),
    (ETCD, OnPath(("etcd",), ("--version",), (3, 5, 13), (4,))),
    (LANGUAGE_HOST, OnPath(("pulumi", "pulumi-language-python"), ("version",), (3, 231), (4,))),
)


def tools_folder() -> Path:
    """Returns `tools/` of a checkout, or the copy inside an installed package."""
    checkout = Path(__file__).parents[2] / "tools"
    return checkout if checkout.is_dir() else Path(__file__).parent / "tools"


def pinned_version(source: GoSource) -> str:
    """Returns the version of a source's module that its go.mod pins."""
    go_mod = (tools_folder() / source.folder / "go.mod").read_text()
    requirement = re.search(rf"^\s*(?:require )?{re.escape(source.module)} v(\S+)", go_mod, re.MULTILINE)
    if not requirement:
        raise ToolMissing(
            f"tools/{source.folder}/go.mod: does not require {source.module}, so it cannot be built; restore the file"
        )
    return requirement[1]


def link_flags(source: GoSource) -> str:
    """Returns the flags that put the pinned version into the programs."""
    version = pinned_version(source)
    major, minor = version.split(".")[:2]
    filled = [
        f"-X {variable}={value.format(version=version, major=major, minor=minor)}"
        for variable, value in source.version_variables
    ]
    return " ".join(["-s", "-w", *filled])
