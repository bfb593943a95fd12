"""What a running scheduler takes while it runs: memory, CPU, and how late its loop is.

In: a process and its /metrics. Out: samples, each second, and what they come to. Used by
``soak_large``.
"""

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.cluster.measurement import cpu_s

_EVERY_S = 0.5
_LAG = "quorate_loop_lag_seconds_bucket"
_LAG_LASTS_S = 1.1
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Sample:
    """One look. Times and CPU in seconds, memory in bytes."""

    at_s: float
    rss_bytes: int
    cpu_s: float
    lag_max_s: float
    """The largest lag of the last second."""
    waited_s: float
    """How long in all the kernel let its first thread, ready to run, wait for a core."""


@dataclass(slots=True)
class Lag:
    """How late the loop was, over some time, from the histogram's counts: cumulative, by bound."""

    buckets: dict[float, float] = field(default_factory=dict)

    def since(self, before: "Lag") -> "Lag":
        """Return what came after ``before``."""
        past = before.buckets
        return Lag({bound: n - past.get(bound, 0.0) for bound, n in self.buckets.items()})

    def quantile_s(self, part: float) -> float:
        """Return what ``part`` of the looks stay below, straight within a bucket."""
        bounds = sorted(self.buckets)
        total = self.buckets[bounds[-1]] if bounds else 0.0
        low_s, low = 0.0, 0.0
        for bound in bounds:
            count = self.buckets[bound]
            if count >= part * total:
                if count == low or bound == float("inf"):
                    return low_s
                return low_s + (bound - low_s) * (part * total - low) / (count - low)
            low_s, low = bound, count
        return low_s


class Sampler:
    """Looks at one scheduler in a thread of its own until it is stopped."""

    def __init__(self, pid: int, page: Callable[[str], str]) -> None:
        self._pid = pid
        self._page = page
        self.samples: list[Sample] = []
        self.lag = Lag()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="soak-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join(timeout=10)

    def between(self, first_s: float, last_s: float) -> list[Sample]:
        """Return the samples of a time."""
        return [one for one in self.samples if first_s <= one.at_s <= last_s]

    def peak_bytes(self) -> int:
        """Return the most memory that the process ever had."""
        return status_bytes(self._pid, "VmHWM")

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            try:
                self._look()
            except (OSError, ValueError):
                continue  # it has ended, or does not answer yet

    def _look(self) -> None:
        values = metrics(self._page("/metrics"))
        if not values:
            return
        self.lag = Lag(
            {
                float(name.split('"')[1]): value
                for name, value in values.items()
                if name.startswith(_LAG)
            }
        )
        rss_bytes = status_bytes(self._pid, "VmRSS")
        lag_max_s = values.get("quorate_loop_lag_max_seconds", 0.0)
        waited_s = int(Path(f"/proc/{self._pid}/schedstat").read_text().split()[1]) / 1e9
        now_s = time.monotonic()
        self.samples.append(Sample(now_s, rss_bytes, cpu_s(self._pid), lag_max_s, waited_s))


def metrics(text: str) -> dict[str, float]:
    """Return the values of a page of metrics, by name and labels."""
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines if name}


def status_bytes(pid: int, name: str) -> int:
    """Return one of the sizes of a process that the kernel keeps, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"the process {pid} has no {name}")


def growth(samples: Sequence[Sample]) -> float:
    """Return by what part memory grew from the first to the last fifth of the samples."""
    part = len(samples) // 5
    if not part:
        return 0.0
    first = statistics.median(one.rss_bytes for one in samples[:part])
    last = statistics.median(one.rss_bytes for one in samples[-part:])
    return last / first - 1


def own_lag_s(samples: Sequence[Sample]) -> float:
    """Return the largest lag less what the kernel let the scheduler wait in the same second.

    On a busy machine the former tells of others; this is the least that was its own doing.
    """
    first = 0
    worst_s = 0.0
    for number, one in enumerate(samples):
        while first < number and samples[first + 1].at_s <= one.at_s - _LAG_LASTS_S:
            first += 1
        waited_s = one.waited_s - samples[first].waited_s
        worst_s = max(worst_s, one.lag_max_s - waited_s)
    return worst_s


def mib(count: float) -> float:
    """Return bytes in MiB."""
    return count / _MIB
