"""Quorums with a minimum for each task (Volcano's ``minTaskMember``).

In: a gang, its waiting members by class, their places in a plan. Out: how many of them count
towards the quorum, and in which order their binds are sent. Called by ``place.gang`` and
``turn.cycle``. Each class has one task (``PodClass.task``), so counts by class give counts by
task. The minima are part of the quorum: their sum is at most its size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PLACED, GangEntry
from quorate.core.cluster.gangs.tasks import TaskMinima, task_of
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model.plan import Bind


def numbers_of(gang: GangEntry) -> dict[str, int]:
    """Return the tasks with a minimum, numbered from 1; empty once the gang has started.

    Classes use numbers, not names, so that a user's text cannot create classes of pods.
    """
    if gang.spec is None or gang.started:
        return {}
    return {task: number for number, (task, _) in enumerate(gang.spec.min_by_task, start=1)}


def task_minima_of(gang: GangEntry) -> TaskMinima:
    """Return, by task number, how many more of its members must be placed at once."""
    if gang.started:
        return ()
    missing = gang.lacking(PLACED)
    return tuple((n, missing[task]) for task, n in numbers_of(gang).items() if task in missing)


def needed(task_minima: TaskMinima) -> int:
    """Return the sum of the minima, in pods."""
    return sum(count for _, count in task_minima)


def towards_quorum(
    placed: Iterable[tuple[PodClass, int]], need: int, task_minima: TaskMinima
) -> int:
    """Return how many of the placed pods count towards a quorum of ``need`` more.

    Without minima, all of them count. With minima, pods of one task cannot stand in for another
    task: the result is ``need`` only if there are enough in all and of each task.
    """
    if not task_minima:
        return sum(count for _, count in placed)
    by_task: Counter[int] = Counter()
    for pod_class, count in placed:
        by_task[pod_class.task] += count
    of_tasks = sum(min(by_task[task], count) for task, count in task_minima)
    return of_tasks + min(by_task.total() - of_tasks, need - needed(task_minima))


def quorum_first(
    binds: tuple[Bind, ...], task_minima: TaskMinima, gang: GangEntry, cluster: Cluster
) -> tuple[Bind, ...]:
    """Put the binds that the tasks need before the others.

    The last of a quorum's binds is sent after all others, and it must complete the quorum.
    """
    if not task_minima:
        return binds
    numbers, left = numbers_of(gang), dict(task_minima)
    first: list[Bind] = []
    others: list[Bind] = []
    for bind in binds:
        number = numbers.get(task_of(cluster.pods[bind.uid].pod), 0)
        is_needed = left.get(number, 0) > 0
        left[number] = left.get(number, 0) - 1
        (first if is_needed else others).append(bind)
    return (*first, *others)
