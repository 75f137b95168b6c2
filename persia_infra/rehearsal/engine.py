"""The real Pulumi CLI on a project, with its own state, home and configuration file.

The project itself is never changed: the CLI runs in a folder of links to it, in which only `Pulumi.yaml` and
the stack's file are copies (the CLI adds its encryption salt to the stack's file). The CLI runs below the supervisor
of the rehearsal, without credentials of the user.

Out of scope: projects in languages other than Python.
"""

import contextlib
import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from persia_infra.rehearsal.isolation import refuse_cluster_settings
from persia_infra.rehearsal.supervisor import Command, Supervisor
from persia_infra.rehearsal.toolchain import Toolchain

CANCEL_WITHIN_SECONDS = 10.0
UNCHANGED = frozenset({"same", "read", "refresh"})

Event = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The result of one command of the CLI."""

    ok: bool
    seconds: float
    changes: Counter[str]
    changed: tuple[str, ...]
    errors: tuple[str, ...]
    stopped: bool = False


@dataclass
class _Log:
    """The changes and errors among the engine's events."""

    changes: Counter[str] = field(default_factory=Counter)
    changed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def take(self, event: Event) -> None:
        if step := event.get("resOutputsEvent") or event.get("resOpFailedEvent"):
            metadata = step["metadata"]
            if metadata["op"] not in UNCHANGED and metadata["type"] != "pulumi:pulumi:Stack":
                self.changed.append(f"{metadata['op']} {metadata['type']} {metadata['urn'].rsplit('::', 1)[-1]}")
        elif diagnostic := event.get("diagnosticEvent"):
            if diagnostic["severity"] == "error":
                self.errors.append(_plain(diagnostic))
        elif summary := event.get("summaryEvent"):
            self.changes.update(summary.get("resourceChanges") or {})


def _plain(diagnostic: Event) -> str:
    """Returns the message without colour marks, after the name of its resource."""
    text = diagnostic["message"]
    for mark in ("<{%reset%}>", "<{%fg 1%}>", "<{%fg 3%}>", "<{%bold%}>"):
        text = text.replace(mark, "")
    resource = diagnostic.get("urn", "").rsplit("::", 1)[-1]
    return f"{resource}: {text.strip()}" if resource else text.strip()


class Engine:
    """One stack of one project; it lasts as long as its folder."""

    def __init__(
        self,
        project: Path,
        stack: str,
        folder: Path,
        tools: Toolchain,
        environment: dict[str, str],
        providers: str,
        supervisor: Supervisor,
        enclosure: Sequence[str] = (),
    ) -> None:
        """Prepares a stack.

        Args:
            project: Folder of the Pulumi project.
            stack: Name of the stack.
            folder: Is created, and holds everything of this engine.
            tools: The programs.
            environment: The variables of the CLI, without any credentials.
            providers: The simulated packages with their ports, as PULUMI_DEBUG_PROVIDERS has them.
            supervisor: Runs the CLI.
            enclosure: The beginning of a command line that keeps the CLI away from the network.

        Raises:
            InputError: The project's or the stack's file chooses a cluster.
            EngineFailed: The CLI refuses the stack.
        """
        refuse_cluster_settings(project, stack_file_of(project, stack))
        self.stack = stack
        self._folder = folder
        self._pulumi = tools["pulumi"]
        self._project = folder / "project"
        self._supervisor = supervisor
        self._enclosure = enclosure
        self._commands = 0
        stack_file = _shadow(project, self._project, stack)
        for name in ("home", "state"):
            (folder / name).mkdir(mode=0o700, parents=True)
        self._environment = environment | {
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder}/state",
            "PULUMI_CONFIG_PASSPHRASE": _passphrase(stack_file),
            "PULUMI_DEBUG_PROVIDERS": providers,
            "PULUMI_DEBUG_COMMANDS": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_PYTHON_CMD": sys.executable,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._call("stack", "init", stack)

    @property
    def version(self) -> str:
        return self._call("version").strip().removeprefix("v")

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which the CLI, run by hand in `project_folder`, works on the same stack."""
        return dict(self._environment)

    def shell_script(self) -> str:
        """Returns shell commands that turn the user's environment into that of the CLI."""
        removed = [name for name in os.environ if name not in self._environment]
        changed = {name: value for name, value in self._environment.items() if os.environ.get(name) != value}
        lines = [f"unset {name}" for name in sorted(removed) if name.isidentifier()]
        lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(changed.items())]
        return "\n".join([*lines, ""])

    @property
    def project_folder(self) -> Path:
        return self._project

    @property
    def stack_file(self) -> Path:
        """The copy of the stack's file that the CLI reads; editing it changes the configuration."""
        return stack_file_of(self._project, self.stack)

    def use_plugin(self, plugin: Path) -> None:
        """Makes an installed provider plugin (a folder in the user's Pulumi home) available."""
        plugins = self._folder / "home" / "plugins"
        plugins.mkdir(exist_ok=True)
        for part in (plugin, plugin.with_suffix(plugin.suffix + ".lock")):
            if part.exists():
                (plugins / part.name).symlink_to(part)

    def preview(self, *arguments: str, on_event: Callable[[Event], None] = lambda _: None) -> Outcome:
        return self._run(["preview", *arguments], on_event)

    def up(
        self,
        *arguments: str,
        on_event: Callable[[Event], None] = lambda _: None,
        give_up: Callable[[], bool] = lambda: False,
    ) -> Outcome:
        """Runs an update; `give_up` is called every second, and True cancels the update as Ctrl-C would."""
        return self._run(["up", "--yes", "--skip-preview", *arguments], on_event, give_up)

    def refresh(self, *arguments: str) -> Outcome:
        return self._run(["refresh", "--yes", "--skip-preview", *arguments])

    def destroy(self, *arguments: str, on_event: Callable[[Event], None] = lambda _: None) -> Outcome:
        """Previews first, so that a protected resource stops the destroy before anything is deleted."""
        # Two commands, because a single one would write both event logs into the same file.
        previewed = self._run(["destroy", "--preview-only", *arguments])
        if not previewed.ok:
            return previewed
        return self._run(["destroy", "--yes", "--skip-preview", *arguments], on_event)

    def cancel(self) -> None:
        """Removes the lock of a state whose update was killed."""
        self._call("cancel", "--yes", "--stack", self.stack)

    def resources(self) -> list[dict[str, Any]]:
        """Returns everything in the state except Pulumi's own entries and components."""
        state = json.loads(self._call("stack", "export", "--stack", self.stack))
        everything = state["deployment"].get("resources") or []
        return [entry for entry in everything if entry.get("custom") and not entry["type"].startswith("pulumi:")]

    def start(self, *arguments: str, separate_errors: bool = False) -> Command:
        """Starts any command of the CLI in its own session; errors are part of its output by default."""
        self._commands += 1
        output = self._folder / f"output-{self._commands}"
        return self._supervisor.run(
            [*self._enclosure, self._pulumi, *arguments, "--non-interactive", "--color=never"],
            folder=self._project,
            environment=self._environment,
            output=output,
            errors=output.with_name(f"errors-{self._commands}") if separate_errors else None,
        )

    def _call(self, *arguments: str) -> str:
        process = self.start(*arguments, separate_errors=True)
        output, errors = process.communicate()
        if process.returncode:
            raise EngineFailed(f"pulumi {' '.join(arguments[:2])}: {(errors or output).strip()}")
        return output

    def _run(
        self,
        arguments: list[str],
        on_event: Callable[[Event], None] = lambda _: None,
        give_up: Callable[[], bool] = lambda: False,
    ) -> Outcome:
        events = self._folder / "events.json"
        events.unlink(missing_ok=True)
        log = _Log()
        started = time.monotonic()
        process = self.start(*arguments, "--stack", self.stack, "--event-log", str(events))
        stopped = False
        try:
            for event in _follow(events, process):
                if event is None:
                    if not stopped and give_up():
                        stopped = True
                        process.send_signal(signal.SIGINT)
                    continue
                log.take(event)
                on_event(event)
        finally:
            _end(process)
        if process.returncode and not log.errors:
            log.errors.append(process.output.strip())
        return Outcome(
            ok=process.returncode == 0,
            seconds=time.monotonic() - started,
            changes=log.changes,
            changed=tuple(log.changed),
            errors=tuple(dict.fromkeys(log.errors)),
            stopped=stopped,
        )


