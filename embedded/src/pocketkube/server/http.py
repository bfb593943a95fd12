"""Listens on loopback, and hands each request to the handler.

aiohttp's low-level server: no routes, no middleware; a request costs it about 35 microseconds.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from pocketkube.server.writing.bodies import BODY_BYTES_MAX

_HOST = "127.0.0.1"
_STOP_GRACE_S = 1.0

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class ListenError(Exception):
    """The port cannot be had; the text says what to do."""


class HttpServer:
    """One listening socket."""

    def __init__(self, answer: Answer, tls: ssl.SSLContext) -> None:
        self._server = web.Server(
            answer,
            access_log=None,
            request_factory=_request,
            keepalive_timeout=600,
        )
        self._tls = tls
        self._runner = web.ServerRunner(self._server, shutdown_timeout=_STOP_GRACE_S)
        self.port = 0
        self.inner_port = 0  #: without TLS, for parts of this process: encryption costs a tenth

    async def start(self, port: int) -> None:
        """Listen on 127.0.0.1; port 0 takes any that is free. Raises ListenError."""
        await self._runner.setup()
        options: dict[str, Any] = {"backlog": 1024, "reuse_address": True}
        site = web.TCPSite(self._runner, _HOST, port, ssl_context=self._tls, **options)
        try:
            await site.start()
            await web.TCPSite(self._runner, _HOST, 0, **options).start()
        except OSError as error:
            await self._runner.cleanup()
            raise ListenError(_why(error, port)) from error
        self.port, self.inner_port = (address[1] for address in self._runner.addresses)

    async def stop(self) -> None:
        """Close the socket, and then all connections: a client may come back at once."""
        await self._runner.cleanup()


def _why(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use: choose another with --port, or 0 for any that is free"
    if error.errno == errno.EACCES:
        return f"port {port} needs more rights: choose one above 1023 with --port"
    return f"cannot listen on 127.0.0.1:{port}: {error.strerror or error}"


def _request(
    message: web.RawRequestMessage,  # type: ignore[name-defined]  # aiohttp's own type
    payload: object,
    protocol: object,
    writer: object,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message,
        payload,  # type: ignore[arg-type]
        protocol,  # type: ignore[arg-type]
        writer,  # type: ignore[arg-type]
        task,
        loop,
        client_max_size=BODY_BYTES_MAX,
    )
