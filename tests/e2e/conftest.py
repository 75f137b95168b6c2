"""One real control plane for all of these tests; missing programs are built first."""

import gc
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from persia_infra.operators import operator_programs
from persia_infra.rehearsal import toolchain
from persia_infra.rehearsal.control_plane import ControlPlane
from persia_infra.rehearsal.operator_processes import OperatorProcesses
from persia_infra.rehearsal.provider.kubernetes import Kubernetes
from persia_infra.rehearsal.provider.server import ProviderServer
from persia_infra.rehearsal.rehearse import Rehearsal
from persia_infra.rehearsal.toolchain import Toolchain
from tests.support.cluster_access import kubectl, node
from tests.support.operator_stack import OperatorStack
from tests.support.provider_project import NODE_LABELS, Project
from tests.support.tools import ensure_operator_tools


@pytest.fixture(autouse=True)
def collect_garbage_between_tests() -> Iterator[None]:
    """Collects garbage only between tests.

    The SDK leaves the coroutine of a failed inline program behind, and Python 3.11 may crash if it collects such a
    coroutine while it compiles a module.
    """
    gc.disable()
    yield
    with warnings.catch_warnings(action="ignore"):
        gc.collect()
    gc.enable()


@pytest.fixture(scope="session")
def tools() -> Toolchain:
    return toolchain.ensure(lambda line: print(line, file=sys.stderr, flush=True))


@pytest.fixture(scope="session")
def control_plane(tools: Toolchain) -> Iterator[ControlPlane]:
    with ControlPlane.start(tools) as running:
        yield running


@pytest.fixture(scope="session")
def rehearsal(control_plane: ControlPlane, tools: Toolchain) -> Rehearsal:
    """The simulated cloud on the shared control plane; it has one GKE cluster at a time, so tests destroy theirs."""
    return Rehearsal(control_plane, tools)


@pytest.fixture(scope="session")
def operator_tools() -> Toolchain:
    """The programs of the operators; missing ones are built first."""
    return ensure_operator_tools(lambda line: print(line, file=sys.stderr, flush=True))


@pytest.fixture(scope="module")
def kubernetes_port(control_plane: ControlPlane) -> Iterator[int]:
    """The port of the simulated kubernetes package, which runs in this process."""
    server = ProviderServer(lambda: Kubernetes(control_plane.kubeconfig))
    with pytest.MonkeyPatch.context() as patch:
        # Pulumi's Automation API looks for the CLI on the PATH of this process.
        patch.setenv("PATH", control_plane.environment["PATH"])
        patch.setenv("KUBECONFIG", control_plane.environment["KUBECONFIG"])
        yield server.port
    server.stop()


@pytest.fixture(scope="module")
def operator_node(control_plane: ControlPlane) -> Iterator[None]:
    """A node that is large enough for everything that operators deploy."""
    with node(control_plane, "operator-probe", cpu="200", memory="1000Gi", pods="250"):
        yield


@pytest.fixture(scope="module")
def operator_stack(
    tmp_path_factory: pytest.TempPathFactory,
    control_plane: ControlPlane,
    kubernetes_port: int,
    operator_tools: Toolchain,
    operator_node: None,  # noqa: ARG001
) -> Iterator[OperatorStack]:
    """A stack that is destroyed after the module while its operators still run; then they end too."""
    processes = OperatorProcesses(control_plane, operator_tools, operator_programs())
    stack = OperatorStack(tmp_path_factory.mktemp("stack"), control_plane, kubernetes_port, processes)
    try:
        yield stack
        stack.destroy()
    finally:
        processes.stop_all()


@pytest.fixture(scope="module")
def provider_node(control_plane: ControlPlane) -> Iterator[None]:
    with node(control_plane, "provider-probe", NODE_LABELS, cpu="8", memory="32Gi", pods="50"):
        yield


@pytest.fixture
def project(
    tmp_path: Path,
    control_plane: ControlPlane,
    kubernetes_port: int,
    provider_node: None,  # noqa: ARG001
) -> Iterator[Project]:
    """A project with its own namespace, which is deleted after the test."""
    project = Project(tmp_path, control_plane, kubernetes_port)
    yield project
    kubectl(control_plane, "delete", "namespace", project.namespace, "--wait=false")
