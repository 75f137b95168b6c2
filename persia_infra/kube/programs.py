"""Programs that a rehearsal runs as processes of this machine, and where they come from."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class GoSource:
    """A folder under `tools/` with a pinned Go module, and what is built from it in one go."""

    folder: str
    module: str
    packages: tuple[str, ...]
    minutes: int
    """About how long the build takes on 2 cores."""
    version_variables: tuple[tuple[str, str], ...] = ()
    """Variables that the linker sets, and their values, in which `{version}`, `{major}` and `{minor}` stand."""
    program: str | None = None
    """The program's name, where Go would choose another; only with one package."""

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of what is built."""
        return (self.program,) if self.program else tuple(package.rsplit("/", 1)[-1] for package in self.packages)


@dataclass(frozen=True)
class WheelSource:
    """A folder under `tools/` that pins a Python wheel which carries the program."""

    folder: str


@dataclass(frozen=True)
class OperatorProgram:
    """How the program of an operator's Deployment is started outside a pod.

    It gets the Deployment's arguments, variables and mounted files, and a token of its ServiceAccount. In `health`
    and `added_arguments`, `{port}` and `{other_port}` stand for free ports of this machine.
    """

    deployment: str
    """The name of the Deployment."""
    program: str
    """The program's name among the tools."""
    source: GoSource | WheelSource | Path
    """Where the program comes from."""
    health: str | None = None
    """The address that answers once the program is up; without one, its first request to the API server counts."""
    kubeconfig_flag: str | None = None
    """The flag that names a kubeconfig; the variable KUBECONFIG is set in any case."""
    service: str | None = None
    """The Service by which the API server reaches it, for a webhook."""
    added_arguments: tuple[str, ...] = ()
    left_out_arguments: tuple[str, ...] = ()
