"""When a client is closed no socket of it is open, whatever state its connections are in.

Method: servers of the kernel and of a thread, which hold their part of a connection back for ever.
"""

import asyncio
import contextlib
import gc
import socket
import threading

import pytest

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import Unreachable
from tests.unit.shell.authority import Authority
from tests.unit.shell.scripted_server import credentials_for

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
KINDS = 14
"""That many are listed at once."""


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "right")


@pytest.fixture
def listener():
    """A server that accepts TCP, in the kernel, and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=2 * KINDS) as made:
        yield made


@contextlib.contextmanager
def answering(listener, talk):
    """Accept connections in a thread, and keep them open for as long as the test runs."""
    kept = []

    def accept():
        with contextlib.suppress(OSError):  # the listener was shut down
            while True:
                kept.append(listener.accept()[0])
                kept.append(talk(kept[-1]))

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        for one in kept:
            one.close()


def client_for(listener, authority):
    host, port = listener.getsockname()
    return KubeClient(credentials_for(f"https://{host}:{port}", str(authority.file)))


def sockets_to(listener):
    """Return the client's sockets: those of the server have the address as their own."""
    where, found = listener.getsockname(), []
    for one in gc.get_objects():
        with contextlib.suppress(OSError, ReferenceError):
            if isinstance(one, socket.socket) and one.getpeername() == where:
                found.append(one)
    return found


def whole_answer_and_no_goodbye(authority):
    """Answer over TLS, and never end TLS as the client does: as a proxy that has lost its way."""
    context = authority.server()

    def talk(raw):
        made = context.wrap_socket(raw, server_side=True)
        made.recv(65536)
        made.sendall(HEAD + b"2\r\n{}\r\n")
        return made

    return talk


async def test_streams_that_ended_are_closed_though_the_server_says_no_goodbye(listener, authority):
    with answering(listener, whole_answer_and_no_goodbye(authority)):
        async with client_for(listener, authority) as client:
            for _ in range(3):
                async with client.stream("/api/v1/pods", None, silence_s_max=60) as stream:
                    assert await stream.read() == b"{}"
        assert sockets_to(listener) == []


async def test_requests_that_were_cancelled_before_their_answer_are_closed(listener, authority):
    context, asked = authority.server(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def talk(raw):
        made = context.wrap_socket(raw, server_side=True)
        made.recv(65536)
        loop.call_soon_threadsafe(asked.set)
        return made

    with answering(listener, talk):
        async with client_for(listener, authority) as client:
            reading = asyncio.create_task(client.get("/api/v1/pods"))
            await asked.wait()
            reading.cancel()
            await asyncio.wait([reading])
        assert sockets_to(listener) == []


@pytest.mark.parametrize("turns", range(12))
async def test_handshakes_that_were_cancelled_are_closed(listener, authority, turns):
    async with client_for(listener, authority) as client:
        asked = [asyncio.create_task(client.get("/api/v1/pods")) for _ in range(KINDS)]
        asked.append(asyncio.create_task(client.post("/api/v1/pods", b"{}")))
        for _ in range(turns):
            await asyncio.sleep(0)
        for one in asked:
            one.cancel()
        await asyncio.wait(asked)
    assert sockets_to(listener) == []


async def test_when_one_handshake_fails_the_others_are_closed(listener, authority):
    """As the commands do that list all kinds at once, and give up at the first failure."""
    first = threading.Event()

    def talk(raw):
        if not first.is_set():
            first.set()
            raw.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        return raw

    with answering(listener, talk):
        async with client_for(listener, authority) as client:
            with contextlib.suppress(ExceptionGroup):
                async with asyncio.TaskGroup() as group:
                    asked = [group.create_task(client.get("/api/v1/pods")) for _ in range(KINDS)]
        failed = [one for one in asked if not one.cancelled()]
        assert all(isinstance(one.exception(), Unreachable) for one in failed)
        assert len(failed) == 1
        assert sockets_to(listener) == []
