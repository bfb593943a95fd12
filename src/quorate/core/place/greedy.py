"""Greedy orders of a gang's classes: each class is packed in turn; what does not fit is skipped.

In: what a gang demands and the room. Out: a placement of some or all of it. Called by
``place.gang`` before the joint search and after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, permutations, product

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.gangs.tasks import TaskMinima
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import policy
from quorate.core.model.profile import Packing
from quorate.core.model.steps import OutOfStepsError, Steps
from quorate.core.place.packing import pack
from quorate.core.place.search.joint import JointSearch
from quorate.core.place.tasks import needed, towards_quorum
from quorate.core.room.room import Room
from quorate.core.rules.filtering import pod_slots


@dataclass(frozen=True, slots=True)
class Demand:
    """Waiting pods, as ``(class, count)``; at least ``need`` of them must be placed, or none.

    ``task_minima`` has the minimum of each task among the placed pods; the sum is at most ``need``.
    """

    classes: tuple[tuple[PodClass, int], ...]
    need: int
    task_minima: TaskMinima = ()

    @property
    def pods(self) -> int:
        """The number of waiting pods."""
        return sum(count for _, count in self.classes)

    @property
    def wanted(self) -> int:
        """The number of pods that one plan places if there is room.

        Where the tasks' minima make up the whole quorum, other pods wait until the gang has
        started: no bind of theirs may stand in for a pod that a task needs.
        """
        return (
            self.need if self.task_minima and needed(self.task_minima) >= self.need else self.pods
        )

    def towards_quorum(self, placed: Iterable[tuple[PodClass, int]]) -> int:
        """Return how many of the placed pods count towards the quorum."""
        return towards_quorum(placed, self.need, self.task_minima)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where pods go: for each class int64[n], how many of it each node gets."""

    pods: tuple[tuple[PodClass, Ints], ...]
    room: Room
    """The room after this placement."""

    @property
    def placed(self) -> int:
        """How many pods have a node."""
        return sum(count for _, count in self.counts)

    @property
    def counts(self) -> tuple[tuple[PodClass, int], ...]:
        """Classes in order, each with the number of its pods that have a node."""
        return tuple((pod_class, int(pods.sum())) for pod_class, pods in self.pods)


def largest_first(
    classes: tuple[tuple[PodClass, int], ...], room: Room
) -> tuple[tuple[PodClass, int], ...]:
    """Order classes by dominant share: the largest part of the cluster that one pod takes."""
    if len(classes) == 1:
        return classes
    total = np.maximum(room.snapshot.allocatable.max(axis=0, initial=1), 1)

    def share(item: tuple[PodClass, int]) -> float:
        return max(amount / int(total[column]) for column, amount in item[0].demands)

    return tuple(sorted(classes, key=share, reverse=True))


def place_in_order(
    classes: tuple[tuple[PodClass, int], ...],
    demand: Demand,
    room: Room,
    packing: Packing,
    steps: Steps,
    *,
    counts_fit: bool = False,
) -> Placement:
    """Place class after class, in this order; pods that do not fit are skipped.

    Pods that the tasks need come first. Unless ``counts_fit``, placing stops as soon as the
    remaining pods cannot make up the quorum: an incomplete placement is of no use.

    All classes are placed in one turn: 1,000 classes on 5,000 nodes take 0.3 s, longer than a
    turn should be. To split the work, a partial placement would have to be stored, and its pods
    placed again wherever others have taken their room between turns.
    """
    after = room.copy()
    needs: dict[int, Ints] = {}
    left = dict(demand.task_minima)
    for pod_class, count in classes if left else ():
        some = min(count, left.get(pod_class.task, 0))
        _expect(pod_class, after)
        needs[pod_class.id] = _pack(pod_class, some, after, packing, steps)
        left[pod_class.task] = left.get(pod_class.task, 0) - int(needs[pod_class.id].sum())
    if needs:
        return with_extras(demand, classes, needs, after, packing, steps)
    pods: list[tuple[PodClass, Ints]] = []
    most = demand.pods
    for pod_class, count in classes:
        if most < demand.need and not counts_fit:
            break
        _expect(pod_class, after)
        pods.append((pod_class, _pack(pod_class, count, after, packing, steps)))
        most -= count - int(pods[-1][1].sum())
    return Placement(tuple(pods), after)


