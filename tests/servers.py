"""HTTP servers of tests, and how any server is closed without leaving anything open."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

_STEPS = 6
"""Of the loop: see that somebody waits, accept, make the transport, tell the protocol."""
_GRACE_S = 0.01
"""How long a request that is being answered may take when its server is closed."""

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve HTTP on loopback; yield the port."""
    http = web.Server(answer, access_log=None)
    server = await asyncio.get_running_loop().create_server(http, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await close(server)
        transports = [one.transport for one in http.connections]
        http.pre_shutdown()
        await http.shutdown(_GRACE_S)
        for transport in transports:
            if transport is not None:
                transport.abort()  # a TLS connection that is only closed waits for its client
        await take_who_waits()


async def close(server: asyncio.Server) -> None:
    """Close a server that clients may still be connecting to.

    asyncio makes the transport of a connection in a task of its own. If the server is closed before
    that has run, the transport is never closed. So it stops to accept first.
    """
    for one in server.sockets:
        asyncio.get_running_loop().remove_reader(one.fileno())
    await take_who_waits()
    server.close()


async def take_who_waits() -> None:
    """Let the loop finish what it has begun with connections."""
    for _ in range(_STEPS):
        await asyncio.sleep(0)
