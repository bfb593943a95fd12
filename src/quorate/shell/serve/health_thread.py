"""The health pages in a thread of their own, so that they tell of a core that is busy or stuck.

In: a ``HealthServer``. Out: its pages, whatever the core's loop does. What they show is read from
this thread: numbers, and single values that the core's loop replaces whole.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from quorate.shell.process.loop_thread import LoopThread
from quorate.shell.serve.health import HealthServer

THREAD_NAME: Final = "quorate-health"


class HealthThread:
    """``start`` it, and ``close`` it, in the caller's loop."""

    def __init__(self, server: HealthServer) -> None:
        self._server = server
        self._thread = LoopThread(THREAD_NAME, self._serve)
        self._up: asyncio.Future[None]

    async def start(self) -> None:
        """Listen. Raises HealthError: the address cannot be used."""
        self._up = asyncio.get_running_loop().create_future()
        self._thread.start()
        await asyncio.wait([self._up, self._thread.ended], return_when=asyncio.FIRST_COMPLETED)
        if self._thread.ended.done():
            self._thread.ended.result()

    async def close(self) -> None:
        """Stop listening."""
        await self._thread.stop()

    async def _serve(self) -> None:
        await self._server.start()
        try:
            with contextlib.suppress(RuntimeError):  # the caller's loop is closed
                self._up.get_loop().call_soon_threadsafe(self._up.set_result, None)
            await asyncio.get_running_loop().create_future()
        finally:
            await self._server.close()
