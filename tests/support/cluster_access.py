"""What tests look at a cluster with: kubectl, a node, and patience."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from persia_infra.rehearsal.control_plane import ControlPlane

PATIENCE = 90.0
T = TypeVar("T")


def kubectl(control_plane: ControlPlane, *arguments: str, stdin: str | None = None, refused: bool = False) -> str:
    """What it printed; it must succeed, or fail where it should be refused."""
    done = subprocess.run(
        ["kubectl", *arguments], env=control_plane.environment, input=stdin, capture_output=True, text=True, check=False
    )
    assert bool(done.returncode) == refused, f"kubectl {' '.join(arguments)}: {done.stderr or done.stdout}"
    return done.stdout


@contextmanager
def node(control_plane: ControlPlane, name: str, labels: dict[str, str] | None = None, **size: str) -> Iterator[None]:
    """Gone afterwards, so that other tests' counts hold."""
    made = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "status": {"allocatable": size, "capacity": size},
    }
    kubectl(control_plane, "create", "-f", "-", stdin=json.dumps(made))
    yield
    kubectl(control_plane, "delete", "node", name)


def wait_for(what: str, look: Callable[[], T], *, until: Callable[[T], bool] = bool) -> T:
    deadline = time.monotonic() + PATIENCE
    while not until(seen := look()):
        assert time.monotonic() < deadline, f"{what}: last seen {seen!r}"
        time.sleep(0.3)
    return seen
