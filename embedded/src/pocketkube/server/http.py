"""Listens on loopback over TLS, and hands each request to the handler.

The certificate is of an authority of the cluster's own, by ``trustme``: kubectl and client-go send
tokens over TLS only, so an API server on plain HTTP could have no users.
aiohttp's low-level server: no routes, no middleware; a request costs it about 35 microseconds.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trustme
from aiohttp import web

from pocketkube.private_files import tighten, write_private
from pocketkube.server.writing.bodies import BODY_BYTES_MAX

_HOST = "127.0.0.1"
_STOP_GRACE_S = 1.0

_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "127.0.0.1",
    "::1",
)


def prepare_certificates(folder: Path) -> Path:
    """Write ``ca.crt`` and ``server.pem`` into the folder unless they are there; return the CA."""
    ca_file, server_file = folder / "ca.crt", folder / "server.pem"
    tighten(server_file)
    if not (ca_file.exists() and server_file.exists()):
        ca = trustme.CA(organization_name="pocketkube")
        certificate = ca.issue_cert(*_NAMES, common_name="kube-apiserver")
        write_private(server_file, certificate.private_key_and_cert_chain_pem.bytes())
        ca_file.write_bytes(ca.cert_pem.bytes())
    return ca_file


def tls_context(folder: Path) -> ssl.SSLContext:
    """Return the server's TLS settings. ``prepare_certificates`` comes first."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(folder / "server.pem")
    return made


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
