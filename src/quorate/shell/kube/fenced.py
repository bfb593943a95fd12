"""Requests of aiohttp that only the holder of the lease sends. Used by ``client``.

aiohttp may wait for long until it has a connection: the question is asked after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import aiohttp

from quorate.shell.kube.errors import not_sent

if TYPE_CHECKING:
    from aiohttp.connector import Connection

_may_send: Final[ContextVar[Callable[[], bool] | None]] = ContextVar("may_send", default=None)


@contextmanager
def fenced(may_send: Callable[[], bool] | None) -> Iterator[None]:
    """Have ``may_send`` asked before each request that is made within; None: not at all."""
    token = _may_send.set(may_send)
    try:
        yield
    finally:
        _may_send.reset(token)


class FencedRequest(aiohttp.ClientRequest):
    """Asks on a connection that is free, right before it writes."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Raises Unreachable: it was not sent."""
        may_send = _may_send.get()
        if may_send is not None and not may_send():
            raise not_sent()
        return await super().send(conn)
