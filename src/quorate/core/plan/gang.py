"""Place one whole gang. In: what it demands and the room. Out: a placement, or how many would fit.

Called by ``plan.cycle`` once for each gang, in queue order. Pods of one class are placed together;
a gang of several classes is tried largest first, then in other orders, then by a bounded search:
that greedy order fails does not mean that the gang does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations

import numpy as np

from quorate.core.plan.fill import Packing, fill
from quorate.core.plan.room import Room
from quorate.core.plan.search import search
from quorate.core.state.encoding import Ints, PodClass

_ORDERS_MAX = 24
_COUNTS_MAX = 64


@dataclass(frozen=True, slots=True)
class Demand:
    """Pods that wait, as ``(class, count)``; at least ``need`` of them must be placed, or none."""

    classes: tuple[tuple[PodClass, int], ...]
    need: int

    @property
    def pods(self) -> int:
        """How many pods wait."""
        return sum(count for _, count in self.classes)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where pods go: for each class int64[n], how many of it each node gets."""

    pods: tuple[tuple[PodClass, Ints], ...]
    room: Room
    """The room that is left after it."""

    @property
    def placed(self) -> int:
        """How many pods have a node."""
        return sum(int(pods.sum()) for _, pods in self.pods)


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """No placement was found. ``exhausted`` means that the search ended before it was complete."""

    fit: int
    exhausted: bool = False


def place_gang(
    demand: Demand, room: Room, packing: Packing, steps_max: int
) -> Placement | DoesNotFit:
    """Place at least ``demand.need`` pods, and as many more as fit. Changes nothing.

    ``steps_max`` bounds the search for a joint placement of several classes.
    """
    best = _greedy(demand.classes, room, packing)
    if best.placed >= max(demand.need, 1):
        return best
    if len(demand.classes) == 1 or _lacks_slots(demand, room):
        return DoesNotFit(best.placed)
    for order in _orders(demand):
        for other_packing in ("most-allocated", "least-allocated"):
            tried = _greedy(order, room, other_packing)
            if tried.placed >= demand.need:
                return tried
            best = max(best, tried, key=lambda placement: placement.placed)
    exhausted = False
    for counts in islice(_enough(demand), _COUNTS_MAX):
        found = search(counts, room, steps_max)
        if found.pods is not None:
            return _with_extras(demand, found.pods, room, packing)
        exhausted |= found.exhausted
    return DoesNotFit(best.placed, exhausted)


def _greedy(classes: tuple[tuple[PodClass, int], ...], room: Room, packing: Packing) -> Placement:
    """Place class after class, the largest first; what does not fit is left out."""
    after = room.copy()
    pods = []
    for pod_class, count in _largest_first(classes, room):
        placed = fill(pod_class, count, after.slots(pod_class), after, packing)
        after.take(pod_class, placed)
        pods.append((pod_class, placed))
    return Placement(tuple(pods), after)


def _largest_first(
    classes: tuple[tuple[PodClass, int], ...], room: Room
) -> list[tuple[PodClass, int]]:
    """Order classes by dominant share: the largest part of the cluster that one pod takes.

    Equal shares keep the order given, so that callers can ask for another order.
    """
    if len(classes) == 1:
        return list(classes)
    total = np.maximum(room.snapshot.allocatable.max(axis=0, initial=1), 1)
    return sorted(
        classes,
        key=lambda item: -max(amount / int(total[column]) for column, amount in item[0].demands),
    )


def _lacks_slots(demand: Demand, room: Room) -> bool:
    """Whether even alone, class by class, fewer than ``need`` pods have a slot."""
    alone = sum(min(count, int(room.slots(c).sum())) for c, count in demand.classes)
    return alone < demand.need


def _orders(demand: Demand) -> Iterator[tuple[tuple[PodClass, int], ...]]:
    return islice(permutations(demand.classes), _ORDERS_MAX)


def _enough(demand: Demand) -> Iterator[tuple[tuple[PodClass, int], ...]]:
    """Yield ways to choose exactly ``need`` pods; many of the smaller classes come first."""
    classes = sorted(demand.classes, key=lambda item: sum(a for _, a in item[0].demands))

    def choose(index: int, left: int) -> Iterator[tuple[tuple[PodClass, int], ...]]:
        if index == len(classes):
            if left == 0:
                yield ()
            return
        pod_class, count = classes[index]
        for taken in range(min(count, left), -1, -1):
            for rest in choose(index + 1, left - taken):
                yield ((pod_class, taken), *rest)

    return choose(0, demand.need)


def _with_extras(demand: Demand, found: dict[int, Ints], room: Room, packing: Packing) -> Placement:
    """Turn a found quorum into a placement, and add as many of the other pods as fit."""
    after = room.copy()
    for pod_class, _ in demand.classes:
        after.take(pod_class, found[pod_class.id])
    pods = []
    for pod_class, count in demand.classes:
        quorum = found[pod_class.id]
        extra = fill(pod_class, count - int(quorum.sum()), after.slots(pod_class), after, packing)
        after.take(pod_class, extra)
        pods.append((pod_class, quorum + extra))
    return Placement(tuple(pods), after)
