"""A server that takes connections and says nothing: the error names it, and how long we waited."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.connections import pool as fast
from quorate.shell.kube.errors import Unreachable
from tests.unit.shell.authority import Authority
from tests.unit.shell.scripted_server import credentials_for


@asynccontextmanager
async def silence():
    waiting = asyncio.Event()

    async def say_nothing(reader, writer):
        await waiting.wait()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        waiting.set()
        await asyncio.sleep(0)


async def read(client):
    await client.get("/api/v1/pods")


async def write(client):
    await client.post("/api/v1/pods", {})


@pytest.mark.parametrize("way", [read, write])
async def test_it_is_told_who_did_not_answer_within_what_time(tmp_path, monkeypatch, way):
    monkeypatch.setattr(fast, "_CONNECT_TIMEOUT_S", 0.2)
    authority = Authority(tmp_path, "one")
    async with silence() as port:
        credentials = credentials_for(f"https://127.0.0.1:{port}", str(authority.file))
        async with KubeClient(credentials, timeout_s=0.2) as client:
            with pytest.raises(Unreachable, match=f"no answer from 127.0.0.1:{port} within 0.2 s"):
                await way(client)
