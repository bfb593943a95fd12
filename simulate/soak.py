"""Many seeds in several processes, and a summary.

In: how many seeds, and the first. Out: a line for each violation with the command that replays it,
and the summary last.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from quorate.shell.process.clock import SystemClock
from simulate import logs
from simulate.run import Outcome, run

_CHUNK = 8
_PROCESSES_MAX = 16
_GC_THRESHOLDS = (50_000, 20, 20)


class Summary(msgspec.Struct, kw_only=True):
    """What a soak came to."""

    seeds: int = 0
    steps: int = 0
    virtual_s: float = 0.0
    replicas: int = 0
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    checks: Counter[str] = msgspec.field(default_factory=Counter)
    themes: Counter[str] = msgspec.field(default_factory=Counter)
    met: Counter[str] = msgspec.field(default_factory=Counter)
    failed: list[Outcome] = msgspec.field(default_factory=list)
    took_s: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count one run."""
        self.seeds += 1
        self.steps += outcome.steps
        self.virtual_s += outcome.virtual_s
        self.replicas += outcome.replicas
        self.faults.update(outcome.faults)
        self.checks.update(outcome.checks)
        self.themes.update(outcome.themes)
        self.met.update(outcome.met)
        if outcome.violations:
            self.failed.append(outcome)

    @property
    def line(self) -> str:
        """Return the summary in one line."""
        pace = f"{self.seeds / self.took_s:.0f} seeds/s" if self.took_s else ""
        violations = sum(len(outcome.violations) for outcome in self.failed)
        return (
            f"{self.seeds} seeds, {self.steps} steps, {self.virtual_s / 3600:.1f} virtual hours, "
            f"{sum(self.faults.values())} faults, {self.replicas} replicas ended, "
            f"{sum(self.checks.values())} checks, {violations} violations"
            f" in {len(self.failed)} seeds ({self.took_s:.0f} s, {pace})"
        )


def soak(
    count: int,
    first_seed: int,
    *,
    processes: int = 0,
    with_themes: bool = True,
    on_failure: Callable[[Outcome], None],
) -> Summary:
    """Run ``count`` seeds from ``first_seed`` on; ``processes`` 0 is one for each core.

    Each seed draws themes, unless ``with_themes`` is false.
    """
    clock = SystemClock()
    summary, started_s = Summary(), clock.monotonic_s()
    processes = processes or min(os.cpu_count() or 1, _PROCESSES_MAX)
    seeds = range(first_seed, first_seed + count)
    play = run if with_themes else _run_without_themes
    for outcome in _outcomes(play, seeds, min(processes, max(1, count // _CHUNK))):
        summary.add(outcome)
        if outcome.violations:
            on_failure(outcome)
    summary.took_s = clock.monotonic_s() - started_s
    return summary


def _run_without_themes(seed: int) -> Outcome:
    return run(seed, themes=())


def _outcomes(play: Callable[[int], Outcome], seeds: range, processes: int) -> Iterator[Outcome]:
    if processes == 1:
        prepare()
        yield from map(play, seeds)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, initializer=prepare) as pool:
        yield from pool.imap(play, seeds, chunksize=_CHUNK)


def prepare() -> None:
    """Prepare this process for many runs: exclude what is made once from garbage collection."""
    logs.set_up(traced=False)
    run(0)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
