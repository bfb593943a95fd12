"""The pool of connections, against real sockets."""

import asyncio
import ssl
import subprocess

import pytest

from quorate.shell.kube.connections.pool import ConnectionPool
from quorate.shell.kube.errors import Unreachable
from tests.servers import close
from tools.testing import HANGS_S


def ok(body=b"ok", head=b""):
    return b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body)


class RawServer:
    """Calls ``reply(line, writer)`` for each request line; counts connections."""

    def __init__(self, reply):
        self.reply = reply
        self.connections = 0
        self.writers = []

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.tls())
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    def tls(self):
        return None

    async def __aexit__(self, *_):
        await close(self.server)
        for writer in self.writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)

    async def serve(self, reader, writer):
        self.connections += 1
        self.writers.append(writer)
        try:
            while line := await reader.readline():
                await self.reply(line.decode().split()[1], writer)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def scenario(reply, steps, **options):
    """Run ``steps(pool, server)`` against a server of one-line requests."""

    async def main():
        async with RawServer(reply) as server:
            pool = ConnectionPool("127.0.0.1", server.port, tls=None, **options)
            try:
                async with asyncio.timeout(HANGS_S):
                    return await steps(pool, server)
            finally:
                await pool.close()

    return asyncio.run(main())


def ask(pool, path):
    # The server of these tests reads lines, so a request is one line.
    return pool.request(f"GET {path}\n".encode())


async def closed(pool):
    """Wait until the pool has closed all of its connections."""
    while pool._live:
        await asyncio.sleep(0.001)


async def echo(path, writer):
    await asyncio.sleep(0.001)
    writer.write(ok(path.encode()))


def test_each_gets_its_own_answer_on_few_connections():
    async def steps(pool, server):
        answers = await asyncio.gather(*[ask(pool, f"/{i}") for i in range(500)])
        assert [a.body for a in answers] == [f"/{i}".encode() for i in range(500)]
        assert server.connections == 8
        for i in range(5):  # one after another: still no new connection
            assert (await ask(pool, f"/{i}")).body == f"/{i}".encode()
        assert server.connections == 8

    scenario(echo, steps, connections_max=8)


def test_waiting_requests_are_sent_in_order():
    seen = []

    async def reply(path, writer):
        seen.append(path)
        writer.write(ok())

    async def steps(pool, server):
        await asyncio.gather(*[ask(pool, f"/{i}") for i in range(50)])
        assert seen == [f"/{i}" for i in range(50)]

    scenario(reply, steps, connections_max=1)


def test_what_may_not_be_sent_any_more_when_a_connection_is_free_is_not_sent():
    seen = []
    leads = True

    async def reply(path, writer):
        nonlocal leads
        seen.append(path)
        leads = False
        writer.write(ok())

    async def steps(pool, server):
        first = asyncio.create_task(ask(pool, "/first"))
        await asyncio.sleep(0)
        with pytest.raises(Unreachable) as caught:
            await pool.request(b"GET /late\n", may_send=lambda: leads)
        assert not caught.value.maybe_processed
        assert (await first).status == 200
        assert (await ask(pool, "/fine")).status == 200
        assert seen == ["/first", "/fine"]

    scenario(reply, steps, connections_max=1)


def test_a_deposed_leader_sends_nothing_on_an_idle_connection_which_stays_in_use():
    seen = []

    async def reply(path, writer):
        seen.append(path)
        writer.write(ok())

    async def steps(pool, server):
        await ask(pool, "/first")
        with pytest.raises(Unreachable, match="may write no more") as caught:
            await pool.request(b"GET /late\n", may_send=lambda: False)
        assert not caught.value.maybe_processed
        await ask(pool, "/fine")
        assert seen == ["/first", "/fine"]

    scenario(reply, steps, connections_max=1)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
def test_a_connection_closed_before_the_answer_is_unreachable(sent):
    async def reply(path, writer):
        if path == "/cut":
            writer.write(sent)
            await writer.drain()
            await asyncio.sleep(0.01)
            writer.transport.abort()
        else:
            writer.write(ok())

    async def steps(pool, server):
        with pytest.raises(Unreachable) as caught:
            await ask(pool, "/cut")
        assert caught.value.maybe_processed
        assert (await ask(pool, "/fine")).status == 200

    scenario(reply, steps, connections_max=1)


def test_those_who_wait_get_a_new_connection_when_the_only_one_is_cut():
    async def reply(path, writer):
        if path == "/cut":
            writer.transport.abort()
        else:
            writer.write(ok(path.encode()))

    async def steps(pool, server):
        answers = await asyncio.gather(
            *[ask(pool, path) for path in ("/cut", "/a", "/b")], return_exceptions=True
        )
        assert isinstance(answers[0], Unreachable)
        assert [a.body for a in answers[1:]] == [b"/a", b"/b"]

    scenario(reply, steps, connections_max=1)


