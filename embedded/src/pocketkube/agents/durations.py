"""For how long pods run: durations as people write them, and distributions of them.

In: texts such as ``30s`` or ``lognormal(5m, 0.8)``. Out: seconds, drawn from a seeded generator.
Called by ``agents`` for annotations, and by whoever makes its settings.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable

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


RunTime = Callable[[random.Random], float]
"""Draws how many seconds a pod runs, not negative."""


def parse_run_time(text: str) -> RunTime:
    """Read ``30s``, ``uniform(10s, 1m)``, ``exponential(30s)`` or ``lognormal(5m, 0.8)``.

    Of the last the median is given, and how much longer the longest runs are: run times of jobs on
    GPU clusters look like that, with sigmas from 1 to 2.

    Raises ValueError, which says what may be written.
    """
    call = _CALL.fullmatch(text.strip())
    if call is None:
        run_s = duration_s(text)
        return lambda _chance: run_s
    name, arguments = call[1], [one.strip() for one in call[2].split(",")]
    if name == "uniform" and len(arguments) == 2:
        least_s, most_s = sorted((duration_s(arguments[0]), duration_s(arguments[1])))
        return lambda chance: chance.uniform(least_s, most_s)
    if name == "exponential" and len(arguments) == 1:
        mean_s = _positive_s(arguments[0])
        return lambda chance: min(chance.expovariate(1 / mean_s), DURATION_S_MAX)
    if name == "lognormal" and len(arguments) == 2:
        sigma = float(arguments[1])
        if not 0 <= sigma <= 10:
            raise ValueError(f"sigma is {arguments[1]}: give a number from 0 to 10")
        mu = math.log(_positive_s(arguments[0]))
        return lambda chance: min(chance.lognormvariate(mu, sigma), DURATION_S_MAX)
    raise ValueError(
        f"{text[:60]!r} is no run time: write 30s, uniform(10s, 1m), exponential(30s) or "
        "lognormal(5m, 0.8)"
    )


def _positive_s(text: str) -> float:
    found_s = duration_s(text)
    if not found_s:
        raise ValueError(f"{text[:60]!r} is zero: give a longer duration")
    return found_s
