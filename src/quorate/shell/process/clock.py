"""The only place that reads time. Every other module takes ``now_s`` or a ``Clock`` as an argument.

In: the operating system's clocks. Out: seconds as floats. Called by the shell; the core never.
Timers (``asyncio.sleep``, ``call_later``) run on the event loop's own clock, which is not read
here.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one that people read, and one that only ever moves forward."""

    def now_s(self) -> float:
        """Return wall clock time, in seconds since 1970 (may jump)."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds since some fixed moment (never jumps; use it for durations)."""
        ...


class SystemClock:
    """The clocks of this machine."""

    __slots__ = ()

    def now_s(self) -> float:
        """Return wall clock time, in seconds since 1970."""
        return time.time()  # noqa: TID251  the one place where it is allowed

    def monotonic_s(self) -> float:
        """Return seconds of the clock that event loops use as well."""
        return time.monotonic()


class SteadyClock:
    """Wall clock time that never jumps: that of the start, and the seconds since.

    Deadlines and back-offs are compared by it: were the wall clock set back by an hour, a gang that
    backs off for a second would wait for an hour.
    """

    __slots__ = ("_ahead_s", "_clock")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_s = clock.now_s() - clock.monotonic_s()

    def now_s(self) -> float:
        """Return seconds since 1970, as the wall clock would show if nobody had set it."""
        return self._ahead_s + self._clock.monotonic_s()

    def wall_s(self) -> float:
        """Return what the wall clock shows, for what people read."""
        return self._clock.now_s()

    def monotonic_s(self) -> float:
        """Return the seconds of the clock within."""
        return self._clock.monotonic_s()
