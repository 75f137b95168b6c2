"""An operator's component under the real engine, and its own program with the rights that the component gave it."""

import json
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from persia_components.operators._operator import Right, Rights
from pulumi import automation

from persia_infra.rehearsal.control_plane import ControlPlane
from persia_infra.rehearsal.operator_processes import OperatorProcesses

Program = Callable[[], object]
PATIENCE = 90.0
Used = tuple[str, str, str]
"""API group, resource with its subresource, verb."""
T = TypeVar("T")


class OperatorStack:
    """One stack with a state of its own, and kubectl to look at what it deployed."""

    def __init__(self, folder: Path, control_plane: ControlPlane, port: int, processes: OperatorProcesses) -> None:
        self.control_plane = control_plane
        self.processes = processes
        self._folder = folder
        (folder / "state").mkdir()
        self._stack = automation.create_stack(
            "dev",
            project_name="operators",
            program=lambda: None,
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(folder),
                env_vars={
                    "PATH": control_plane.environment["PATH"],
                    "PULUMI_BACKEND_URL": f"file://{folder}/state",
                    "PULUMI_HOME": str(folder / "home"),
                    "PULUMI_CONFIG_PASSPHRASE": "only for this test",
                    "PULUMI_DEBUG_PROVIDERS": f"kubernetes:{port}",
                    "PULUMI_SKIP_UPDATE_CHECK": "true",
                },
            ),
        )

    def up(self, program: Program) -> dict[str, int]:
        return changes(self._stack.up(program=lambda: discard(program())).summary.resource_changes)

    def preview(self, program: Program) -> dict[str, int]:
        return changes(self._stack.preview(program=lambda: discard(program())).change_summary)

    def refresh(self) -> dict[str, int]:
        return changes(self._stack.refresh().summary.resource_changes)

    def destroy(self) -> None:
        self._stack.destroy()

    def state_on_disk(self) -> str:
        return (self._folder / "state/.pulumi/stacks/operators/dev.json").read_text()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            ["kubectl", *arguments],
            env=self.control_plane.environment,
            input=stdin,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def apply(self, *manifests: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        return json.loads(self.kubectl("get", kind, "--namespace", namespace, name, "-o", "json"))

    def names(self, kind: str, namespace: str, selector: str = "") -> set[str]:
        selected = ["--selector", selector] if selector else []
        items = json.loads(self.kubectl("get", kind, "--namespace", namespace, *selected, "-o", "json"))["items"]
        return {item["metadata"]["name"] for item in items}

    def uids(self, kind: str, namespace: str, selector: str = "") -> dict[str, str]:
        selected = ["--selector", selector] if selector else []
        items = json.loads(self.kubectl("get", kind, "--namespace", namespace, *selected, "-o", "json"))["items"]
        return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}

    def running(self, namespace: str, selector: str = "") -> set[str]:
        selected = ["--selector", selector] if selector else []
        items = json.loads(self.kubectl("get", "pods", "--namespace", namespace, *selected, "-o", "json"))["items"]
        return {item["metadata"]["name"] for item in items if item["status"].get("phase") == "Running"}

    def check_rights(self, namespace: str, account: str, rights: Rights, *, group: str | None = None) -> None:
        """Every declared right was used or says when it is; nothing was refused.

        With a group, only its rights have to have been used.
        """
        requests = self.processes.requests(namespace, account)
        refused = {_used(event) for event in requests if event["responseStatus"]["code"] == 403}
        used = {_used(event) for event in requests if "objectRef" in event} - refused
        every = (*rights.everywhere, *rights.watched, *rights.own)
        declared = _declared(right for right in every if right.used_when is None)
        excused = _declared(right for right in every if right.used_when is not None) - declared
        wrong = {
            "asked for what it may not": refused,
            "has rights that it does not use": {one for one in declared - used if group in (None, one[0])},
            "has rights from elsewhere": used - declared - excused,
        }
        found = {what: sorted(rights) for what, rights in wrong.items() if rights}
        assert not found, f"{account}: {found}"


def wait_for(what: str, look: Callable[[], T], *, until: Callable[[T], bool] = bool) -> T:
    deadline = time.monotonic() + PATIENCE
    while not until(seen := look()):
        assert time.monotonic() < deadline, f"{what}: last seen {seen!r}"
        time.sleep(0.3)
    return seen


def discard(_made: object) -> None:
    return None


def changes(summary: Any) -> dict[str, int]:
    """What changed, without what stayed the same and the stack's own entry."""
    counts = {str(getattr(op, "value", op)): count for op, count in (summary or {}).items()}
    return {op: count for op, count in counts.items() if op != "same"}


def _used(event: dict[str, Any]) -> Used:
    target = event.get("objectRef", {})
    resource = "/".join(filter(None, [target.get("resource", ""), target.get("subresource", "")]))
    return target.get("apiGroup", ""), resource, event["verb"]


def _declared(rights: Iterable[Right]) -> set[Used]:
    return {(right.group, resource, verb) for right in rights for resource in right.resources for verb in right.verbs}
