"""An API server with several addresses, some of which are dead, is reached for reads and writes."""

import asyncio
import contextlib
import os
import socket

import pytest

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.connections.pool import ConnectionPool
from quorate.shell.kube.errors import Unreachable
from tests.unit.shell.scripted_server import ScriptedServer, answer, credentials_for, serving

NAME = "api.example"


@pytest.fixture
def resolve(monkeypatch):
    """Return a function that gives ``NAME`` its addresses, in their order."""

    def set_to(*addresses):
        loop = asyncio.get_running_loop()
        real = loop.getaddrinfo

        async def getaddrinfo(host, port, **options):
            if host != NAME:
                return await real(host, port, **options)
            found = [await real(address, port, **options) for address in addresses]
            return [info for infos in found for info in infos]

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)

    return set_to


@contextlib.contextmanager
def silent(address, port):
    """Listen and never take anybody: with the queue full, Linux lets later calls wait for ever."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket(family))
        try:
            listening.bind((address, port))
        except OSError:
            pytest.skip(f"this machine has no {address}")
        listening.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket(family))
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect((address, port))
        yield


async def ask(client, way):
    await (client.get("/x") if way == "read" else client.put("/x", {}))


@pytest.mark.parametrize("way", ["read", "write"])
@pytest.mark.parametrize("dead", ["127.0.0.2", "::1"])
async def test_one_dead_address_of_two_costs_nobody_an_answer(resolve, way, dead):
    server = ScriptedServer(answer(200, {}))
    async with serving(server):
        port = int(server.url.rpartition(":")[2])
        resolve(dead, "127.0.0.1")
        with silent(dead, port):
            async with KubeClient(credentials_for(f"http://{NAME}:{port}")) as client:
                await ask(client, way)


@pytest.mark.parametrize("way", ["read", "write"])
async def test_an_address_that_refuses_is_passed_over(resolve, way):
    server = ScriptedServer(answer(200, {}))
    async with serving(server):
        resolve("127.0.0.3", "127.0.0.1")
        port = server.url.rpartition(":")[2]
        async with KubeClient(credentials_for(f"http://{NAME}:{port}")) as client:
            await ask(client, way)


async def test_a_request_keeps_its_deadline_where_all_addresses_are_dead(resolve):
    resolve("127.0.0.2", "127.0.0.3")
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.4", 0))
        port = chosen.getsockname()[1]
        with silent("127.0.0.2", port), silent("127.0.0.3", port):
            pool = ConnectionPool(NAME, port, tls=None, timeout_s=0.2)
            with pytest.raises(Unreachable, match=f"no connection to {NAME}:{port}") as caught:
                await pool.request(b"GET / HTTP/1.1\r\n\r\n")
            assert not caught.value.maybe_processed
            await pool.close()


async def test_a_pool_that_is_closed_amid_its_tries_keeps_no_descriptor(resolve):
    server = ScriptedServer()
    async with serving(server):
        port = int(server.url.rpartition(":")[2])
        resolve("127.0.0.3", "127.0.0.1", "127.0.0.2")  # one refuses, one answers, one is silent
        with silent("127.0.0.2", port):
            before = len(os.listdir("/dev/fd"))
            for turns in range(60):
                pool = ConnectionPool(NAME, port, tls=None)
                pool.warm(8)
                for _ in range(turns % 20):
                    await asyncio.sleep(0)
                await pool.close()
            while len(os.listdir("/dev/fd")) > before:  # the server's ends follow ours
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("way", ["read", "write"])
async def test_an_address_that_refuses_is_named_as_it_is_written_in_a_url(way):
    async with KubeClient(credentials_for("http://[::1]:1")) as client:
        with pytest.raises(Unreachable, match=r"\[::1\]:1"):
            await ask(client, way)
