"""The runs of a gang: what one controller made, and what the next one made under the same name.

In: members that come and go. Out: how many members have done their work in a run that goes on, and
which runs have to wait for another. Owned by ``GangEntry``. ``Pod.run`` tells runs apart.

Members that succeeded in an earlier life of the gang (``Where.PAST``) count while all that are
there now are of runs with members in an earlier life too. See ADR 14. Two Jobs of one CronJob are
two runs, of which one at a time is the gang. See ADR 30.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from quorate.core.cluster.gangs.pods import EXISTING, PLACED, PodRecord, Where
from quorate.core.cluster.gangs.tasks import task_of
from quorate.core.model import Owner

CronJobOf = Callable[[Owner], str | None]
"""The name of the CronJob that made a Job, "" for none; None: that is unknown."""

K = TypeVar("K")
_CURRENT = EXISTING | {Where.GATED, Where.INVALID}


class Runs:
    """Counts of the members of one gang by run; those without a controller are of the run ""."""

    __slots__ = ("_current", "_jobs", "_next", "_past", "_placed", "_succeeded", "first", "owners")

    def __init__(self) -> None:
        self.owners: Counter[Owner | None] = Counter()
        """Who makes the members, wherever these are."""
        self.first: tuple[Owner, int] | None = None
        """Who makes so many members before one more is made; see ``comes_last``."""
        self._current: Counter[str] = Counter()
        self._placed: Counter[str] = Counter()
        self._next: Counter[str] = Counter()
        self._past: Counter[str] = Counter()
        self._succeeded: dict[str, Counter[str]] = {}
        """By run, the past members that succeeded, by task."""
        self._jobs: Counter[tuple[str, Owner]] = Counter()
        """The runs that are Jobs, by members in this life or waiting for it. A pod may say any uid
        of its controller, so that a run may be of several Jobs, and of others too."""

    def count(self, entry: PodRecord[Any], times: int) -> None:
        """Add ``times`` such members (negative: fewer)."""
        run = entry.pod.run
        _add(self.owners, entry.pod.owner, times)
        if entry.where in _CURRENT:
            _add(self._current, run, times)
            if entry.where in PLACED and not entry.adopted:
                _add(self._placed, run, times)
            self._add_job(entry, times)
        elif entry.where is Where.NEXT_RUN:
            _add(self._next, run, times)
            self._add_job(entry, times)
        elif entry.where is Where.PAST and run:
            _add(self._past, run, times)
            if _has_succeeded(entry):
                of_run = self._succeeded.setdefault(run, Counter())
                _add(of_run, task_of(entry.pod), times)
                if not of_run:
                    del self._succeeded[run]

    def take_waiting(self, entries: Iterable[PodRecord[Any]]) -> None:
        """Count waiting members as placed."""
        self._placed.update(entry.pod.run for entry in entries)

    @property
    def counts(self) -> tuple[object, ...]:
        """All counts, to compare them with those of a recount."""
        in_life = self._current, self._placed, self._next, self._jobs
        return *in_life, self._past, self._succeeded, self.owners

    # What comes last

    def note_first(self, owner: Owner, first: int | None) -> None:
        """Note how many members an owner makes before one more is made, if it does so."""
        if first:
            self.first = owner, first
        elif self.first is not None and self.first[0] == owner:
            self.first = None

    def comes_last(self, least: int) -> int:
        """Return how many of min are made only when all others are ready: 1 until it is, else 0.

        Those that it waits for must not wait for it. It has another owner: an MPIJob's workers are
        its own pods, its launcher is a Job's.
        """
        if self.first is None or self.owners.keys() != {self.first[0]}:
            return 0
        return 1 if least > self.first[1] else 0

    # What is done

    @property
    def done_by_task(self) -> Counter[str]:
        """How many members of each task have done their work."""
        runs = self._going_on()
        return sum((self._succeeded.get(run, Counter()) for run in runs), Counter[str]())

    @property
    def done(self) -> int:
        """How many members have done their work."""
        return self.done_by_task.total() if self._succeeded else 0

    @property
    def may_go_on(self) -> bool:
        """Whether past members have succeeded in a run that goes on, or may: no other is here."""
        runs = self._going_on() if self._current else self._past
        return any(run in self._succeeded for run in runs)

    def has_done(self, entry: PodRecord[Any]) -> bool:
        """Whether a member has done its work."""
        is_past = entry.where is Where.PAST and _has_succeeded(entry)
        return is_past and entry.pod.run in self._going_on()

    def _going_on(self) -> Collection[str]:
        """Return the runs that go on."""
        return self._current if self._current.keys() <= self._past.keys() else ()

    # What has to wait

    @property
    def jobs(self) -> Collection[Owner]:
        """The Jobs whose members are here, if they are several: they may be runs of one CronJob."""
        return [job for _, job in self._jobs] if len(self._jobs) > 1 else ()

    @property
    def order(self) -> tuple[set[Owner], set[Owner]]:
        """The Jobs whose members wait for another run, and the others that have members here."""
        waits = {job for run, job in self._jobs if run in self._next}
        return waits, {job for _, job in self._jobs} - waits

    def to_hold(self, cron_job_of: CronJobOf, min_count: int) -> set[str]:
        """Return the runs whose members have to wait until another run has ended.

        Of the Jobs of a CronJob those go on that have members with nodes; if none has, the first
        that has ``min_count`` members, or else the first. A Job of which nothing is known yet may
        be of the CronJob of any other: it waits for all, and all wait for it once it has nodes.
        """
        if len(self._jobs) < 2:
            return set()
        series: dict[str | None, list[str]] = {}
        for run, job in self._jobs:
            series.setdefault(cron_job_of(job), []).append(run)
        series.pop("", None)
        unknown = series.get(None, ())
        may_be_ahead = {run for run in unknown if self._placed[run]}
        held: set[str] = set()
        for runs in series.values():
            ahead = {run for run in runs if self._placed[run]} | may_be_ahead
            held.update(run for run in runs if run not in (ahead or {self._first(runs, min_count)}))
        if len(series) > 1:
            held.update(run for run in unknown if run not in may_be_ahead)
        return held

    def holds(self, runs: set[str]) -> bool:
        """Whether the members that wait for another run are those of these runs, and no others."""
        return self._next.keys() <= runs and runs.isdisjoint(self._current)

    def _first(self, runs: Collection[str], min_count: int) -> str:
        return min(runs, key=lambda run: self._current[run] + self._next[run] < min_count)

    def _add_job(self, entry: PodRecord[Any], times: int) -> None:
        """Count members of this life by the Job that made them, if one did."""
        owner = entry.pod.owner
        if owner is not None and owner.kind == "Job":
            _add(self._jobs, (entry.pod.run, owner), times)


class _NoRuns(Runs):
    """Of pods without a gang, which have none: one for all of them."""

    __slots__ = ()

    def count(self, entry: PodRecord[Any], times: int) -> None:
        """Count nothing."""

    def take_waiting(self, entries: Iterable[PodRecord[Any]]) -> None:
        """Count nothing."""

    def note_first(self, owner: Owner, first: int | None) -> None:
        """Note nothing."""


NO_RUNS = _NoRuns()


def _has_succeeded(entry: PodRecord[Any]) -> bool:
    return entry.pod.phase == "Succeeded" and not entry.adopted


def _add(counter: Counter[K], key: K, times: int) -> None:
    counter[key] += times
    if not counter[key]:
        del counter[key]