class EngineFailed(Exception):
    """A command of the CLI failed; the text is the CLI's own message."""


def _follow(file: Path, process: Command) -> Iterator[Event | None]:
    """Yields the events as they are written, and None about once a second, until the process has ended."""
    position, rest = 0, ""
    while True:
        ended = process.poll() is not None
        if file.exists():
            with file.open() as opened:
                opened.seek(position)
                rest += opened.read()
                position = opened.tell()
        *lines, rest = rest.split("\n")
        yield from (json.loads(line) for line in lines if line)
        if ended:
            return
        yield None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)


def _end(process: Command) -> None:
    """Interrupts the CLI twice, as a user at the terminal would, and then kills it."""
    for _ in range(2):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(CANCEL_WITHIN_SECONDS)
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _passphrase(stack_file: Path) -> str:
    """Returns the user's passphrase if the stack's file has encrypted values, else a random one."""
    if "encryptionsalt" in (yaml.safe_load(stack_file.read_text()) or {}):
        return os.environ.get("PULUMI_CONFIG_PASSPHRASE", "")
    return secrets.token_urlsafe(24)


def stack_file_of(project: Path, stack: str) -> Path:
    """Returns the file of a stack, which may be in a folder that the project configures."""
    settings = yaml.safe_load((project / "Pulumi.yaml").read_text())
    return project / (settings.get("stackConfigDir") or ".") / f"Pulumi.{stack}.yaml"


def _shadow(project: Path, shadow: Path, stack: str) -> Path:
    """Fills a folder with links to the project, except for a copy of the stack's file.

    The folders above the stack's file are real folders.

    Returns:
        The copy of the stack's file.
    """
    original = stack_file_of(project, stack)
    above = [folder for folder in original.relative_to(project).parents if folder != Path()]
    for folder in [Path(), *reversed(above)]:
        (shadow / folder).mkdir(parents=True)
        _link((project / folder).iterdir(), shadow / folder, leave_out={original, *(project / p for p in above)})
    settings = yaml.safe_load((project / "Pulumi.yaml").read_text())
    settings["runtime"] = "python"
    (shadow / "Pulumi.yaml").unlink()
    (shadow / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
    copy = stack_file_of(shadow, stack)
    copy.write_text(original.read_text())
    return copy


def _link(entries: Iterable[Path], target: Path, leave_out: set[Path]) -> None:
    for entry in entries:
        if entry not in leave_out:
            (target / entry.name).symlink_to(entry)
