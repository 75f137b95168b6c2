"""The proxy between the API server and the processes that stand for pods."""

import asyncio
import json
from pathlib import Path

from persia_infra.rehearsal.cluster_network import serve


async def ask(proxy: Path, address: str, payload: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(proxy)
    writer.write(f"CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
    header = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " in header:
        writer.write(payload)
        writer.write_eof()
        header = await reader.read()
    writer.close()
    return header


async def exchange(folder: Path) -> tuple[bytes, bytes]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Until the end, as a server does that waits for the whole request.
        writer.write((await reader.read()).upper())
        writer.close()

    webhook = await asyncio.start_server(echo, "127.0.0.1", 0)
    proxy, routes = folder / "egress.socket", folder / "routes.json"
    routes.write_text(json.dumps({"10.0.0.7:443": webhook.sockets[0].getsockname()[1]}))
    serving = asyncio.create_task(serve(proxy, routes))
    while not proxy.exists():
        await asyncio.sleep(0.01)
    answers = await ask(proxy, "10.0.0.7:443", b"review"), await ask(proxy, "10.0.0.8:443", b"review")
    serving.cancel()
    webhook.close()
    return answers


def test_a_known_address_is_forwarded_and_any_other_is_refused_at_once(tmp_path: Path) -> None:
    known, unknown = asyncio.run(exchange(tmp_path))

    assert known == b"REVIEW"
    assert unknown.startswith(b"HTTP/1.1 502 ")
