"""Finds and ends the processes below the supervisor of a rehearsal, also those whose parents have died.

Everything here relies on Linux. On other systems the functions do nothing, or only what the system allows: there a
process may outlive kill -9 of its parent.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARKER = "PERSIA_INFRA_REHEARSAL"
"""A variable of every process of a rehearsal; its value is the rehearsal's folder."""

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_END_WITHIN_SECONDS = 10.0
_ON_LINUX = sys.platform == "linux"


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    session: int


def adopt_orphans() -> None:
    """Makes this process the parent of all descendants whose own parent has died."""
    if _ON_LINUX:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)


def die_with_the_parent() -> None:
    """Makes a child end with its parent; called before the child runs its program."""
    if _ON_LINUX:
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def end_session(leader: int) -> None:
    """Kills what an ended command has left: all processes of its session, and its process group elsewhere."""
    if not _ON_LINUX:
        _kill_group(leader)
        return
    deadline = time.monotonic() + _END_WITHIN_SECONDS
    while time.monotonic() < deadline:
        # Only own descendants: the number of a session may belong to another program by now.
        left = [process for process in _descendants() if process.session == leader]
        if not left:
            return
        _kill(left)


def end_descendants() -> None:
    """Kills every process below this one."""
    deadline = time.monotonic() + _END_WITHIN_SECONDS
    while _ON_LINUX and time.monotonic() < deadline:
        left = _descendants()
        if not left:
            return
        _kill(left)


def end_marked(folder: Path) -> None:
    """Kills every process of the rehearsal in a folder; for a rehearsal whose supervisor is gone."""
    mark = f"{MARKER}={folder}".encode()
    for process in _processes():
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                os.kill(process.pid, signal.SIGKILL)


def _descendants() -> list[_Process]:
    processes = {process.pid: process for process in _processes()}

    def is_below(process: _Process) -> bool:
        ancestor: _Process | None = process
        while ancestor:
            if ancestor.parent == os.getpid():
                return True
            ancestor = processes.get(ancestor.parent)
        return False

    return [process for process in processes.values() if is_below(process)]


def _kill(processes: list[_Process]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    for process in processes:
        # Only own children can be reaped; the others are reaped by their parents, or become own children.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, 0)


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _processes() -> Iterator[_Process]:
    """Yields all running processes of the machine; without /proc there are none."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name of the program is in parentheses, and may contain anything.
            state, parent, _, session = file.read_text().rpartition(")")[2].split()[:4]
            if state != "Z" or int(parent) == os.getpid():
                yield _Process(int(file.parent.name), int(parent), int(session))
