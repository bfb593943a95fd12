"""For how long pods run: durations as people write them, and distributions of them.

In: texts such as ``30s`` or ``lognormal(5m, 0.8)``. Out: seconds, drawn from a seeded generator.
Called by ``agents`` for annotations, and by whoever makes its settings.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass
from typing import Protocol

DURATION_S_MAX = 10 * 365 * 86400.0
"""Ten years: longer runs are cut, so that a timer is always a number."""

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{0,12})?|\.[0-9]{1,12})(ns|us|µs|ms|s|m|h)")
_CALL = re.compile(r"([a-z]+)\(([^()]*)\)")


def duration_s(text: str) -> float:
    """Read a duration such as ``30s``, ``1h30m`` or ``1.5s`` (Go's time.ParseDuration, positive).

    Raises ValueError.
    """
    text = text.strip()
    if text == "0":
        return 0.0
    total_s, end = 0.0, 0
    for part in _PART.finditer(text):
        if part.start() != end:
            break
        total_s += float(part[1]) * _UNITS_S[part[2]]
        end = part.end()
    if not text or end != len(text):
        raise ValueError(f"{text[:60]!r} is not a duration such as 30s, 1h30m or 100ms")
    return min(total_s, DURATION_S_MAX)


class RunTime(Protocol):
    """How long a pod runs."""

    def draw_s(self, chance: random.Random) -> float:
        """Return seconds, not negative."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same."""

    run_s: float

    def draw_s(self, chance: random.Random) -> float:
        """Return the one time there is."""
        return self.run_s


@dataclass(frozen=True, slots=True)
class Uniform:
    """Any time between two, all alike."""

    least_s: float
    most_s: float

    def draw_s(self, chance: random.Random) -> float:
        """Return a time between the two."""
        return chance.uniform(self.least_s, self.most_s)


@dataclass(frozen=True, slots=True)
class Exponential:
    """Many short runs and few long ones; only the mean is given."""

    mean_s: float

    def draw_s(self, chance: random.Random) -> float:
        """Return an exponentially distributed time."""
        return min(chance.expovariate(1 / self.mean_s), DURATION_S_MAX)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Half of the runs are shorter than the median; the larger sigma, the longer the longest.

    Run times of jobs on GPU clusters look like this, with sigmas from 1 to 2.
    """

    median_s: float
    sigma: float

    def draw_s(self, chance: random.Random) -> float:
        """Return a log-normally distributed time."""
        return min(chance.lognormvariate(math.log(self.median_s), self.sigma), DURATION_S_MAX)


def parse_run_time(text: str) -> RunTime:
    """Read ``30s``, ``uniform(10s, 1m)``, ``exponential(30s)`` or ``lognormal(5m, 0.8)``.

    Raises ValueError, which says what may be written.
    """
    call = _CALL.fullmatch(text.strip())
    if call is None:
        return Fixed(duration_s(text))
    name, arguments = call[1], [one.strip() for one in call[2].split(",")]
    if name == "uniform" and len(arguments) == 2:
        least_s, most_s = sorted((duration_s(arguments[0]), duration_s(arguments[1])))
        return Uniform(least_s, most_s)
    if name == "exponential" and len(arguments) == 1:
        return Exponential(_positive_s(arguments[0]))
    if name == "lognormal" and len(arguments) == 2:
        sigma = float(arguments[1])
        if not 0 <= sigma <= 10:
            raise ValueError(f"sigma is {arguments[1]}: give a number from 0 to 10")
        return LogNormal(_positive_s(arguments[0]), sigma)
    raise ValueError(
        f"{text[:60]!r} is no run time: write 30s, uniform(10s, 1m), exponential(30s) or "
        "lognormal(5m, 0.8)"
    )


def _positive_s(text: str) -> float:
    found_s = duration_s(text)
    if not found_s:
        raise ValueError(f"{text[:60]!r} is zero: give a longer duration")
    return found_s
