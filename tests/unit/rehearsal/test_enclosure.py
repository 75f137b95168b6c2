"""A command in a network of its own reaches nothing but the ports that are opened for it."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from persia_infra.rehearsal.enclosure import enclosed, gate, gates, is_available

pytestmark = pytest.mark.skipif(not is_available(), reason="this machine does not let users create networks")

TALK = """
import socket, sys
for port in map(int, sys.argv[1:]):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"hello")
            connection.shutdown(socket.SHUT_WR)
            print(connection.makefile().read())
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.fixture
def echo() -> Iterator[int]:
    """A server on loopback that answers in capitals."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(connection.makefile("rb").read().upper())

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


@pytest.fixture
def folder(tmp_path: Path, echo: int) -> Iterator[Path]:
    """The way to the server."""
    process = subprocess.Popen(gates(tmp_path, [echo]))
    while not gate(tmp_path, echo).exists():
        assert process.poll() is None
        time.sleep(0.02)
    yield tmp_path
    process.kill()
    process.wait()


def run(folder: Path, ports: list[int], *command: str) -> str:
    done = subprocess.run([*enclosed(folder, ports), *command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_opened_port_leads_to_its_server(folder: Path, echo: int) -> None:
    assert run(folder, [echo], sys.executable, "-c", TALK, str(echo), str(echo)) == "HELLO\nHELLO"


def test_other_ports_of_this_machine_are_out_of_reach(folder: Path, echo: int) -> None:
    assert run(folder, [], sys.executable, "-c", TALK, str(echo)) == "ConnectionRefusedError"


def test_other_machines_are_out_of_reach_even_without_a_proxy(folder: Path) -> None:
    program = """
import socket
for address in (("192.0.2.1", 443), ("169.254.169.254", 80)):
    try:
        socket.create_connection(address, timeout=10)
    except OSError as error:
        print(error.strerror)
"""
    assert run(folder, [], sys.executable, "-c", program).splitlines() == ["Network is unreachable"] * 2


def test_servers_inside_are_out_of_reach_for_others(folder: Path) -> None:
    program = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); "
    with subprocess.Popen(
        [*enclosed(folder, []), sys.executable, "-c", program + "time.sleep(60)"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        port = int(process.stdout.readline())
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=10)
        process.kill()


def test_the_command_keeps_its_user_and_its_working_folder(folder: Path) -> None:
    assert run(folder, [], "sh", "-c", "id -u; pwd").splitlines() == [
        subprocess.check_output(["id", "-u"], text=True).strip(),
        str(Path.cwd()),
    ]
