"""Runs a command in a network of its own, from which it reaches a few ports of this machine and nothing else.

Linux lets every user create a network namespace, unless the machine forbids it. The ports lead outside through sockets
in a folder: `gates` serves the sockets outside, and `enclosed` forwards the ports to them inside.

This file is run as a script without any packages, since a program with several threads cannot change its namespace.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_SCRIPT: tuple[str, ...] = (sys.executable, "-I", "-S", str(Path(__file__).absolute()))
_NEW_USER_NAMESPACE, _NEW_NETWORK_NAMESPACE = 0x10000000, 0x40000000
_SET_PARENT_DEATH_SIGNAL = 1
_GET_FLAGS, _SET_FLAGS, _IS_UP = 0x8913, 0x8914, 1


def is_available() -> bool:
    """Whether this machine lets the user create a network."""
    if sys.platform != "linux":
        return False
    return subprocess.run([*enclosed(Path("/"), []), "true"], capture_output=True, check=False).returncode == 0


def gates(folder: Path, ports: Sequence[int]) -> list[str]:
    """Returns the command that opens the way outside; the sockets are in its working folder."""
    return [*_SCRIPT, "outside", str(folder), *map(str, ports), "--"]


def gate(folder: Path, port: int) -> Path:
    """Returns the socket that leads to a port."""
    return folder / _gate(port)


def enclosed(folder: Path, ports: Sequence[int]) -> list[str]:
    """Returns the beginning of a command line; the command that follows it runs enclosed."""
    return [*_SCRIPT, "inside", str(folder), *map(str, ports), "--"]


def _gate(port: int) -> str:
    return f"gate-{port}"


def _enter_namespace() -> None:
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_USER_NAMESPACE | _NEW_NETWORK_NAMESPACE):
        raise OSError(ctypes.get_errno(), "this machine does not let users create networks")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(any_socket, _GET_FLAGS, request))[1]
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14s", b"lo", flags | _IS_UP, b""))


def _die_with_the_parent() -> None:
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


async def _serve_inside(ports: Sequence[int], ready: int) -> None:
    for port in ports:

        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str = _gate(port)) -> None:
            with contextlib.suppress(OSError):
                await _join(reader, writer, *await asyncio.open_unix_connection(path))
            writer.close()

        await asyncio.start_server(forward, "127.0.0.1", port)
    os.close(ready)
    await asyncio.Event().wait()


async def _serve_outside(ports: Sequence[int]) -> None:
    for port in ports:

        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int = port) -> None:
            with contextlib.suppress(OSError):
                await _join(reader, writer, *await asyncio.open_connection("127.0.0.1", port))
            writer.close()

        await asyncio.start_unix_server(forward, _gate(port))
    await asyncio.Event().wait()


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    other_reader: asyncio.StreamReader,
    other_writer: asyncio.StreamWriter,
) -> None:
    await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer))
    other_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


def _run_inside(folder: str, ports: Sequence[int], command: Sequence[str]) -> None:
    _enter_namespace()
    listening, ready = os.pipe()
    if os.fork() == 0:
        _die_with_the_parent()
        os.close(listening)
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        asyncio.run(_serve_inside(ports, ready))
    os.close(ready)
    os.read(listening, 1)
    os.close(listening)
    _die_with_the_parent()
    os.execvp(command[0], list(command))  # noqa: S606


def _main() -> None:
    end = sys.argv.index("--")
    side, folder, *numbers = sys.argv[1:end]
    ports, command = [int(number) for number in numbers], sys.argv[end + 1 :]
    if side == "outside":
        os.chdir(folder)
        asyncio.run(_serve_outside(ports))
    else:
        _run_inside(folder, ports, command)


if __name__ == "__main__":
    try:
        _main()
    except OSError as error:
        sys.exit(f"the command cannot be run in a network of its own: {error}")
