"""As much of the NATS protocol as tests need: connect, subscribe, publish, receive."""

import contextlib
import json
import socket
import ssl
from types import TracebackType
from typing import Any, Self


class NatsError(Exception):
    """What the server said against it."""


class NatsClient:
    def __init__(
        self, port: int, *, user: str | None = None, password: str | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._socket: socket.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._buffer = b""
        line = self._line()
        self.info: dict[str, Any] = json.loads(line.removeprefix(b"INFO "))
        if tls:
            self._socket = tls.wrap_socket(self._socket, server_hostname="localhost")
        login = {"user": user, "pass": password} if user else {}
        self._send(b"CONNECT " + json.dumps({"verbose": False, "pedantic": False, **login}).encode() + b"\r\n")
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def subscribe(self, subject: str) -> None:
        self._send(f"SUB {subject} 1\r\n".encode())
        self.flush()

    def publish(self, subject: str, payload: bytes) -> None:
        # The server closes on what it refuses; what it said is still to be read.
        with contextlib.suppress(OSError):
            self._send(f"PUB {subject} {len(payload)}\r\n".encode() + payload + b"\r\n")
        self.flush()

    def receive(self) -> bytes:
        line = self._line()
        while not line.startswith(b"MSG"):
            line = self._line()
        return self._exactly(int(line.split()[-1]) + 2)[:-2]

    def flush(self) -> None:
        """Waits until the server has taken everything in."""
        with contextlib.suppress(OSError):
            self._send(b"PING\r\n")
        while self._line() != b"PONG":
            pass

    def _send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            self._read()
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        if line.startswith(b"-ERR"):
            raise NatsError(line.decode())
        if line == b"PING":
            self._send(b"PONG\r\n")
        return line

    def _exactly(self, count: int) -> bytes:
        parts, have = [self._buffer], len(self._buffer)
        while have < count:
            self._buffer = b""
            self._read()
            parts.append(self._buffer)
            have += len(self._buffer)
        whole = b"".join(parts)
        self._buffer = whole[count:]
        return whole[:count]

    def _read(self) -> None:
        data = self._socket.recv(1 << 20)
        if not data:
            raise NatsError("the server closed the connection")
        self._buffer += data
