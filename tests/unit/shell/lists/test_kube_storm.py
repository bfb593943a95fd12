"""Connections by the thousand that are cancelled, reset and timed out harm nobody else.

A descriptor that is closed twice takes away whatever got its number in between. So strangers stand
by: pipes that take the lowest free numbers, the very ones that were just closed, and have to work
until they are closed themselves.
"""

import asyncio
import contextlib
import os
import random
import socket
import ssl
import struct
from collections import deque

import pytest

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.connections.pool import ConnectionPool
from quorate.shell.kube.errors import Unreachable
from tests.servers import close, take_who_waits
from tests.unit.shell.scripted_server import credentials_for
from tools.certificates import write_pair

REQUESTS = 3000
AT_ONCE = 100
STRANGERS_MAX = 50
TIMEOUT_S = 0.3
FAULTS = ("cut", "half", "reset", "stall", "late", "more")
"""One request in two meets one of them, and one in five is given up by its caller."""


class Strangers:
    """Pipes that have nothing to do with it all; any of them that breaks was closed by another."""

    def __init__(self):
        self.open = deque()

    def come(self):
        read, write = os.pipe()
        self.open.append((read, write, os.fstat(read).st_ino, os.fstat(write).st_ino))
        if len(self.open) > STRANGERS_MAX:
            self.go()

    def go(self):
        read, write, *inodes = self.open.popleft()
        assert [os.fstat(read).st_ino, os.fstat(write).st_ino] == inodes, "it is another's by now"
        os.write(write, b"mine")
        assert os.read(read, 100) == b"mine"
        os.close(read)
        os.close(write)

    def all_go(self):
        while self.open:
            self.go()


class Wild:
    """A server that answers each request with its own path, or fails in some way."""

    def __init__(self, chance, tls):
        self.chance = chance
        self.tls = tls
        self.tasks = set()
        self.met = dict.fromkeys(FAULTS, 0)
        self.next_faults = []

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.tls)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        await close(self.server)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await take_who_waits()

    async def serve(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fault = self.next_fault() if self.chance.random() < 0.5 else ""
                if fault:
                    self.met[fault] += 1
                await self.answer(head.split(b" ", 2)[1], fault, writer)
                await writer.drain()
                if fault in ("cut", "half", "reset"):
                    break
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(asyncio.current_task())
            writer.transport.abort()

    def next_fault(self):
        """Return one of the faults; each comes as often as the others."""
        if not self.next_faults:
            self.next_faults = self.chance.sample(FAULTS, len(FAULTS))
        return self.next_faults.pop()

    async def answer(self, path, fault, writer):
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(path), path)
        if fault == "stall":
            await asyncio.Event().wait()
        elif fault == "reset":
            linger = struct.pack("ii", 1, 0)
            plain = writer.get_extra_info("socket")
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        elif fault == "half":
            writer.write(whole[: self.chance.randrange(1, len(whole))])
        elif fault == "late":
            await asyncio.sleep(0.02 * self.chance.random())
            writer.write(whole)
        elif fault == "more":  # at once: later, nobody could tell it from the next answer
            writer.write(whole + whole)
        elif fault != "cut":
            writer.write(whole)


def descriptors():
    """Return what each open descriptor of this process is."""
    found = {}
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # the descriptor that lists them is gone by now
            found[name] = os.fstat(int(name)).st_ino
    return found


@contextlib.asynccontextmanager
async def pool_of_writes(port, context):
    tls = (lambda: context) if context is not None else None
    pool = ConnectionPool("127.0.0.1", port, tls=tls, connections_max=64, timeout_s=TIMEOUT_S)

    async def ask(path):
        return (await pool.request(f"GET {path} HTTP/1.1\r\n\r\n".encode())).body

    try:
        yield ask
    finally:
        await pool.close()


@contextlib.asynccontextmanager
async def client_of_reads(port, tls):
    async with KubeClient(credentials_for(f"http://127.0.0.1:{port}"), timeout_s=TIMEOUT_S) as made:
        yield made.get


@contextlib.asynccontextmanager
async def client_of_streams(port, tls):
    async with KubeClient(credentials_for(f"http://127.0.0.1:{port}"), timeout_s=TIMEOUT_S) as made:

        async def ask(path):
            said = b""
            async with made.stream(path, None, silence_s_max=TIMEOUT_S) as stream:
                while part := await stream.read():
                    said += part
            return said

        yield ask


async def storm(ask, chance, requests):
    """Ask for ``requests`` paths; return how many were answered, failed and given up."""
    strangers, ended = Strangers(), {"answered": 0, "failed": 0, "given up": 0}
    numbers = iter(range(requests))

    async def one(number):
        asked = asyncio.ensure_future(ask(f"/{number}"))
        if chance.random() < 0.2:
            await asyncio.sleep(0.01 * chance.random() if chance.random() < 0.8 else 0)
            asked.cancel()
        try:
            assert await asked == f"/{number}".encode(), "an answer of another request"
        except Unreachable:
            return "failed"
        except asyncio.CancelledError:
            return "given up"
        return "answered"

    async def worker():
        for number in numbers:
            ended[await one(number)] += 1
            strangers.come()

    await asyncio.gather(*[worker() for _ in range(AT_ONCE)])
    strangers.all_go()
    return ended


@pytest.mark.parametrize(
    ("way", "requests", "is_tls"),
    [
        pytest.param(pool_of_writes, REQUESTS, False, id="writes"),
        pytest.param(pool_of_writes, REQUESTS // 3, True, id="writes-tls"),
        pytest.param(client_of_reads, REQUESTS // 3, False, id="reads"),
        pytest.param(client_of_streams, REQUESTS // 3, False, id="watches"),
    ],
)
def test_no_descriptor_is_closed_twice_none_is_kept_and_each_answer_is_ones_own(
    tmp_path, way, requests, is_tls
):
    chance, complaints = random.Random(1), []
    server_tls = client_tls = None
    if is_tls:
        cert_file, key_file = write_pair(tmp_path)
        server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server_tls.load_cert_chain(cert_file, key_file)
        client_tls = ssl.create_default_context(cafile=cert_file)

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))
        before = descriptors()
        async with Wild(chance, server_tls) as server, way(server.port, client_tls) as ask:
            ended = await storm(ask, chance, requests)
        await asyncio.sleep(0.05)  # transports close their sockets in the loop's next turns
        assert descriptors() == before
        return server.met, ended

    met, ended = asyncio.run(main())
    assert not complaints
    assert min(met.values()) > 10, "each fault was met"
    assert min(ended.values()) > requests // 20, "each end was met"
