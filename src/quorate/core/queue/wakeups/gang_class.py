"""Makes a gang's class: all that decides whether it fits, as a value. Called by ``waking``."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.gangs.tasks import TaskMinima
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.queue.wakeups.buckets import GangClass

Waiting = Mapping[PodClass, int]
"""How many members of each class wait."""


def gang_class_of(
    gang: GangEntry,
    waiting: Waiting,
    need: int,
    task_minima: TaskMinima,
    cluster: Cluster,
    level: int | None,
    *,
    is_alone: bool = False,
) -> GangClass:
    """Return the class of a gang with these waiting members; the rest as in ``GangClass``.

    ``is_alone`` says that no other gang can be like it now: this turn has promised it room, or it
    avoids nodes.
    """
    asks_in_sum = gang.spec is not None and gang.spec.min_resources and not gang.started
    is_alone = (
        is_alone or bool(gang.memory.avoid_if_possible) or _has_room_of_its_own(gang, cluster)
    )
    if asks_in_sum and gang.bound + gang.assumed + gang.runs.done:
        is_alone = True  # the resources of its own members count toward minResources
    return GangClass(
        classes=tuple(sorted(waiting.items(), key=lambda one: one[0].id)),
        need=need,
        priority=gang.priority,
        level=level,
        task_minima=task_minima if need else (),
        gate=gang.spec.min_resources if asks_in_sum and gang.spec is not None else (),
        alone=gang.key if is_alone else None,
    )


def class_of_its_own(gang: GangEntry) -> GangClass:
    """Return the gang class of a gang that only changes of its own objects can help."""
    return GangClass((), 0, gang.priority, alone=gang.key)


def _has_room_of_its_own(gang: GangEntry, cluster: Cluster) -> bool:
    if cluster.reservations and cluster.reservations.of(gang.key):
        return True
    nominated = cluster.precedence.nominated
    if nominated and gang.key.is_single:
        return any(entry.nominated for entry in gang.members.values())
    return bool(nominated) and nominated.has(gang)
