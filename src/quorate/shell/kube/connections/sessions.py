"""How we use aiohttp: sessions that close all, and bodies with a limit.

Used by ``client`` for reads, streams, and writes through a proxy.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import aiohttp

from quorate import __version__
from quorate.shell.kube.errors import TooLarge, Unreachable

if TYPE_CHECKING:
    from aiohttp.connector import AddrInfoType

USER_AGENT: Final = f"quorate/{__version__}"
CONTENT_TYPE: Final = "application/json"
LIST_BYTES_MAX: Final = 64 * 1024 * 1024
"""The most that one page of a list may have; ``pages`` asks for smaller ones beyond it."""
NETWORK_ERRORS: Final = (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError)
_STREAM_BUFFER_BYTES: Final = 8 * 1024 * 1024
_TURNS_TO_CLOSE: Final = 10


class ByteStream:
    """The body of a long answer, as it comes."""

    __slots__ = ("_content", "_name")

    def __init__(self, content: aiohttp.StreamReader, name: str) -> None:
        self._content = content
        self._name = name

    async def read(self) -> bytes:
        """Return all bytes that are there, at least one; ``b""`` at the end of a whole body.

        Raises Unreachable: the connection broke, or was silent for too long.
        """
        try:
            return await self._content.readany()
        except NETWORK_ERRORS as error:
            raise unreachable(self._name, error) from error


class Connector(aiohttp.TCPConnector):
    """Has no open socket when it is closed.

    aiohttp forgets connections that were given up before: of cancelled requests, of streams. With
    TLS they wait for the server's goodbye, for up to half a minute and beyond the end of the loop.
    """

    def __init__(
        self, connections_max: int, make_socket: Callable[[AddrInfoType], socket.socket]
    ) -> None:
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._make_socket = make_socket
        super().__init__(
            limit=connections_max,
            keepalive_timeout=60,  # see pool._IDLE_S_MAX
            socket_factory=self._remembered,
        )

    def _remembered(self, address: AddrInfoType) -> socket.socket:
        made = self._make_socket(address)
        self._sockets.add(made)
        return made

    async def close(self, *, abort_ssl: bool = True) -> None:
        """Close everything; returns when the sockets are closed."""
        await super().close(abort_ssl=abort_ssl)
        for one in list(self._sockets):
            with suppress(OSError):  # it is closed
                one.shutdown(socket.SHUT_RDWR)  # for its transport: the server has said goodbye
        for _ in range(_TURNS_TO_CLOSE):
            if all(one.fileno() < 0 for one in list(self._sockets)):
                return
            await asyncio.sleep(0)


def session(
    connections_max: int,
    timeout_s: float,
    *,
    is_stream: bool = False,
    connect_s: float | None = None,
) -> aiohttp.ClientSession:
    """Return a session that adds nothing of its own: no cookies, no proxy from the env.

    ``connections_max`` 0 is no limit. ``timeout_s`` is for all of one request, ``connect_s`` for
    its connection.
    """
    return aiohttp.ClientSession(
        connector=Connector(connections_max, _large_buffer_socket if is_stream else plain_socket),
        headers={
            "User-Agent": USER_AGENT,
            "Accept": CONTENT_TYPE,
            "Accept-Encoding": "identity",
        },
        skip_auto_headers=["Content-Type"],
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=timeout_s, connect=connect_s),
        # Lists too come in many megabytes: each pause of a smaller buffer costs CPU.
        read_bufsize=_STREAM_BUFFER_BYTES,
    )


async def body_of(response: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    """Return all of it. Raises TooLarge: it has more than ``bytes_max``."""
    chunks, size_bytes = [], response.content_length or 0
    if size_bytes <= bytes_max:
        size_bytes = 0
        async for chunk in response.content.iter_any():
            size_bytes += len(chunk)
            chunks.append(chunk)
            if size_bytes > bytes_max:
                break
        else:
            return b"".join(chunks)
    response.close()  # the rest is not read, nor is its connection of use
    raise TooLarge(f"an answer of more than {bytes_max // 2**20} MiB")


def unreachable(name: str, error: BaseException) -> Unreachable:
    """Return what a failure of the network to ``name`` means for its request."""
    # A connection that was never made is the one case in which surely nothing was processed.
    never_sent = isinstance(
        error,
        aiohttp.ClientConnectorError
        | aiohttp.ClientHttpProxyError
        | aiohttp.ConnectionTimeoutError,
    )
    text = str(error) or type(error).__name__
    return Unreachable(f"{name}: {text}", maybe_processed=not never_sent)


def plain_socket(address: AddrInfoType) -> socket.socket:
    """Return a socket as aiohttp makes one."""
    family, kind, protocol, _, _ = address
    return socket.socket(family=family, type=kind, proto=protocol)


def _large_buffer_socket(address: AddrInfoType) -> socket.socket:
    """Return a socket that holds much unread, because the API server drops slow watchers.

    A fixed size switches off the kernel's own tuning, so it is only set if the kernel grants a
    size that is worth it: on hosts with the usual limit of 208 KiB the tuning does better.
    """
    created = plain_socket(address)
    if _granted_buffer_bytes_max() >= _STREAM_BUFFER_BYTES // 4:
        created.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _STREAM_BUFFER_BYTES)
    return created


def _granted_buffer_bytes_max() -> int:
    try:
        return int(Path("/proc/sys/net/core/rmem_max").read_text())
    except (OSError, ValueError):
        return 0
