"""Runs the parts of a rehearsal in a process of its own, so that they end whatever happens to the parent.

The supervisor starts what it is told to on its standard input. When that closes (the parent stopped it, or
died, even by kill -9), it ends every process it started and removes the rehearsal's folder.

Out of scope: restarting a part that ended; a rehearsal whose part ended has failed.
"""

import ctypes
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

GRACE_SECONDS = 1.0


class Supervisor:
    """The parent's end."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._asking = threading.Lock()

    def start(self, name: str, command: Sequence[str | Path], *, log: Path, environment: Mapping[str, str]) -> int:
        """The process id. It runs in the rehearsal's folder; both output streams go to the log."""
        answer = self._ask(
            {
                "start": name,
                "command": [str(part) for part in command],
                "log": str(log),
                "env": dict(environment),
            }
        )
        if error := answer.get("error"):
            raise OSError(error)
        return int(answer["pid"])

    def stop(self, name: str) -> None:
        """Ends one part; from then on it counts as never started."""
        self._ask({"stop": name})

    def ended(self) -> dict[str, int]:
        """The parts that are no longer running, with their exit codes."""
        return self._ask({"ended": True})["ended"]

    def close(self) -> None:
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        with self._asking:
            if not (self._process.stdin and self._process.stdout):
                raise OSError("the supervisor has no pipes")
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise OSError("the rehearsal's supervisor ended")
        return json.loads(line)


def die_with_the_parent() -> None:
    """To be called in a child before it runs its program. Linux only: elsewhere kill -9 of the parent leaves it."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _start(request: dict[str, Any], parts: dict[str, subprocess.Popen[bytes]], folder: Path) -> dict[str, Any]:
    try:
        with Path(request["log"]).open("ab") as log:
            process = subprocess.Popen(
                request["command"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=request["env"],
                preexec_fn=die_with_the_parent,
            )
    except OSError as error:
        return {"error": str(error)}
    parts[request["start"]] = process
    return {"pid": process.pid}


def _end(parts: dict[str, subprocess.Popen[bytes]]) -> None:
    """The newest first: a part may need the older ones to end well."""
    running = [process for process in reversed(parts.values()) if process.poll() is None]
    for process in running:
        process.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    for process in running:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _supervise(folder: Path) -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    parts: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for line in sys.stdin:
            request = json.loads(line)
            if "start" in request:
                answer = _start(request, parts, folder)
            elif "stop" in request:
                name = request["stop"]
                _end({name: parts.pop(name)} if name in parts else {})
                answer = {}
            else:
                codes = {name: process.poll() for name, process in parts.items()}
                answer = {"ended": {name: code for name, code in codes.items() if code is not None}}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        _end(parts)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _supervise(Path(sys.argv[1]))
