"""An HTTP server that strangers can take little from. In: an answer for each request.

Used by ``health``. Heads are small, connections are few and do not last. When there
are too many, one of the address that has most of them goes; of those that have as many, one that
never was answered here. So a kubelet is heard, and may be slow, whoever floods the port.
"""

import asyncio
import errno
import ipaddress
import logging
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from aiohttp import web

from quorate.core.words.plain_text import plain_lines

_HEAD_LINE_BYTES_MAX: Final = 4096
_KNOWN_MAX: Final = 256
_HOST_BITS_OF_IPV6: Final = 64
_HEAD_LINES_MAX: Final = 64
_PAGE_CHARS_MAX: Final = 4096
_ALL_ADDRESSES: Final = frozenset({"", "0.0.0.0", "::"})
_NO_IPV6: Final = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
_BODY_S_MAX: Final = 1.0  # how long a body that nobody asked for is read, and thrown away


class ServeError(Exception):
    """Something that we serve cannot be served; the one line says why and what to do."""


class _Open(NamedTuple):
    transport: asyncio.Transport
    end: asyncio.TimerHandle
    peer: str


class BoundedServer(web.Server):
    """Ends connections that last too long, and some when there are too many."""

    def __init__(
        self,
        answer: Callable[[web.BaseRequest], Awaitable[web.Response]],
        *,
        connections_max: int,
        connection_s_max: float,
    ) -> None:
        """``connection_s_max`` runs from a connection's start."""
        self._answer_page = answer
        super().__init__(
            self._answered,
            access_log=None,
            logger=_silent(),
            max_line_size=_HEAD_LINE_BYTES_MAX,
            max_field_size=_HEAD_LINE_BYTES_MAX,
            max_headers=_HEAD_LINES_MAX,
            lingering_time=_BODY_S_MAX,
            keepalive_timeout=connection_s_max,
            auto_decompress=False,
        )
        self._connections_max = connections_max
        self._connection_s_max = connection_s_max
        self._open: dict[web.RequestHandler, _Open] = {}
        """Oldest first."""
        self._known: dict[str, None] = {}
        """Addresses to which something was answered, the last of them last."""

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Begin to count a connection's time; end one if there are too many."""
        super().connection_made(handler, transport)
        self._open[handler] = _Open(transport, self._end_of(transport), _peer_of(transport))
        if len(self._open) > self._connections_max:
            ended = self._open.pop(self._least_missed())
            ended.end.cancel()
            ended.transport.abort()

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        """Forget a connection."""
        if handler in self._open:
            self._open.pop(handler).end.cancel()
        super().connection_lost(handler, exc)

    def _least_missed(self) -> web.RequestHandler:
        """Return the connection to end: the oldest of whoever takes most room here."""
        held = Counter(one.peer for one in self._open.values())
        most = max(held.values())
        greedy = [handler for handler, one in self._open.items() if held[one.peer] == most]
        strange = (handler for handler in greedy if self._open[handler].peer not in self._known)
        return next(strange, greedy[0])

    async def _answered(self, request: web.BaseRequest) -> web.Response:
        answer = await self._answer_page(request)
        if request.transport is not None:
            peer = _peer_of(request.transport)
            self._known.pop(peer, None)
            self._known[peer] = None
            if len(self._known) > _KNOWN_MAX:
                del self._known[next(iter(self._known))]
        return answer

    def _end_of(self, transport: asyncio.Transport) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._connection_s_max, transport.abort)


def _peer_of(transport: asyncio.BaseTransport) -> str:
    """Return who is at the other end: an address of IPv4, or a network, for it is one machine's."""
    name = transport.get_extra_info("peername")
    try:
        found = ipaddress.ip_address(str(name[0]).partition("%")[0])
    except (TypeError, ValueError, IndexError):
        return ""
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_address(int(found) >> _HOST_BITS_OF_IPV6 << _HOST_BITS_OF_IPV6))


def listening_everywhere(host: str, port: int) -> socket.socket | None:
    """Return a socket that listens on all addresses of IPv4 and IPv6; None if ``host`` is one.

    Each way to write all addresses means both families, as in Go: the kubelet's probes come by that
    of the pod, which an address in a manifest for all clusters cannot know.

    Raises OSError: the port cannot be used.
    """
    if host not in _ALL_ADDRESSES:
        return None
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
    return socket.create_server(("", port))  # a kernel without IPv6


def text_answer(status: int, text: str) -> web.Response:
    """Return a page of plain text; its lines are ours, and what is in them may be a stranger's."""
    content_type = "text/plain; charset=utf-8"
    body = plain_lines(text, _PAGE_CHARS_MAX).encode()
    return web.Response(status=status, body=body, headers={"Content-Type": content_type})


def _silent() -> logging.Logger:
    """Return a logger of nothing: a stranger's broken requests must not fill our log."""
    logger = logging.getLogger(f"{__name__}.requests")
    logger.disabled = True
    return logger
