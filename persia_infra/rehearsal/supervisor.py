"""Runs the parts of a rehearsal below a separate process, so that they end whatever happens to the parent.

The supervisor reads requests from its standard input. When that closes (the parent closed it, or died, even by
kill -9), it ends every process it started and removes the rehearsal's folder.

Out of scope: restarting a part that ended; the rehearsal has failed then.
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
    """The parent's side of the supervisor."""

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
        """Starts a part in the rehearsal's folder, with both output streams in the log.

        Returns:
            The process id.

        Raises:
            OSError: The part cannot be started, or the supervisor has ended.
        """
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
        """Ends a part and forgets it, so that it does not count as ended."""
        self._ask({"stop": name})

    def ended(self) -> dict[str, int]:
        """Returns the parts that no longer run, with their exit codes."""
        return self._ask({"ended": True})["ended"]

    def close(self) -> None:
        """Ends every part, removes the folder, and waits until both are done."""
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
    """Makes a child end with its parent; called before the child runs its program.

    Only Linux can do this: on other systems a child outlives kill -9 of its parent.
    """
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
    """Ends the newest parts first, since a part may need the older ones to shut down cleanly."""
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
