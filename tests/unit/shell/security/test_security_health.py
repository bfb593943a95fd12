"""Whoever reaches the health port gets three pages, and can hold nothing of ours for long."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from quorate.shell.serve.health import CONNECTIONS_MAX, HealthServer
from tools.testing import HANGS_S

OK = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def health(**options):
    server = HealthServer(
        "127.0.0.1", 0, registry=CollectorRegistry(), unready_reason=lambda: None, **options
    )
    await server.start()
    yield server
    await server.close()


async def exchange(port, sent):
    """Send bytes and return all that comes until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        await writer.drain()
        async with asyncio.timeout(HANGS_S):
            return await reader.read()
    except ConnectionError:
        return b"reset"
    finally:
        writer.close()


def status(answer):
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    "path",
    ["/", "/metrics/..", "/../etc/passwd", "/healthz%2f..", "/debug/pprof/heap", "//metrics", "*"],
)
async def test_no_other_path_is_served(path):
    async with health() as server:
        answer = await exchange(server.port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert status(answer) in (400, 404)
    assert b"root:" not in answer
    assert b"href" not in answer


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]
)
async def test_no_other_method_is_served_and_the_answer_names_those_that_are(method):
    async with health() as server:
        request = f"{method} /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
        answer = await exchange(server.port, request.encode())
    assert status(answer) == 405
    assert b"Allow: GET, HEAD" in answer
    assert b"aiohttp" not in answer, "which library and version is nobody's business"


async def test_a_connection_is_for_one_request():
    async with health() as server:
        answer = await exchange(server.port, OK + OK)
    assert answer.count(b"HTTP/1.1 200") == 1
    assert b"Connection: close" in answer


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 10,
        b"GET /healthz HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["line", "header", "headers", "not http", "two lengths"],
)
async def test_a_head_too_large_or_broken_is_refused_without_a_line_in_the_log(
    request_bytes, caplog
):
    async with health() as server:
        answer = await exchange(server.port, request_bytes)
        assert answer == b"reset" or status(answer) == 400
        assert status(await exchange(server.port, OK)) == 200
    assert not caplog.records


async def test_a_body_that_never_ends_is_not_read_for_long():
    async with health() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        async with asyncio.timeout(HANGS_S):
            answer = await reader.read()  # ends by the server's closing
        assert status(answer) == 405
        writer.close()


async def test_a_request_sent_a_byte_at_a_time_is_ended():
    async with health(connection_s_max=0.3) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nA: ")
        deadline_s = time.monotonic() + HANGS_S
        while not reader.at_eof() and time.monotonic() < deadline_s:
            try:
                writer.write(b"a")  # a header that never ends, below the bound of its size
                await writer.drain()
                async with asyncio.timeout(0.05):
                    await reader.read(1)
            except TimeoutError:
                continue
            except ConnectionError:
                break
        writer.close()
        assert time.monotonic() < deadline_s, "the server never closed"
        assert status(await exchange(server.port, OK)) == 200


async def test_many_idle_connections_do_not_keep_a_kubelet_out():
    async with health() as server:
        held = [
            await asyncio.open_connection("127.0.0.1", server.port)
            for _ in range(3 * CONNECTIONS_MAX)
        ]
        assert status(await exchange(server.port, OK)) == 200
        while sum(bool(one.at_eof() or one.exception()) for one, _ in held) < 2 * CONNECTIONS_MAX:
            await asyncio.sleep(0.01)
        assert not held[-1][0].at_eof(), "the newest are kept"
        for _, writer in held:
            writer.close()


async def flood(port, addresses):
    """Open a connection from each of these addresses, one after the other, and hold them all."""
    return [
        await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        for address in addresses
    ]


async def answered_late(port, held_meanwhile):
    """Open a connection, let others flood the port, and only then ask."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(0.05)
    held = await flood(port, held_meanwhile)
    try:
        writer.write(OK)
        async with asyncio.timeout(HANGS_S):
            return status(await reader.read())
    except ConnectionError:
        return 0
    finally:
        for _, one in [*held, (reader, writer)]:
            one.close()


async def test_a_slow_kubelet_is_heard_while_another_address_floods_the_port():
    async with health() as server:
        flooding = ["127.0.0.2"] * (5 * CONNECTIONS_MAX)
        assert await answered_late(server.port, flooding) == 200


async def test_a_slow_kubelet_that_was_answered_before_is_heard_among_many_addresses():
    async with health() as server:
        assert status(await exchange(server.port, OK)) == 200
        flooding = [f"127.0.{n // 250}.{2 + n % 250}" for n in range(5 * CONNECTIONS_MAX)]
        assert await answered_late(server.port, flooding) == 200


async def test_a_newcomer_is_heard_while_many_addresses_flood_the_port():
    async with health() as server:
        held = await flood(server.port, [f"127.0.1.{2 + n % 250}" for n in range(200)])
        assert status(await exchange(server.port, OK)) == 200
        for _, writer in held:
            writer.close()


async def test_a_page_that_fails_says_so_and_the_log_says_why(caplog):
    def broken():
        raise RuntimeError("a defect of ours")

    server = HealthServer("127.0.0.1", 0, registry=CollectorRegistry(), unready_reason=broken)
    await server.start()
    answer = await exchange(server.port, OK.replace(b"healthz", b"readyz"))
    await server.close()
    assert status(answer) == 500
    assert b"a defect of ours" not in answer
    assert "a defect of ours" in caplog.text
