"""Quorums with a minimum for each task (Volcano's ``minTaskMember``).

In: a gang, its waiting members by class, where a plan would put them. Out: how many of them count
towards the quorum, and in which order their binds are sent. Called by ``place.gang`` and
``turn.cycle``. Classes are split by task before (``PodClass.task``), so that counts by class tell
all. The minima are part of the quorum: they sum up to no more than it needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PLACED, GangEntry
from quorate.core.cluster.gangs.tasks import lacking, task_of
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model.plan import Bind

Least = tuple[tuple[int, int], ...]
"""Tasks by their numbers, and how many more members each needs at once."""


def numbers_of(gang: GangEntry) -> dict[str, int]:
    """Return the tasks that a quorum still has to look at, from 1 on; nothing once it has started.

    Numbers, not names, so that no user's text makes a class of pods.
    """
    if gang.spec is None or gang.started:
        return {}
    return {task: number for number, (task, _) in enumerate(gang.spec.min_by_task, start=1)}


def least_of(gang: GangEntry) -> Least:
    """Return how many more members of each task have to be placed at once."""
    if gang.started:
        return ()
    missing = lacking(gang.spec, gang.members.values(), PLACED)
    return tuple((n, missing[task]) for task, n in numbers_of(gang).items() if task in missing)


def needed(least: Least) -> int:
    """Return how many pods the minima ask for in all."""
    return sum(count for _, count in least)


def towards_quorum(placed: Iterable[tuple[PodClass, int]], need: int, least: Least) -> int:
    """Return how many of the placed pods count towards a quorum of ``need`` more.

    Without minima all do. Else those of one task do not stand in for those of another: it is
    ``need`` if and only if there are enough of all and of each task.
    """
    if not least:
        return sum(count for _, count in placed)
    by_task: Counter[int] = Counter()
    for pod_class, count in placed:
        by_task[pod_class.task] += count
    of_tasks = sum(min(by_task[task], count) for task, count in least)
    return of_tasks + min(by_task.total() - of_tasks, need - needed(least))


def quorum_first(
    binds: tuple[Bind, ...], least: Least, gang: GangEntry, cluster: Cluster
) -> tuple[Bind, ...]:
    """Put the binds that the tasks need before the others.

    All but one of a quorum's binds are sent before the last, and that one must make it whole.
    """
    if not least:
        return binds
    numbers, left = numbers_of(gang), dict(least)
    first: list[Bind] = []
    others: list[Bind] = []
    for bind in binds:
        number = numbers.get(task_of(cluster.pods[bind.uid].pod), 0)
        is_needed = left.get(number, 0) > 0
        left[number] = left.get(number, 0) - 1
        (first if is_needed else others).append(bind)
    return (*first, *others)
