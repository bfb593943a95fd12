"""The lag of the core's loop: how late its timers are. Run by ``app``.

In: the loop that calls ``run``. Out: a histogram, and the largest lag of the last second.
"""

from __future__ import annotations

import asyncio
from typing import Final

from quorate.shell.process.clock import Clock
from quorate.shell.report.metrics import Metrics

_TICK_S: Final = 0.1
_TICKS: Final = 10


class LoopLag:
    """A timer every 0.1 s, and how late it was each time, in seconds."""

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._due_s = float("inf")
        self._newest: tuple[float, ...] = ()
        metrics.loop_lag_max_s.set_function(self.max_s)

    def max_s(self) -> float:
        """Return the largest lag of the last second, in seconds, also while it lasts.

        Thread-safe.
        """
        return max(0.0, self._clock.monotonic_s() - self._due_s, *self._newest)

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            self._due_s = self._clock.monotonic_s() + _TICK_S
            await asyncio.sleep(_TICK_S)
            lag_s = max(0.0, self._clock.monotonic_s() - self._due_s)
            self._metrics.loop_lag_s.observe(lag_s)
            self._newest = (*self._newest[1 - _TICKS :], lag_s)
