"""Tasks of a gang: how many more members each of them needs, by ``GangSpec.min_by_task``.

In: a gang's spec and its members. Out: counts by task. Called by ``cluster.gangs.gangs`` for the
quorum, by ``queue.gate`` and by ``place.tasks``. A gang without such minima costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from quorate.core.model import Pod

TaskMinima = tuple[tuple[int, int], ...]
"""Pairs of a task's number and how many more of its members must be placed at once."""


class Minima(Protocol):
    """The source of tasks' minima: a gang's object, or an attempt with those at its plan."""

    @property
    def min_by_task(self) -> tuple[tuple[str, int], ...]:
        """Return tasks with their minima."""


class Member(Protocol):
    """What is read of a member."""

    pod: Pod

    @property
    def is_leaving(self) -> bool:
        """Return whether it has a node and is being deleted or evicted."""

    @property
    def where(self) -> int:
        """Return its place, a ``Where``."""


def task_of(pod: Pod) -> str:
    """Return the name of a pod's task; empty when it has none."""
    return pod.membership.task if pod.membership is not None else ""


def missing_tasks(spec: Minima, has: Mapping[str, int]) -> dict[str, int]:
    """Return how many more members each task needs; a task that has enough is left out."""
    return {
        task: least - has.get(task, 0)
        for task, least in spec.min_by_task
        if has.get(task, 0) < least
    }


def lacking(
    spec: Minima | None,
    members: Iterable[Member],
    places: Collection[int],
    but: Collection[str] = (),
    done: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, int]:
    """Return how many more members each task needs if those in ``places`` are all that count.

    Members that are being deleted or evicted do not count, nor do those whose uids are in ``but``.
    ``done`` is how many members of each task have done their work.
    """
    if spec is None or not spec.min_by_task:
        return {}
    counted = (
        task_of(one.pod)
        for one in members
        if one.where in places and not one.is_leaving and one.pod.uid not in but
    )
    return missing_tasks(spec, Counter(counted) + Counter(done))
