"""A bounded queue of reports to write. In: writes with a key. Out: requests, a few at a time.

Used by ``reporter``. A later write replaces an earlier one with the same key that was not sent yet.
While binds are under way few reports are sent: binds come first. A failed write waits for its next
try outside the queue, so that it delays no other one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

import structlog

from quorate.shell.kube.errors import ApiError, Conflict, Forbidden, NotFound, is_gone
from quorate.shell.kube.writer import TRANSIENT
from quorate.shell.process.contained import Note

log = structlog.get_logger(__name__)

Send = Callable[[], Awaitable[object]]
Lost = Callable[[], None]

_WRITES_MAX = 50_000
_WORKERS = 8
_TRIES_MAX = 5
_RETRY_S = 0.2
_RETRY_S_MAX = 30.0
_PATIENCE_S = 5.0
"""While binds never pause, each worker sends one report in this time."""
_REFUSALS_LOGGED_EVERY_S = 30.0
_PASSING = (Conflict, NotFound, *TRANSIENT)


@dataclass(slots=True, eq=False)
class _Write:
    send: Send
    urgent: bool
    lost: Lost | None
    tries: int = 0


class WriteQueue:
    """Two queues: urgent writes (explanations, conditions, status) go before other Events."""

    def __init__(self, *idle: asyncio.Event, note: Note) -> None:
        """Each of ``idle`` is set while its owner, which goes first, writes nothing."""
        self._idle = idle
        self._note = note
        self._urgent: dict[Hashable, _Write] = {}
        self._other: dict[Hashable, _Write] = {}
        self._later: dict[Hashable, asyncio.TimerHandle] = {}
        """Those that failed, until their next try."""
        self._wake = asyncio.Event()
        self._refusals_logged_s = float("-inf")
        self.dropped = 0
        self.failed = 0

    def __len__(self) -> int:
        """Return how many writes wait."""
        return len(self._urgent) + len(self._other) + len(self._later)

    def put(self, key: Hashable, send: Send, *, urgent: bool, lost: Lost | None = None) -> None:
        """Queue a write. When the queue is full, its oldest write is dropped and counted.

        ``lost`` is called when all tries have failed, so that the report can be made again.
        """
        self._end_wait(key)
        self._put(key, _Write(send, urgent, lost))

    def _put(self, key: Hashable, write: _Write) -> None:
        queue = self._urgent if write.urgent else self._other
        queue.pop(key, None)
        if len(queue) >= _WRITES_MAX:
            del queue[next(iter(queue))]
            self.dropped += 1
        queue[key] = write
        self._wake.set()

    def forget(self, key: Hashable) -> None:
        """Drop a write that is no longer needed."""
        self._end_wait(key)
        self._urgent.pop(key, None)
        self._other.pop(key, None)

    async def run(self) -> None:
        """Send until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_WORKERS):
                    group.create_task(self._work())
        finally:
            for key in list(self._later):
                self._end_wait(key)

    async def flush(self, timeout_s: float) -> None:
        """Wait until the queue is empty, for at most ``timeout_s``."""
        for _ in range(int(timeout_s / 0.05)):
            if not len(self):
                return
            await asyncio.sleep(0.05)

    async def _work(self) -> None:
        while True:
            await self._yield_to_binds()
            queue = self._urgent or self._other
            if not queue:
                self._wake.clear()
                await self._wake.wait()
                continue
            key = next(iter(queue))
            await self._send(key, queue.pop(key))

    async def _yield_to_binds(self) -> None:
        """Wait for binds and evictions, but not for ever: they may come without a pause."""
        if all(other.is_set() for other in self._idle):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                for other in self._idle:
                    await other.wait()

    async def _send(self, key: Hashable, write: _Write) -> None:
        write.tries += 1
        try:
            await write.send()
        except _PASSING as error:
            if is_gone(error):
                return  # nobody reads the report any more
            if error.reason == "AlreadyExists":
                return  # an Event whose first answer was lost
            if write.tries < _TRIES_MAX:
                self._try_again(key, write, error)
            else:
                self.failed += 1
                if write.lost is not None:
                    write.lost()
        except ApiError as error:
            if error.is_namespace_going:
                return  # nobody reads the report any more
            # A report with ``lost`` is tried again: the right to write it may be granted later, and
            # an API server that has just started answers 403 for some seconds.
            self._log_refusal(error)
            if isinstance(error, Forbidden) and write.lost is not None:
                self._try_again(key, write, error)
            else:
                self.failed += 1
        except Exception as error:  # this report alone is lost
            self._note("report", str(key), error)
            self.failed += 1

    def _try_again(self, key: Hashable, write: _Write, error: ApiError) -> None:
        """Have another try after a while, unless something newer with the key is to be written."""
        if key in self._urgent or key in self._other or key in self._later:
            return
        if len(self._later) >= _WRITES_MAX:
            self.dropped += 1
            return
        delay_s = min(_RETRY_S * 2 ** min(write.tries - 1, 20), _RETRY_S_MAX)
        delay_s = max(delay_s, error.retry_after_s or 0.0)
        loop = asyncio.get_running_loop()
        self._later[key] = loop.call_later(delay_s, self._put_again, key, write)

    def _put_again(self, key: Hashable, write: _Write) -> None:
        del self._later[key]
        self._put(key, write)

    def _end_wait(self, key: Hashable) -> None:
        waiting = self._later.pop(key, None)
        if waiting is not None:
            waiting.cancel()

    def _log_refusal(self, error: ApiError) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._refusals_logged_s >= _REFUSALS_LOGGED_EVERY_S:
            self._refusals_logged_s = now_s
            log.warning("a report was refused", status=error.status, problem=error.message)
