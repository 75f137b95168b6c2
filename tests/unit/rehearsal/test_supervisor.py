"""The parts of a rehearsal end together with the process that started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from persia_infra.rehearsal.supervisor import Supervisor
from tests.support.processes import is_running, wait_until_gone


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rehearsal = tmp_path / "rehearsal"
    rehearsal.mkdir()
    return rehearsal


def test_a_part_can_be_stopped_and_does_not_count_as_ended(folder: Path) -> None:
    supervisor = Supervisor(folder)
    environment = dict(os.environ)
    stopped = supervisor.start("stopped", ["sleep", "600"], log=folder / "log", environment=environment)
    other = supervisor.start("other", ["sleep", "600"], log=folder / "log", environment=environment)
    supervisor.stop("stopped")
    supervisor.stop("never started")
    assert not is_running(stopped)
    assert is_running(other)
    assert supervisor.ended() == {}
    supervisor.close()


def test_close_ends_the_parts_and_removes_the_folder(folder: Path) -> None:
    supervisor = Supervisor(folder)
    pid = supervisor.start("sleeper", ["sleep", "600"], log=folder / "log", environment=dict(os.environ))
    assert is_running(pid)
    supervisor.close()
    wait_until_gone(pid, folder)


def test_part_that_ignores_the_request_to_end_is_killed(folder: Path) -> None:
    supervisor = Supervisor(folder)
    command = ["sh", "-c", "trap '' TERM; echo ready; exec sleep 600"]
    pid = supervisor.start("stubborn", command, log=folder / "log", environment=dict(os.environ))
    while "ready" not in (folder / "log").read_text():
        time.sleep(0.05)
    supervisor.close()
    wait_until_gone(pid, folder)


def test_exit_codes_are_reported(folder: Path) -> None:
    supervisor = Supervisor(folder)
    try:
        supervisor.start("short", ["sh", "-c", "exit 7"], log=folder / "log", environment=dict(os.environ))
        while not (ended := supervisor.ended()):
            time.sleep(0.05)
        assert ended == {"short": 7}
    finally:
        supervisor.close()


def test_a_missing_program_is_reported(folder: Path) -> None:
    supervisor = Supervisor(folder)
    try:
        with pytest.raises(OSError, match="no-such-program"):
            supervisor.start("x", ["no-such-program"], log=folder / "log", environment=dict(os.environ))
    finally:
        supervisor.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_parts_end_when_the_parent_is_killed(folder: Path, how: signal.Signals) -> None:
    program = f"""
import os, sys, time
from pathlib import Path
from persia_infra.rehearsal.supervisor import Supervisor
folder = Path({str(folder)!r})
print(Supervisor(folder).start("s", ["sleep", "600"], log=folder / "log", environment=dict(os.environ)), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        parent.send_signal(how)
    wait_until_gone(pid, folder)
