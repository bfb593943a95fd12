"""Whether the API server answers again: the first watch that finds out wakes the others.

After an outage each watch backs off, some of them for long. Meanwhile what they know is old, and no
good decision can be made from it. Used by all reflectors of one server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from quorate.shell.process.clock import Clock

_CALL_EVERY_S = 1.0
"""How often the others are woken at most: a server may accept connections only to end them."""
_SPREAD_S = 0.1


class Availability:
    """Back-offs that end early when the API server is back."""

    def __init__(self, clock: Clock, chance: Callable[[], float]) -> None:
        """``chance`` returns numbers in [0, 1), so that not all come back at once."""
        self._clock = clock
        self._chance = chance
        self._back = asyncio.Event()
        self._waiting = 0
        self._called_at_s = -_CALL_EVERY_S

    def answered(self) -> None:
        """Note that the server has answered, and end the waits of the others."""
        now_s = self._clock.monotonic_s()
        if self._waiting and now_s >= self._called_at_s + _CALL_EVERY_S:
            self._called_at_s = now_s
            self._back.set()
            self._back = asyncio.Event()

    async def wait(self, delay_s: float) -> None:
        """Wait for ``delay_s`` after a failure, or until the server answers somebody."""
        self._waiting += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await self._back.wait()
                    await asyncio.sleep(_SPREAD_S * self._chance())
        finally:
            self._waiting -= 1
