"""Refuses connections of other users of the machine.

The engine can only attach to a provider through a TCP port, which every local user can reach. Linux lists the owner of
each TCP socket, so the server looks up who is at the other end of a connection. Other systems have no such list: there
every local user can talk to the provider while a rehearsal runs.
"""

import socket
import sys
from collections.abc import Callable
from pathlib import Path

import grpc
from google.protobuf.message import Message

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED = "01"
Method = Callable[[Message, grpc.ServicerContext], Message]


def owner_of(client_port: int, server_port: int) -> int | None:
    """Returns the user id of the process that connected from one loopback port to another.

    Returns:
        None if there is no such connection.
    """
    clients, servers = _addresses(client_port), _addresses(server_port)
    for table in _TABLES:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            _, local, remote, state, _, _, _, uid, *_ = line.split()
            if state == _ESTABLISHED and local in clients and remote in servers:
                return int(uid)
    return None


def _addresses(port: int) -> set[str]:
    """Returns 127.0.0.1 with a port in the notation of the kernel's tables, also as it appears in an IPv6 socket."""
    address = f"{int.from_bytes(socket.inet_aton('127.0.0.1'), sys.byteorder):08X}"
    mapped = f"{int.from_bytes(bytes.fromhex('0000FFFF'), sys.byteorder):08X}"
    return {f"{address}:{port:04X}", f"{'0' * 16}{mapped}{address}:{port:04X}"}


class OnlyFrom(grpc.ServerInterceptor):
    """Lets only processes of one user call the server; `port` is set once the server listens."""

    def __init__(self, uid: int) -> None:
        self.port = 0
        self._uid = uid

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        handler = continuation(handler_call_details)
        if handler is None or handler.unary_unary is None:
            # The protocol has no other methods, so there is nothing to protect.
            return None
        method: Method = handler.unary_unary

        def answer(request: Message, context: grpc.ServicerContext) -> Message:
            if not self._is_allowed(context.peer()):
                context.abort(
                    grpc.StatusCode.PERMISSION_DENIED,
                    "this provider belongs to another user's rehearsal, so it does not answer: start your own",
                )
            return method(request, context)

        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _is_allowed(self, peer: str) -> bool:
        if sys.platform != "linux":
            return True
        return owner_of(int(peer.rpartition(":")[2]), self.port) == self._uid