@pytest.mark.parametrize(
    "sent",
    [
        b"rubbish\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        ok() + ok(),
        ok(head=b"Content-Length: 1\r\n"),
    ],
)
def test_malformed_answers_are_unreachable_and_close_the_connection(sent):
    async def reply(path, writer):
        writer.write(sent if path == "/bad" else ok())

    async def steps(pool, server):
        with pytest.raises(Unreachable):
            await ask(pool, "/bad")
        assert (await ask(pool, "/fine")).body == b"ok"
        assert server.connections == 2

    scenario(reply, steps, connections_max=1)


def test_bytes_after_an_answer_are_never_the_next_answer():
    async def reply(path, writer):
        writer.write(ok(path.encode()))
        if path == "/first":
            await asyncio.sleep(0.02)
            writer.write(ok(b"smuggled"))

    async def steps(pool, server):
        assert (await ask(pool, "/first")).body == b"/first"
        await closed(pool)
        assert (await ask(pool, "/second")).body == b"/second"
        assert server.connections == 2

    scenario(reply, steps, connections_max=1)


def test_connection_close_is_honoured():
    async def reply(path, writer):
        writer.write(ok(head=b"Connection: close\r\n"))

    async def steps(pool, server):
        for _ in range(3):
            assert (await ask(pool, "/x")).body == b"ok"
        assert server.connections == 3

    scenario(reply, steps, connections_max=1)


def test_an_idle_connection_that_the_server_closed_is_replaced():
    async def steps(pool, server):
        await ask(pool, "/a")
        server.writers[0].close()
        await closed(pool)
        assert (await ask(pool, "/b")).body == b"/b"
        assert server.connections == 2

    scenario(echo, steps, connections_max=1)


def test_silence_times_out_and_so_do_those_who_wait():
    async def reply(path, writer):
        await asyncio.sleep(30)

    async def steps(pool, server):
        answers = await asyncio.gather(
            *[ask(pool, f"/{i}") for i in range(3)], return_exceptions=True
        )
        assert all(isinstance(a, Unreachable) for a in answers)
        assert "within 0.2 s" in str(answers[0])

    scenario(reply, steps, connections_max=1, timeout_s=0.2)


def test_a_cancelled_request_does_not_leave_its_answer_to_another():
    came, go_on = asyncio.Event(), asyncio.Event()

    async def reply(path, writer):
        if path == "/slow":
            came.set()
            await go_on.wait()
        writer.write(ok(path.encode()))

    async def steps(pool, server):
        slow = asyncio.create_task(ask(pool, "/slow"))
        waiting = asyncio.create_task(ask(pool, "/never-sent"))
        await came.wait()
        slow.cancel()
        waiting.cancel()
        go_on.set()
        await asyncio.gather(slow, waiting, return_exceptions=True)
        assert slow.cancelled()
        assert waiting.cancelled()
        assert (await ask(pool, "/next")).body == b"/next"

    scenario(reply, steps, connections_max=1)


def test_nobody_listens():
    async def main():
        pool = ConnectionPool("127.0.0.1", 1, tls=None, connections_max=2)
        answers = await asyncio.gather(
            *[ask(pool, f"/{i}") for i in range(9)], return_exceptions=True
        )
        assert all(isinstance(a, Unreachable) and not a.maybe_processed for a in answers)
        assert "cannot connect to 127.0.0.1:1" in str(answers[0])
        await pool.close()

    asyncio.run(main())


def test_close_fails_what_is_under_way():
    came = asyncio.Event()

    async def reply(path, writer):
        came.set()
        await asyncio.sleep(30)

    async def steps(pool, server):
        asked = [asyncio.create_task(ask(pool, f"/{i}")) for i in range(3)]
        await came.wait()
        await pool.close()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(a, Unreachable) for a in answers)
        with pytest.raises(Unreachable, match="closed"):
            await ask(pool, "/late")

    scenario(reply, steps, connections_max=1)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls")
    key, cert = directory / "key.pem", directory / "cert.pem"
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=x"
    addext = ["-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run(
            ["openssl", *options.split(), "-keyout", key, "-out", cert, *addext],
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return key, cert


def test_tls_is_verified(certificate):
    key, cert = certificate

    class TlsServer(RawServer):
        def tls(self):
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(cert, key)
            return context

    async def main():
        trusting = ssl.create_default_context(cafile=cert)
        async with TlsServer(echo) as server, asyncio.timeout(HANGS_S):
            pool = ConnectionPool("127.0.0.1", server.port, tls=lambda: trusting, connections_max=4)
            answers = await asyncio.gather(*[ask(pool, f"/{i}") for i in range(40)])
            assert [a.body for a in answers] == [f"/{i}".encode() for i in range(40)]
            await pool.close()
            for stranger, name in ((ssl.create_default_context(), None), (trusting, "other.host")):
                pool = ConnectionPool(
                    "127.0.0.1", server.port, tls=lambda one=stranger: one, server_hostname=name
                )
                with pytest.raises(Unreachable, match="certificate"):
                    await ask(pool, "/x")
                await pool.close()

    asyncio.run(main())
