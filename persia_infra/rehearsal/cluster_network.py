"""A proxy between a rehearsal's API server and the few processes that stand for pods.

GKE's API server reaches pods and Services (to call a webhook, or to run a command in a pod) through a proxy, and
so does the API server of a rehearsal. The proxy forwards the addresses that a process of this machine stands for
and refuses all others at once, instead of letting the API server wait for a timeout.

Routes are read from a file for each connection: `{"10.0.0.17:443": 40123}`.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path

_HEADER_LIMIT = 8192


async def serve(socket: Path, routes: Path) -> None:
    """Serves the proxy on a unix socket until it is cancelled."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            header = await reader.readuntil(b"\r\n\r\n")
            _, address, _ = header.split(b" ", 2)
            port = json.loads(routes.read_text()).get(address.decode()) if routes.exists() else None
            if port is None:
                writer.write(b"HTTP/1.1 502 no process of the rehearsal listens there\r\n\r\n")
                await writer.drain()
                return
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_copy(reader, target_writer), _copy(target_reader, writer))
            target_writer.close()
        writer.close()

    server = await asyncio.start_unix_server(handle, socket, limit=_HEADER_LIMIT)
    async with server:
        await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2])))
