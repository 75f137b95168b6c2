"""Ports of this machine's loopback address, and health checks on them."""

import contextlib
import socket
import ssl
import urllib.request
from collections.abc import Callable


def free_ports(count: int) -> list[int]:
    """Returns ports of 127.0.0.1 on which no process listens at the moment."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in sockets]


def answers(address: str) -> Callable[[], bool]:
    """Returns a health check that does not verify the certificate; it sends no credentials."""
    unverified = ssl._create_unverified_context()  # noqa: S323
    direct = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unverified)
    )

    def is_answering() -> bool:
        try:
            with direct.open(address, timeout=2) as response:
                return response.status == 200
        except OSError:
            return False

    return is_answering
