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
