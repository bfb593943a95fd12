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

from quorate.core.plan import pack
from quorate.core.plan.fill import Packing
from quorate.core.plan.room import Room
from quorate.core.plan.search import search
from quorate.core.state.arrays import Ints
from quorate.core.state.encoding import PodClass
from quorate.core.state.neighbours import uses_selectors

_ORDERS_MAX = 24
_FILLS_MAX = 96
_COUNTS_MAX = 64
_SEARCHED_PODS_MAX = 200
"""Beyond this size only the greedy orders are tried."""


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
    classes = _largest_first(demand.classes, room)
    best = _greedy(classes, room, packing)
    if best.placed >= max(demand.need, 1):
        return best
    is_coupled = _is_coupled(demand, room)
    is_exact = len(classes) == 1 and pack.is_exact(classes[0][0], room)
    if is_exact or demand.need <= 1 or (not is_coupled and _lacks_slots(demand, room)):
        return DoesNotFit(best.placed)
    is_searched = demand.need <= _SEARCHED_PODS_MAX and not any(
        pod_class.wants is not None or pod_class.ask is not None for pod_class, _ in demand.classes
    )
    for order in _orders(classes, room) if not (is_coupled and is_searched) else ():
        for other_packing in ("most-allocated", "least-allocated"):
            tried = _greedy(order, room, other_packing)
            if tried.placed >= demand.need:
                return tried
            best = max(best, tried, key=lambda placement: placement.placed)
    if not is_searched:
        return DoesNotFit(best.placed, exhausted=True)
    for counts in islice(_enough(demand), _COUNTS_MAX):
        found = search(counts, room, steps_max)
        if found.pods is not None:
            return _with_extras(demand, found.pods, room, packing)
        steps_max -= found.steps
        if steps_max <= 0:
            return DoesNotFit(best.placed, exhausted=True)
    is_more = next(islice(_enough(demand), _COUNTS_MAX, None), None) is not None
    return DoesNotFit(best.placed, exhausted=is_more)


def _greedy(classes: tuple[tuple[PodClass, int], ...], room: Room, packing: Packing) -> Placement:
    """Place class after class, in this order; what does not fit is left out."""
    after = room.copy()
    pods = []
    for pod_class, count in classes:
        pods.append((pod_class, pack.pack(pod_class, count, after, packing)))
    return Placement(tuple(pods), after)


def _is_coupled(demand: Demand, room: Room) -> bool:
    """Whether where one member goes decides where another may."""
    return any(
        pod_class.matched
        or uses_selectors(pod_class.shape)
        or _has_volumes(pod_class)
        or pod_class.ask is not None
        for pod_class, _ in demand.classes
    ) and (len(demand.classes) > 1 or pack.constrain_one_another(demand.classes[0][0], room))


def _has_volumes(pod_class: PodClass) -> bool:
    """Whether claims of its pods decide on nodes: what one gets, another does not."""
    return pod_class.wants is not None and bool(pod_class.wants.unbound or pod_class.wants.shared)


def _largest_first(
    classes: tuple[tuple[PodClass, int], ...], room: Room
) -> tuple[tuple[PodClass, int], ...]:
    """Order classes by dominant share: the largest part of the cluster that one pod takes."""
    if len(classes) == 1:
        return classes
    total = np.maximum(room.snapshot.allocatable.max(axis=0, initial=1), 1)

    def share(item: tuple[PodClass, int]) -> float:
        return max(amount / int(total[column]) for column, amount in item[0].demands)

    return tuple(sorted(classes, key=share, reverse=True))


def _lacks_slots(demand: Demand, room: Room) -> bool:
    """Whether even alone, class by class, fewer than ``need`` pods have a slot."""
    alone = sum(min(count, int(room.slots(c).sum())) for c, count in demand.classes)
    return alone < demand.need


def _orders(
    classes: tuple[tuple[PodClass, int], ...], room: Room
) -> Iterator[tuple[tuple[PodClass, int], ...]]:
    """Yield orders to try: the classes with the fewest slots to spare first, then any."""
    spare = {pod_class.id: int(room.slots(pod_class).sum()) - n for pod_class, n in classes}
    yield tuple(sorted(classes, key=lambda item: spare[item[0].id]))
    yield from islice(permutations(classes), min(_ORDERS_MAX, _FILLS_MAX // len(classes)))


def _enough(demand: Demand) -> Iterator[tuple[tuple[PodClass, int], ...]]:
    """Yield ways to choose exactly ``need`` pods; many of the smaller classes come first."""
    classes = sorted(demand.classes, key=lambda item: sum(a for _, a in item[0].demands))
    pods_after = [sum(n for _, n in classes[index + 1 :]) for index in range(len(classes))]

    def choose(index: int, left: int) -> Iterator[tuple[tuple[PodClass, int], ...]]:
        if left == 0:
            yield ()
            return
        pod_class, count = classes[index]
        for taken in range(min(count, left), max(0, left - pods_after[index]) - 1, -1):
            chosen = ((pod_class, taken),) if taken else ()
            for rest in choose(index + 1, left - taken):
                yield (*chosen, *rest)

    return choose(0, demand.need)


def _with_extras(demand: Demand, found: dict[int, Ints], room: Room, packing: Packing) -> Placement:
    """Turn a found quorum into a placement, and add as many of the other pods as fit."""
    after = room.copy()
    for pod_class, _ in demand.classes:
        if pod_class.id in found:
            after.take(pod_class, found[pod_class.id])
    nobody = np.zeros(len(room.free), np.int64)
    pods = []
    for pod_class, count in demand.classes:
        quorum = found.get(pod_class.id, nobody)
        extra = pack.pack(pod_class, count - int(quorum.sum()), after, packing)
        pods.append((pod_class, quorum + extra))
    return Placement(tuple(pods), after)
