"""What can be chosen about the agents, off or at once by default; how durations are read."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

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


START_AFTER = "quorate.dev/start-after"
"""Annotation of a pod: it is Running this long after it was bound."""
COMPLETE_AFTER = ("quorate.dev/complete-after", "kwok.x-k8s.io/complete-after")
"""Annotations of a pod, the first one that is there: it succeeds this long after its start."""
FAIL_AFTER = "quorate.dev/fail-after"
"""Annotation of a pod: its containers exit with code 1 this long after each start."""
FAIL = "quorate.dev/fail"
"""Annotation of a node: ``true`` (the node is silent) or ``not-ready``; nothing happens there."""
REFUSE_PODS = "quorate.dev/refuse-pods"
"""Annotation of a node: the reason, such as OutOfcpu, with which it refuses each new pod."""
AGENT = "quorate.dev/agent"
"""Annotation of a node: with ``none`` its kubelet is somebody else's business."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The defaults make pods run at once and for ever, and go at once when they are deleted."""

    start_s: float = 0.0  # from binding to Running, unless the pod's annotation says otherwise
    removal_s: float = 0.0  # from the deletion of a pod to its end; never more than its own grace
    run_time: RunTime | None = None  # of pods that may finish: restartPolicy is not Always
    restart_s: float = 10.0  # wait before the second restart of a container; it doubles each time
    restart_s_max: float = 300.0
    slice_s: float = 0.01  # one step works no longer than this before it lets others work
    kubelet_version: str = "v1.36.3"
