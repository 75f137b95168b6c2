"""Runs all processes of a rehearsal below a separate process, so that they end whatever happens to the parent.

The supervisor creates the rehearsal's folder and reads requests from its standard input. When that closes (the
parent closed it, or died, even by kill -9), it ends every process below it and removes the folder. On Linux it adopts
orphans, so this includes processes whose own parent has died.

There are two kinds of processes: parts, which live as long as the rehearsal, and commands, which end by themselves.

Out of scope: restarting a part that ended; the rehearsal has failed then.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from persia_infra.rehearsal.process_tree import (
    MARKER,
    adopt_orphans,
    die_with_the_parent,
    end_descendants,
    end_marked,
    end_session,
)

GRACE_SECONDS = 1.0
POLL_SECONDS = 0.05


class PartFailed(Exception):
    """A part did not start, or ended; the text holds its name and the last lines of its log."""


class SupervisorEnded(PartFailed):
    """The supervisor died, and with it everything below it."""


class Supervisor:
    """The parent's side of the supervisor."""

    def __init__(self, folder: Path) -> None:
        """Starts the supervisor and waits until it has created the folder.

        Raises:
            OSError: The folder cannot be created.
        """
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._asking = threading.Lock()
        self._commands = 0
        if error := self._ask({"ended": True}).get("error"):
            raise OSError(error)

    @property
    def pid(self) -> int:
        """The process id of the supervisor."""
        return self._process.pid

    def start(self, name: str, command: Sequence[str | Path], *, log: Path, environment: Mapping[str, str]) -> int:
        """Starts a part in the rehearsal's folder, with both output streams in the log.

        Returns:
            The process id.

        Raises:
            OSError: The part cannot be started.
            SupervisorEnded: The supervisor has ended.
        """
        return self._start({"start": name, "output": str(log)}, command, self._folder, environment)

    def run(
        self,
        command: Sequence[str | Path],
        *,
        folder: Path,
        environment: Mapping[str, str],
        output: Path,
        errors: Path | None = None,
    ) -> "Command":
        """Starts a command in a session of its own, with its output in files.

        Args:
            command: The program and its arguments.
            folder: The working folder.
            environment: All of its variables.
            output: Receives standard output, and standard error too unless `errors` is given.
            errors: Receives standard error.

        Raises:
            OSError: The command cannot be started.
            SupervisorEnded: The supervisor has ended.
        """
        with self._asking:
            self._commands += 1
            name = f"command-{self._commands}"
        files = {"output": str(output), "errors": str(errors) if errors else None}
        pid = self._start({"run": name, **files}, command, folder, environment)
        return Command(self, name, pid, output, errors)

    def stop(self, name: str) -> None:
        """Ends a part and forgets it, so that it does not count as ended."""
        self._ask({"stop": name})

    def ended(self) -> dict[str, int]:
        """Returns the parts that no longer run, with their exit codes."""
        return self._ask({"ended": True})["ended"]

    def exit_code(self, command: str) -> int | None:
        """Returns the exit code of a command, or None while it runs; leftovers of an ended command are killed."""
        return self._ask({"exit_code": command})["code"]

    def signal(self, command: str, number: int) -> None:
        """Sends a signal to a command that still runs."""
        self._ask({"signal": command, "number": number})

    def close(self) -> None:
        """Ends every process, removes the folder, and waits until both are done."""
        if self._process.stdin and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        if self._process.returncode:
            # It was killed. Its own children died with it, but their children did not.
            end_marked(self._folder)
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(
        self, request: dict[str, Any], command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]
    ) -> int:
        program = {"command": [str(part) for part in command], "folder": str(folder)}
        answer = self._ask({**request, **program, "environment": {**environment, MARKER: str(self._folder)}})
        if error := answer.get("error"):
            raise OSError(error)
        return int(answer["pid"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        line = ""
        with self._asking:
            if self._process.stdin and self._process.stdout and not self._process.stdin.closed:
                try:
                    self._process.stdin.write(json.dumps(request) + "\n")
                    self._process.stdin.flush()
                    line = self._process.stdout.readline()
                except BrokenPipeError:
                    pass
        if not line:
            raise SupervisorEnded(
                f"the supervisor of the rehearsal (process {self.pid}) was ended from outside, and all of its "
                "processes with it: run the rehearsal again"
            )
        return json.loads(line)


class Command:
    """A command that the supervisor runs; used like a `subprocess.Popen`."""

    def __init__(self, supervisor: Supervisor, name: str, pid: int, output: Path, errors: Path | None) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._supervisor = supervisor
        self._name = name
        self._output = output
        self._errors = errors

    @property
    def output(self) -> str:
        """What the command has printed so far."""
        return self._output.read_text(errors="replace")

    def poll(self) -> int | None:
        """Returns the exit code, or None while the command runs."""
        if self.returncode is None:
            self.returncode = self._supervisor.exit_code(self._name)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits until the command has ended.

        Raises:
            subprocess.TimeoutExpired: It runs for longer than `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(self._name, timeout or 0.0)
            time.sleep(POLL_SECONDS)
        return code

    def communicate(self) -> tuple[str, str]:
        """Waits for the end and returns standard output and standard error."""
        self.wait()
        return self.output, self._errors.read_text(errors="replace") if self._errors else ""

    def send_signal(self, number: int) -> None:
        """Sends a signal, if the command still runs."""
        if self.poll() is None:
            self._supervisor.signal(self._name, number)


def _start(request: dict[str, Any], *, as_command: bool) -> subprocess.Popen[bytes]:
    with contextlib.ExitStack() as files:
        output = files.enter_context(Path(request["output"]).open("ab"))
        errors = files.enter_context(Path(request["errors"]).open("ab")) if request.get("errors") else output
        return subprocess.Popen(
            request["command"],
            cwd=request["folder"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=request["environment"],
            start_new_session=as_command,
            preexec_fn=_command_signals if as_command else die_with_the_parent,
        )


def _command_signals() -> None:
    """Restores the signals that the supervisor ignores: the CLI needs SIGINT to stop its plugins quickly."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    die_with_the_parent()


def _end(processes: dict[str, subprocess.Popen[bytes]]) -> None:
    """Ends the newest processes first, since a part may need the older ones to shut down cleanly."""
    running = [process for process in reversed(processes.values()) if process.poll() is None]
    for process in running:
        process.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    for process in running:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class _Supervision:
    """The supervisor's own process."""

    def __init__(self) -> None:
        self._parts: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, subprocess.Popen[bytes]] = {}
        self._exit_codes: dict[str, int] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if name := request.get("start") or request.get("run"):
            return self._start(name, request)
        if name := request.get("stop"):
            _end({name: self._parts.pop(name)} if name in self._parts else {})
            return {}
        if name := request.get("exit_code"):
            return {"code": self._exit_code(name)}
        if name := request.get("signal"):
            if self._exit_code(name) is None:
                self._commands[name].send_signal(request["number"])
            return {}
        codes = {name: process.poll() for name, process in self._parts.items()}
        return {"ended": {name: code for name, code in codes.items() if code is not None}}

    def end(self) -> None:
        for process in self._commands.values():
            if process.poll() is None:
                process.kill()
                process.wait()
            end_session(process.pid)
        _end(self._parts)
        end_descendants()

    def _start(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        as_command = "run" in request
        try:
            process = _start(request, as_command=as_command)
        except OSError as error:
            return {"error": str(error)}
        (self._commands if as_command else self._parts)[name] = process
        return {"pid": process.pid}

    def _exit_code(self, name: str) -> int | None:
        process = self._commands.get(name)
        if process and (code := process.poll()) is not None:
            end_session(process.pid)
            self._exit_codes[name] = code
            del self._commands[name]
        return self._exit_codes.get(name)


def _supervise(folder: Path) -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    adopt_orphans()
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        print(json.dumps({"error": f"the folder of the rehearsal cannot be created: {error}"}), flush=True)
        return
    supervision = _Supervision()
    try:
        for line in sys.stdin:
            sys.stdout.write(json.dumps(supervision.answer(json.loads(line))) + "\n")
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        supervision.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _supervise(Path(sys.argv[1]))
