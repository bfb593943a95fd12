"""One coroutine in a thread of its own, with an event loop of its own.

In: a coroutine function. Out: when it has ended, and how. Used where work has to go on while the
core's loop is busy (``lease.thread``). The thread is a daemon: it never keeps the process alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

log = structlog.get_logger(__name__)

_STOP_S_MAX: Final = 10.0
"""A name lookup that hangs in the system's resolver cannot be cancelled."""


class LoopThread:
    """``start`` it in a loop, wait for ``ended`` there, ``stop`` it there."""

    def __init__(self, name: str, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """``main`` is called, and what it returns is awaited, in the thread named ``name``."""
        self._name = name
        self._main = main
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._loop: asyncio.AbstractEventLoop
        self._home: asyncio.AbstractEventLoop
        self._thread: threading.Thread
        self.ended: asyncio.Future[None]
        """Done when the coroutine has ended, with what it raised unless it was stopped."""

    def start(self) -> None:
        """Begin; the running loop is the one that will be told of the end."""
        self._home = asyncio.get_running_loop()
        self.ended = self._home.create_future()
        self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Cancel the coroutine and wait until it has ended, for ten seconds at most."""
        self._is_stopping = True
        task = self._task
        if task is not None and not self.ended.done():
            with contextlib.suppress(RuntimeError):  # its loop has been closed: it has ended
                self._loop.call_soon_threadsafe(task.cancel)
        await asyncio.wait([self.ended], timeout=_STOP_S_MAX)
        if not self.ended.done():
            log.warning("a thread did not end and is left behind", thread=self._name)
            return
        self._thread.join()  # it has told of its end, and does nothing after that

    def _work(self) -> None:
        error: BaseException | None = None
        try:
            asyncio.run(self._until_stopped())
        except asyncio.CancelledError:
            pass
        except BaseException as raised:  # carried to the loop that waits for it
            error = raised
        with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits
            self._home.call_soon_threadsafe(self._tell_end, error)

    async def _until_stopped(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        # ``stop`` sets its flag before it looks for the task: one of the two sees the other.
        if not self._is_stopping:
            await self._main()

    def _tell_end(self, error: BaseException | None) -> None:
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)
            self.ended.exception()  # whoever asks gets it; it is not lost if nobody does
