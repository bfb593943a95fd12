"""How many members of a gang have done their work in a run that goes on: they count towards min.

In: members that come and go. Out: how many have succeeded, in all and by task. Owned by
``GangEntry``. ``Pod.run`` tells a run from the next one of the same name. Members that succeeded in
an earlier life of the gang (``Where.PAST``) count while all that are there now are of runs with
members in an earlier life too. See ADR 14.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from quorate.core.cluster.gangs.pods import EXISTING, PodRecord, Where
from quorate.core.cluster.gangs.tasks import task_of

_CURRENT = EXISTING | {Where.GATED, Where.INVALID}


class Runs:
    """Counts of the members of one gang by run; those without a controller are of the run ""."""

    __slots__ = ("_current", "_past", "_succeeded")

    def __init__(self) -> None:
        self._current: Counter[str] = Counter()
        self._past: Counter[str] = Counter()
        self._succeeded: dict[str, Counter[str]] = {}
        """By run, the past members that succeeded, by task."""

    def count(self, entry: PodRecord[Any], times: int) -> None:
        """Add ``times`` such members (negative: fewer)."""
        run = entry.pod.run
        if entry.where in _CURRENT:
            _add(self._current, run, times)
        elif entry.where is Where.PAST and run:
            _add(self._past, run, times)
            if _has_succeeded(entry):
                of_run = self._succeeded.setdefault(run, Counter())
                _add(of_run, task_of(entry.pod), times)
                if not of_run:
                    del self._succeeded[run]

    @property
    def counts(self) -> tuple[object, ...]:
        """All counts, to compare them with those of a recount."""
        return self._current, self._past, self._succeeded

    @property
    def done_by_task(self) -> Counter[str]:
        """How many members of each task have done their work."""
        runs = self._going_on()
        return sum((self._succeeded.get(run, Counter()) for run in runs), Counter[str]())

    @property
    def done(self) -> int:
        """How many members have done their work."""
        return self.done_by_task.total() if self._succeeded else 0

    def has_done(self, entry: PodRecord[Any]) -> bool:
        """Whether a member has done its work."""
        is_past = entry.where is Where.PAST and _has_succeeded(entry)
        return is_past and entry.pod.run in self._going_on()

    def _going_on(self) -> Collection[str]:
        """Return the runs that go on."""
        return self._current if self._current.keys() <= self._past.keys() else ()


def _has_succeeded(entry: PodRecord[Any]) -> bool:
    return entry.pod.phase == "Succeeded" and not entry.adopted


def _add(counter: Counter[str], key: str, times: int) -> None:
    counter[key] += times
    if not counter[key]:
        del counter[key]
