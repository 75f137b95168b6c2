"""The parts of a rehearsal end together with the process that started them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from persia_infra.rehearsal.supervisor import PartFailed, Supervisor
from tests.support.processes import is_running, wait_until_gone


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a rehearsal, which its supervisor creates."""
    return tmp_path / "rehearsal"


@pytest.fixture
def supervisor(folder: Path) -> Iterator[Supervisor]:
    running = Supervisor(folder)
    yield running
    running.close()


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


STUBBORN = "trap '' INT TERM HUP; (trap '' INT TERM HUP; exec setsid sleep 600) & echo $! > {pids}; echo $$ >> {pids}"
"""A command that starts a process in a session of its own, and ignores all requests to end."""


def pids_in(file: Path) -> list[int]:
    while not file.exists() or len(file.read_text().split()) < 2:
        time.sleep(0.02)
    return [int(pid) for pid in file.read_text().split()]


def test_a_command_has_its_output_and_exit_code(supervisor: Supervisor, folder: Path) -> None:
    command = supervisor.run(
        ["sh", "-c", "echo to the user; echo to the log >&2; exit 3"],
        folder=folder,
        environment=dict(os.environ),
        output=folder / "output",
        errors=folder / "errors",
    )
    assert command.communicate() == ("to the user\n", "to the log\n")
    assert command.returncode == 3
    assert supervisor.ended() == {}


def test_a_command_can_be_interrupted(supervisor: Supervisor, folder: Path) -> None:
    command = supervisor.run(["sleep", "600"], folder=folder, environment=dict(os.environ), output=folder / "output")
    with pytest.raises(subprocess.TimeoutExpired):
        command.wait(0.1)
    command.send_signal(signal.SIGINT)
    assert command.wait() == -signal.SIGINT


def test_what_a_command_leaves_behind_ends_with_it(supervisor: Supervisor, folder: Path) -> None:
    orphan = "sleep 600 & echo $! > pid"
    command = supervisor.run(
        ["sh", "-c", orphan], folder=folder, environment=dict(os.environ), output=folder / "output"
    )
    assert command.wait() == 0
    assert not is_running(int((folder / "pid").read_text()))


def test_close_ends_processes_that_left_their_session(folder: Path) -> None:
    supervisor = Supervisor(folder)
    pids = folder.with_name("pids")
    script = STUBBORN.format(pids=pids) + "; exec sleep 600"
    supervisor.run(["sh", "-c", script], folder=folder, environment=dict(os.environ), output=folder / "output")
    started = pids_in(pids)
    supervisor.close()
    for pid in started:
        wait_until_gone(pid, folder)


def test_a_supervisor_that_is_killed_is_reported_and_leaves_nothing(folder: Path) -> None:
    supervisor = Supervisor(folder)
    pids = folder.with_name("pids")
    script = STUBBORN.format(pids=pids) + "; exec sleep 600"
    command = supervisor.run(
        ["sh", "-c", script], folder=folder, environment=dict(os.environ), output=folder / "output"
    )
    started = pids_in(pids)
    os.kill(supervisor.pid, signal.SIGKILL)
    with pytest.raises(PartFailed, match=r"was ended from outside.*run the rehearsal again"):
        command.wait(30)
    supervisor.close()
    for pid in started:
        wait_until_gone(pid, folder)


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="the folder of the rehearsal cannot be created"):
        Supervisor(tmp_path / "missing" / "rehearsal")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_everything_ends_when_the_parent_is_killed(folder: Path, how: signal.Signals) -> None:
    pids = folder.with_name("pids")
    script = STUBBORN.format(pids=pids) + "; exec sleep 600"
    program = f"""
import os, signal, time
from pathlib import Path
from persia_infra.rehearsal.supervisor import Supervisor
# It may be ignored, for example if the tests run under nohup.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
folder, environment = Path({str(folder)!r}), dict(os.environ)
supervisor = Supervisor(folder)
print(supervisor.start("s", ["sleep", "600"], log=folder / "log", environment=environment), flush=True)
supervisor.run(["sh", "-c", {script!r}], folder=folder, environment=environment, output=folder / "output")
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout
        started = [int(parent.stdout.readline()), *pids_in(pids)]
        parent.send_signal(how)
    for pid in started:
        wait_until_gone(pid, folder)
