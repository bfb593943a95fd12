"""A bounded queue of writes that can wait. In: writes with a key. Out: requests, a few at a time.

Used by ``reporter``. A later write with the same key takes the place of an earlier one that was not
sent yet. Nothing is sent while binds are under way: binding comes first, telling comes after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable

import structlog

from quorate.shell.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)

log = structlog.get_logger(__name__)

Send = Callable[[], Awaitable[object]]
Lost = Callable[[], None]

_WRITES_MAX = 50_000
_WORKERS = 8
_TRIES_MAX = 5
_RETRY_S = 0.2


class Writes:
    """Two queues, of which the urgent one (conditions, status) goes before the other (Events)."""

    def __init__(self, *idle: asyncio.Event) -> None:
        """Each of ``idle`` is set while its owner writes nothing, which is more important."""
        self._idle = idle
        self._urgent: dict[Hashable, tuple[Send, Lost | None]] = {}
        self._other: dict[Hashable, tuple[Send, Lost | None]] = {}
        self._wake = asyncio.Event()
        self.dropped = 0
        self.failed = 0

    def __len__(self) -> int:
        """Return how many writes wait."""
        return len(self._urgent) + len(self._other)

    def put(self, key: Hashable, send: Send, *, urgent: bool, lost: Lost | None = None) -> None:
        """Queue a write; when the queue is full, the oldest of its kind is dropped and counted.

        ``lost`` is called when the API server could not take it, so that it can be said again.
        """
        queue = self._urgent if urgent else self._other
        queue.pop(key, None)
        if len(queue) >= _WRITES_MAX:
            del queue[next(iter(queue))]
            self.dropped += 1
        queue[key] = send, lost
        self._wake.set()

    def forget(self, key: Hashable) -> None:
        """Drop a write that became pointless."""
        self._urgent.pop(key, None)
        self._other.pop(key, None)

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._work())

    async def flush(self, timeout_s: float) -> None:
        """Wait until the queue is empty, but not for longer than ``timeout_s``."""
        for _ in range(int(timeout_s / 0.05)):
            if not len(self):
                return
            await asyncio.sleep(0.05)

    async def _work(self) -> None:
        while True:
            for other in self._idle:
                await other.wait()
            queue = self._urgent or self._other
            if not queue:
                self._wake.clear()
                await self._wake.wait()
                continue
            send, lost = queue.pop(next(iter(queue)))
            await self._send(send, lost)

    async def _send(self, send: Send, lost: Lost | None) -> None:
        for attempt in range(_TRIES_MAX):
            try:
                await send()
            except NotFound:
                return  # the object is gone, and nobody reads this any more
            except (Conflict, TooManyRequests, ServerError, Unreachable) as error:
                if error.reason == "AlreadyExists":
                    return  # an Event whose first answer was lost
                await asyncio.sleep(max(_RETRY_S * 2**attempt, error.retry_after_s or 0.0))
            except ApiError as error:
                # An API server that has just started knows no roles yet, for a second or two.
                passing = isinstance(error, Forbidden) and lost is not None
                if passing and attempt < _TRIES_MAX - 1:
                    await asyncio.sleep(_RETRY_S * 2**attempt)
                    continue
                log.warning("a report was refused", status=error.status, problem=error.message)
                self.failed += 1
                return
            else:
                return
        self.failed += 1
        if lost is not None:
            lost()
