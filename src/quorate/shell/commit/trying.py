"""What all who write have in common: which failures pass by themselves, waits, tasks under way.

Used by the other modules of this folder; each of them says itself when to give up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import structlog

from quorate.shell.kube.errors import ApiError, ServerError, TooManyRequests, Unreachable

log = structlog.get_logger(__name__)

TRANSIENT = (TooManyRequests, ServerError, Unreachable)
"""Failures that say nothing about the request: the same one may succeed later."""


class Backoff:
    """The waits between tries of one write: twice as long each time, up to a limit, in seconds."""

    def __init__(self, min_s: float = 0.05, max_s: float = 5.0) -> None:
        self._next_s = min_s
        self._max_s = max_s

    async def wait(self, error: ApiError | None) -> None:
        """Wait before the next try, and at least as long as the server asked for."""
        asked_s = (error and error.retry_after_s) or 0.0
        await asyncio.sleep(max(self._next_s, asked_s))
        self._next_s = min(2 * self._next_s, self._max_s)


class Background:
    """Tasks that nobody waits for. One that fails is logged; ``close`` gives all of them up."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Begin; returns at once."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Cancel what is under way, and wait until it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a write failed in an unexpected way", exc_info=task.exception())