def _expect(pod_class: PodClass, room: Room) -> None:
    """Raise OutOfStepsError if no steps are left and pods of the class constrain one another."""
    steps = room.steps
    if steps is not None and steps.are_over and pack.constrain_one_another(pod_class, room):
        raise OutOfStepsError


def _pack(pod_class: PodClass, count: int, room: Room, packing: Packing, steps: Steps) -> Ints:
    is_dealt = pack.constrain_one_another(pod_class, room)
    steps.take(pack.steps_for(len(room.free), is_dealt=is_dealt))
    return pack.pack(pod_class, count, room, packing)


def with_extras(
    demand: Demand,
    classes: tuple[tuple[PodClass, int], ...],
    found: dict[int, Ints],
    after: Room,
    packing: Packing,
    steps: Steps,
) -> Placement:
    """Add to ``found`` as many other pods as fit; ``after`` is the room after ``found``.

    None is added where the tasks' minima make up the whole quorum.
    """
    nobody = np.zeros(len(after.free), np.int64)
    has_others = not demand.task_minima or needed(demand.task_minima) < demand.need
    pods = []
    for pod_class, count in classes:
        quorum = found.get(pod_class.id, nobody)
        rest = count - int(quorum.sum())
        if has_others and rest:
            quorum = quorum + _pack(pod_class, rest, after, packing, steps)
        pods.append((pod_class, quorum))
    return Placement(tuple(pods), after)


def best_of_orders(
    classes: tuple[tuple[PodClass, int], ...],
    demand: Demand,
    best: Placement,
    room: Room,
    steps: Steps,
    *,
    counts_fit: bool,
) -> Placement:
    """Try orders of the classes until one places the quorum or the steps are used up."""
    for order, packing in _ways(classes, room) if not steps.are_over else ():
        if steps.are_over or demand.towards_quorum(best.counts) >= demand.need:
            break
        tried = place_in_order(order, demand, room, packing, steps, counts_fit=counts_fit)
        best = max(best, tried, key=lambda placement: demand.towards_quorum(placement.counts))
    return best


def best_after_search(
    search: JointSearch | None,
    classes: tuple[tuple[PodClass, int], ...],
    demand: Demand,
    best: Placement,
    room: Room,
    steps: Steps,
    *,
    counts_fit: bool,
) -> Placement | None:
    """As ``best_of_orders``, over several turns; None if the turn ends with orders left.

    At least one order is tried in each turn. Raises OutOfStepsError if the turn ends within
    that order; the caller then gives a later turn more steps.
    """
    if search is None:
        return best_of_orders(classes, demand, best, room, steps, counts_fit=counts_fit)
    before = search.orders_tried
    for order, packing in islice(_ways(classes, room), before, None):
        if steps.are_over and search.orders_tried > before:
            return None
        try:
            tried = place_in_order(order, demand, room, packing, steps, counts_fit=counts_fit)
        except OutOfStepsError:
            if search.orders_tried == before:
                raise
            return None
        search.orders_tried += 1
        best = max(best, tried, key=lambda placement: demand.towards_quorum(placement.counts))
        if demand.towards_quorum(best.counts) >= demand.need:
            break
    return best


def _ways(
    classes: tuple[tuple[PodClass, int], ...], room: Room
) -> Iterator[tuple[tuple[tuple[PodClass, int], ...], Packing]]:
    """Yield the orders to try, each with both packings."""
    packings: tuple[Packing, ...] = ("most-allocated", "least-allocated")
    return product(_orders(classes, room), packings)


def _orders(
    classes: tuple[tuple[PodClass, int], ...], room: Room
) -> Iterator[tuple[tuple[PodClass, int], ...]]:
    """Yield orders to try: first by fewest slots to spare, then the other permutations."""
    spare = {pod_class.id: int(pod_slots(pod_class, room).sum()) - n for pod_class, n in classes}
    yield tuple(sorted(classes, key=lambda item: spare[item[0].id]))
    yield from islice(
        permutations(classes),
        min(policy.GREEDY_ORDERS_MAX, policy.GREEDY_FILLS_MAX // len(classes)),
    )
