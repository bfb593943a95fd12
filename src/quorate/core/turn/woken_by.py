"""Which changes may help a gang that was tried in vain, besides more room on its nodes.

In: a pod class and the room. Out: interests (names of what its rules read on other nodes), news by
the same names, and whether there may be room. Called by ``waking``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.gangs.tasks import TaskMinima
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import policy
from quorate.core.model.profile import Packing
from quorate.core.place.min_resources import EVERY_NODE, Nodes
from quorate.core.place.packing.domains import fixed_slots
from quorate.core.place.packing.pack import is_exact, pack
from quorate.core.queue.wakeups.buckets import GangClass, short_of
from quorate.core.room.room import Room
from quorate.core.rules.interests import DEVICES, TAINTS, UNKNOWN, Interest, label, selector
from quorate.core.rules.table import FILTERS


def interests_of(pod_class: PodClass, room: Room) -> set[Interest]:
    """Return what the rules of a class read on other nodes than the one being filtered."""
    found: set[Interest] = set()
    for rule in FILTERS:
        if rule.interests is not None:
            found |= rule.interests(pod_class, room)
    return found


def looks_further(pod_class: PodClass, room: Room) -> bool:
    """Whether a rule for the class reads more than a node's room and attributes."""
    is_concerned = any(rule.concerns is not None and rule.concerns(pod_class) for rule in FILTERS)
    return is_concerned or bool(interests_of(pod_class, room))


def may_fit(
    classes: Sequence[tuple[PodClass, int]], need: int, room: Room, packing: Packing
) -> bool:
    """Whether there may be room for ``need`` of these pods (0: for any one), by all rules.

    For pods of one class the answer is exact where that needs no search. For several classes, rules
    are left out that placing other pods among them may relax. Claims are not summed up: if one pod
    with claims has room, all may have.
    """
    movers = [pod_class for pod_class, _ in classes]
    counts = [count for _, count in classes]
    slots = []
    for pod_class, count in classes:
        if pod_class.volume_needs is not None or pod_class.device_needs is not None:
            slots.append(count if fixed_slots(pod_class, room, movers).any() else 0)
        else:
            slots.append(int(fixed_slots(pod_class, room, movers).sum()))
    if short_of(counts, need, slots):
        return False
    pod_class, count = classes[0]
    if len(classes) > 1 or not is_exact(pod_class, room):
        return True
    return int(pack(pod_class, count, room.copy(), packing).sum()) >= max(need, 1)


def news_of(
    labels: Iterable[str], changed_selectors: Collection[int], *, taints: bool, devices: bool
) -> list[Interest]:
    """Return news as interests: keys of labels, numbers of selectors, taints, devices."""
    found = [*map(label, sorted(labels)), *map(selector, sorted(changed_selectors))]
    found += [TAINTS] if taints else []
    found += [DEVICES] if devices else []
    found += [UNKNOWN] if changed_selectors else []
    return found


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


class SumPlaces:
    """Places of sums. A place that nobody watches is given to another sum."""

    __slots__ = ("_places", "_sums")

    def __init__(self) -> None:
        self._sums: list[tuple[Nodes, int]] = []
        self._places: dict[tuple[object, int], int] = {}

    def place_of(self, nodes: Nodes, column: int, watched: Callable[[], Collection[int]]) -> int:
        """Return the place of a sum; ``watched`` returns the places that somebody watches.

        Beyond ``policy.SUM_PLACES_MAX`` it is that of every node: its watcher is woken too often.
        """
        found = self._places.get((nodes.name, column))
        if found is not None:
            return found
        if len(self._sums) < policy.SUM_PLACES_MAX or nodes is EVERY_NODE:
            self._sums.append((nodes, column))
            return self._named(len(self._sums) - 1)
        unwatched = set(range(len(self._sums))).difference(watched())
        if not unwatched:
            return self.place_of(EVERY_NODE, column, watched)
        place = min(unwatched)
        before, of = self._sums[place]
        del self._places[before.name, of]
        self._sums[place] = nodes, column
        return self._named(place)

    def _named(self, place: int) -> int:
        nodes, column = self._sums[place]
        self._places[nodes.name, column] = place
        return place

    def numbers(self, room: Room, watched: Collection[int], grown: Collection[int]) -> Ints:
        """Return int64[places]: the sums in this room.

        They are 0 where nobody watches, and where none of the ``grown`` rows is among the nodes:
        what was too little is so still.
        """
        found, rows = np.zeros(len(self._sums), np.int64), sorted(grown)
        for place in watched:
            nodes, column = self._sums[place]
            if nodes.mask(room)[rows].any():
                found[place] = min(nodes.in_sum(room)[column], 2.0**62)
        return found
