"""Whether the core's loop turns. Written by that loop; read by the lease's thread and /healthz.

In: a beat at each turn, and at natural points of long work. Out: for how long there was none.
"""

from __future__ import annotations

from typing import Final

from quorate.shell.process.clock import Clock

STUCK_AFTER_S: Final = 30.0


class Heartbeat:
    """One float that one thread writes and any may read. It begins with a beat."""

    def __init__(self, clock: Clock, stuck_after_s: float = STUCK_AFTER_S) -> None:
        self._clock = clock
        self._stuck_after_s = stuck_after_s
        self._at_s = clock.monotonic_s()
        self.every_s = stuck_after_s / 6
        """How often a core that has nothing to do has to beat, in seconds."""

    def beat(self) -> None:
        """Note that the core has made progress."""
        self._at_s = self._clock.monotonic_s()

    def stuck_s(self) -> float:
        """Return for how long the core has not turned, in seconds; 0 unless that is too long."""
        silent_s = self._clock.monotonic_s() - self._at_s
        return silent_s if silent_s > self._stuck_after_s else 0.0
