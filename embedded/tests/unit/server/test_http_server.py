"""The listening socket: how it stops."""

import asyncio

import pytest

from pocketkube.server import http
from tools.testing import HANGS_S


async def test_nobody_comes_in_while_the_server_stops(tmp_path, monkeypatch):
    monkeypatch.setattr(http, "_STOP_GRACE_S", 0.2)
    http.prepare_certificates(tmp_path)
    asked = asyncio.Event()

    async def answer(_request):
        asked.set()
        await asyncio.Event().wait()

    server = http.HttpServer(answer, http.tls_context(tmp_path))
    await server.start(0)
    _, writer = await asyncio.open_connection("127.0.0.1", server.inner_port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asked.wait()
    stopping = asyncio.create_task(server.stop())
    await asyncio.sleep(0.05)
    assert not stopping.done(), "the request under way has its grace"
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", server.inner_port)
    async with asyncio.timeout(HANGS_S):
        await stopping
    writer.close()
