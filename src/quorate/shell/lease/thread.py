"""The lease in a thread of its own: an elector that renews while the core's loop is busy.

In: an ``Elector``. Out: the same interface, for a caller whose own loop may be blocked for longer
than the lease lasts. The elector's loop and client belong to the thread; the caller's work stays in
the caller's loop. Made by ``leadership``. The simulation runs the elector in its one loop instead.

Three things cross between the two: the lease is held, the lease is lost, and questions to the core
(``ask``). Any thread may ask ``Elector.is_leader``: it compares one float with a monotonic clock.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Final

from quorate.shell.lease.elector import Elector
from quorate.shell.process.loop_thread import LoopThread

THREAD_NAME: Final = "quorate-lease"
_ANSWER_S_MAX: Final = 0.2


class LeaseThread:
    """Runs an elector for one term."""

    def __init__(self, elector: Elector) -> None:
        self._elector = elector
        self._core: asyncio.AbstractEventLoop

    async def run(
        self, on_started: Callable[[], Awaitable[None]], on_lost: Callable[[], object]
    ) -> None:
        """Do as ``Elector.run`` does, with ``on_started`` and ``on_lost`` in the caller's loop.

        They run as soon as that loop turns; fencing does not wait for it. Raises what the elector
        raised: then the Lease is not released, but runs out.
        """
        self._core = asyncio.get_running_loop()
        began, lost = self._core.create_future(), self._core.create_future()

        async def term() -> None:
            self._tell(began)
            await asyncio.get_running_loop().create_future()

        thread = LoopThread(THREAD_NAME, lambda: self._elector.run(term, lambda: self._tell(lost)))
        thread.start()
        work: asyncio.Future[None] | None = None
        try:
            await asyncio.wait([began, thread.ended], return_when=asyncio.FIRST_COMPLETED)
            if began.done() and not lost.done() and not thread.ended.done():
                work = asyncio.ensure_future(on_started())
                await asyncio.wait([work, lost, thread.ended], return_when=asyncio.FIRST_COMPLETED)
            if lost.done():
                on_lost()
        finally:
            if work is not None and not work.done():
                work.cancel()
                await asyncio.wait([work])
            await thread.stop()  # after the work has ended: a successor may begin at once
        if thread.ended.done():
            thread.ended.result()
        if work is not None and not work.cancelled():
            work.result()

    async def ask(self, question: Callable[[], object]) -> None:
        """Have the caller's loop call ``question``, from the thread. Do not wait for a busy core.

        Raises what ``question`` raised.
        """
        answered: Future[None] = Future()

        def answer() -> None:
            if not answered.set_running_or_notify_cancel():
                return  # it was asked too long ago
            try:
                question()
            except Exception as error:
                answered.set_exception(error)
            else:
                answered.set_result(None)

        with contextlib.suppress(TimeoutError, RuntimeError):  # busy, or closed
            self._core.call_soon_threadsafe(answer)
            async with asyncio.timeout(_ANSWER_S_MAX):
                await asyncio.wrap_future(answered)

    def _tell(self, what: asyncio.Future[None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
            self._core.call_soon_threadsafe(_set, what)


def _set(what: asyncio.Future[None]) -> None:
    if not what.done():
        what.set_result(None)
