"""What the cases of ``core_bench`` measure with: CPU time with a limit, turns, memory.

One process computes alone, so CPU time says what the work costs while others share the machine.
Work that takes longer than the limit is cut off: its figure is then "at least so much".
"""

from __future__ import annotations

import ctypes
import gc
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from quorate.core.model import GangKey
from quorate.core.model.changes import Change, PodBound
from quorate.core.model.plan import Plan
from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler

_PAGE_BYTES = 4096
_TURNS_MAX = 1_000_000
_cpu_s = time.thread_time
"""CPU time of the one thread there is: the process's moves in ticks while ITIMER_PROF runs."""


class CutOffError(BaseException):
    """The work took longer than its limit. No ``Exception``: no fence of the core may catch it."""


class Figure(NamedTuple):
    """A measured value, in the unit of its row; ``at_least``: the work was cut off there."""

    value: float
    at_least: bool = False


class Row(NamedTuple):
    """A line of the table; ``budget`` is the largest value that is wanted, if there is one."""

    name: str
    unit: str
    budget: float | None = None


class Case(NamedTuple):
    """``run`` yields a figure for each of the rows, in their order."""

    name: str
    rows: tuple[Row, ...]
    run: Callable[[Stopwatch], Iterator[float | Figure]]
    limit_s: float = 20.0
    """CPU time after which one piece of measured work is cut off, and the case with it."""
    is_ordinary: bool = True
    """Whether its decisions count for the longest of all; others have a budget of their own."""


@dataclass
class Settled:
    """What the core did until nothing was left to do. ``cpu_s`` counts decisions alone."""

    cpu_s: float = 0.0
    whole_s: float = 0.0
    """CPU time with verification, and with hearing of the binds."""
    turns: int = 0
    longest_s: float = 0.0
    touched: set[GangKey] = field(default_factory=set)
    started: set[GangKey] = field(default_factory=set)
    binds: list[tuple[str, str]] = field(default_factory=list)
    """``(uid of the pod, node)``."""
    nominated: int = 0
    """How many pods were promised the room of others."""
    is_over: bool = True
    """Whether there was nothing left to do within the limit."""


class Stopwatch:
    """Measures one case, and keeps its longest decision."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.longest_turn = Figure(0.0)

    def cpu_s(self, work: Callable[[], object]) -> float:
        """Return the CPU seconds of ``work``. Raises CutOffError after ``limit_s``."""
        started_s = _cpu_s()
        with _cut_off_after(self.limit_s):
            work()
        return _cpu_s() - started_s

    def turn(self, scheduler: Scheduler, now_s: float) -> tuple[Plan, float]:
        """Decide once; return the plan and the CPU seconds that it took."""
        plans: list[Plan] = []
        try:
            took_s = self.cpu_s(lambda: plans.append(scheduler.decide(now_s)))
        except CutOffError:
            self.longest_turn = max(self.longest_turn, Figure(self.limit_s, at_least=True))
            raise
        self.longest_turn = max(self.longest_turn, Figure(took_s))
        return plans[0], took_s

    def core(self, policy: Policy | None = None) -> Core:
        """Return a core whose decisions are measured."""
        return Core(self, policy or Policy())


class Core:
    """A scheduler of which every bind succeeds."""

    def __init__(self, stopwatch: Stopwatch, policy: Policy) -> None:
        self.scheduler = Scheduler(policy)
        self._stopwatch = stopwatch

    def observe(self, changes: Iterable[Change]) -> None:
        """Tell the core news."""
        self.scheduler.observe(changes)

    def observe_s(self, changes: Iterable[Change]) -> float:
        """Tell the core news; return the CPU seconds that it took."""
        return self._stopwatch.cpu_s(lambda: self.scheduler.observe(changes))

    def decide(self, now_s: float) -> tuple[Plan, float]:
        """Decide once; return the plan and the CPU seconds that it took."""
        return self._stopwatch.turn(self.scheduler, now_s)

    def place(self, pods: int) -> tuple[Plan, float]:
        """Decide until a whole gang of so many pods is placed, in one turn or in several.

        Returns the plan that has its binds, and the CPU seconds of all these decisions.
        """
        spent_s = 0.0
        for _ in range(_TURNS_MAX):
            plan, took_s = self.decide(0.0)
            spent_s += took_s
            placed = sum(len(gang.binds) for gang in (*plan.gangs, *plan.preparing))
            if placed:
                break
            assert plan.wake_at_s is not None, "the gang fits: something is left to do"
        assert placed == pods
        return plan, spent_s

    def settle(self, now_s: float, limit_s: float | None = None) -> Settled:
        """Decide, verify and tell that the binds succeeded, until nothing is left to do.

        After ``limit_s`` of CPU time no other turn begins. Raises CutOffError where one turn alone
        takes longer than the stopwatch's limit.
        """
        rest = Settled()
        started_s = _cpu_s()
        for _ in range(_TURNS_MAX):
            plan, took_s = self.decide(now_s)
            plan, problems = self.scheduler.verified(plan)
            assert not problems, problems[0]
            gangs = (*plan.gangs, *plan.preparing)
            binds = [(bind.uid, bind.node) for gang in gangs for bind in gang.binds]
            self.scheduler.observe(PodBound(uid, node) for uid, node in binds)
            rest.whole_s = _cpu_s() - started_s
            rest.cpu_s += took_s
            rest.turns += 1
            rest.longest_s = max(rest.longest_s, took_s)
            rest.touched.update(plan.touched)
            rest.started.update(gang.key for gang in gangs)
            rest.binds += binds
            rest.nominated += len(plan.preemptions)
            if not binds and (plan.wake_at_s is None or plan.wake_at_s > now_s):
                return rest
            if limit_s is not None and rest.whole_s > limit_s:
                break
        rest.is_over = False
        return rest


def freeze() -> None:
    """Take what was built out of the garbage collector's rounds, as the shell does."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def rss_mb() -> float:
    """Return the resident memory, in MB, after everything unused was given back."""
    gc.unfreeze()
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES / 1e6


@contextmanager
def _cut_off_after(limit_s: float) -> Iterator[None]:
    """Raise CutOffError in here after ``limit_s`` of CPU time."""

    def cut_off(_signal: int, _frame: object) -> None:
        raise CutOffError

    before = signal.signal(signal.SIGPROF, cut_off)
    # Again each second, should the first one be raised where Python can only ignore it.
    signal.setitimer(signal.ITIMER_PROF, limit_s, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
