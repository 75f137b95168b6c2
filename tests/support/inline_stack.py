"""A stack of a test's own under the real engine, and kubectl to look at what it deployed."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pulumi import automation
from pulumi.automation._stack import StackInitMode

from persia_infra.rehearsal.control_plane import ControlPlane
from tests.support.cluster_access import kubectl

Program = Callable[[], object]


class _Stack(automation.Stack):
    """Does not ask the CLI for outputs and history after each update, which takes it longer than the update."""

    def outputs(self) -> automation.OutputMap:
        return {}

    def info(self, show_secrets: bool = True) -> automation.UpdateSummary:  # noqa: ARG002
        return automation.UpdateSummary("", datetime.now(UTC), "", {}, {}, "")


class InlineStack:
    """The programs are functions of the test; the state goes with the folder."""

    def __init__(self, folder: Path, control_plane: ControlPlane, port: int) -> None:
        self.control_plane = control_plane
        self._folder = folder
        (folder / "state").mkdir()
        workspace = automation.LocalWorkspace(
            work_dir=str(folder),
            program=lambda: None,
            project_settings=automation.ProjectSettings(name="test", runtime="python"),
            env_vars={
                "PATH": control_plane.environment["PATH"],
                "PULUMI_BACKEND_URL": f"file://{folder}/state",
                "PULUMI_HOME": str(folder / "home"),
                "PULUMI_CONFIG_PASSPHRASE": "only for this test",
                "PULUMI_DEBUG_PROVIDERS": f"kubernetes:{port}",
                "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
                "PULUMI_SKIP_UPDATE_CHECK": "true",
            },
        )
        self._stack = _Stack("dev", workspace, StackInitMode.CREATE)
        self._changed: Mapping[Any, int] = {}

    def up(self, program: Program) -> dict[str, int]:
        self._stack.up(program=lambda: discard(program()), on_event=self._count)
        return changes(self._changed)

    def preview(self, program: Program) -> dict[str, int]:
        return changes(self._stack.preview(program=lambda: discard(program())).change_summary)

    def refused(self, program: Program) -> str:
        """The CLI's words about an update that fails."""
        try:
            self.up(program)
        except automation.CommandError as error:
            said = str(error)
        else:
            raise AssertionError("the update succeeded")
        return said

    def refresh(self) -> dict[str, int]:
        self._stack.refresh(on_event=self._count)
        return changes(self._changed)

    def destroy(self) -> None:
        self._stack.destroy()

    def outputs(self) -> automation.OutputMap:
        return automation.Stack.outputs(self._stack)

    def _count(self, event: automation.EngineEvent) -> None:
        if event.summary_event:
            self._changed = event.summary_event.resource_changes

    def state_on_disk(self) -> str:
        """The Automation API would decrypt it."""
        return (self._folder / "state/.pulumi/stacks/test/dev.json").read_text()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return kubectl(self.control_plane, *arguments, stdin=stdin)


def discard(_made: object) -> None:
    return None


def changes(summary: Mapping[Any, int] | None) -> dict[str, int]:
    """What changed, without the stack's own entry: the first update makes it, and then it stays the same."""
    counts = {str(getattr(op, "value", op)): count for op, count in (summary or {}).items()}
    if "same" not in counts and "create" in counts:
        counts["create"] -= 1
    return {op: count for op, count in counts.items() if op != "same" and count}
