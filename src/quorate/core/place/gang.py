"""Place one whole gang. In: its demand and the room. Out: a placement, or how many pods would fit.

Called by ``turn.cycle`` once for each gang, in queue order. Pods of one class are placed together.
Classes are tried largest first, then in other orders, then by a bounded search, because a gang may
fit although every greedy order fails. The search may take several turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from quorate.core.cluster.labels.neighbours import uses_selectors
from quorate.core.model import policy
from quorate.core.model.profile import Packing
from quorate.core.model.steps import Steps, costs
from quorate.core.place.greedy import (
    Demand,
    Placement,
    best_after_search,
    best_of_orders,
    largest_first,
    place_in_order,
    with_extras,
)
from quorate.core.place.packing import pack
from quorate.core.place.search.joint import JointSearch, SearchOutcome, steps_to_begin
from quorate.core.room.room import Room
from quorate.core.rules.filtering import pod_slots

_ENDLESS = 2**62


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """No placement was found. ``exhausted`` means that the search ended before it was complete."""

    fit: int
    exhausted: bool = False


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The turn ran out of steps during the search, which a later turn continues.

    ``search`` is None if it has not begun. ``fit`` is how many pods fit in the best order so far.
    """

    search: JointSearch | None
    fit: int


def place_gang(
    demand: Demand, room: Room, packing: Packing, steps_max: int
) -> Placement | DoesNotFit:
    """Place at least ``demand.need`` pods, and as many more as fit. The given room is unchanged.

    ``steps_max`` bounds the search for a joint placement of several classes.
    """
    endless = Steps(_ENDLESS)
    found = place_gang_in_turn(demand, room, packing, steps_max, endless, None, counts_fit=True)
    assert not isinstance(found, Unfinished), "such a turn lasts until the search has ended"
    return found


def place_gang_within(
    demand: Demand, room: Room, packing: Packing, steps: Steps
) -> Placement | DoesNotFit:
    """As ``place_gang``, but stop when the ``steps`` are used up and return ``DoesNotFit``."""
    found = place_gang_in_turn(demand, room, packing, steps.left, steps, None, counts_fit=True)
    return DoesNotFit(found.fit, exhausted=True) if isinstance(found, Unfinished) else found


def place_gang_in_turn(
    demand: Demand,
    room: Room,
    packing: Packing,
    steps_max: int,
    steps: Steps,
    open_search: JointSearch | None,
    *,
    searches: bool = True,
    counts_fit: bool = False,
) -> Placement | DoesNotFit | Unfinished:
    """As ``place_gang``, but pause the joint search when this turn's ``steps`` are used up.

    ``open_search`` is a search that an earlier turn left unfinished. It continues if the demand is
    the same, on the room as of its start. So its solution is checked pod by pod against the present
    room; if a pod does not fit, a new search begins. If it finds nothing, it has not seen room that
    became free since its start; the caller wakes the gang for that. With ``searches`` False, no
    search begins or continues in this turn. With ``counts_fit`` False, packing stops as soon as too
    many pods have no place, so ``fit`` may be too low.
    """
    classes = largest_first(demand.classes, room)
    best = place_in_order(classes, demand, room, packing, steps, counts_fit=counts_fit)
    if demand.towards_quorum(best.counts) >= max(demand.need, 1):
        return best
    is_coupled = _is_coupled(demand, room)
    is_exact = len(classes) == 1 and pack.is_exact(classes[0][0], room)
    if is_exact or demand.need <= 1 or (not is_coupled and _lacks_slots(demand, room, steps)):
        return _as_answer(best, demand, exhausted=False)
    if open_search is not None and not open_search.is_for(demand.classes, demand.need):
        open_search = None
    is_searched = _is_searched(demand)
    if open_search is None and not (is_coupled and is_searched):
        best = best_of_orders(classes, demand, best, room, steps, counts_fit=counts_fit)
    if demand.towards_quorum(best.counts) >= demand.need or not is_searched:
        return _as_answer(best, demand, exhausted=True)
    fit = demand.towards_quorum(best.counts)
    if not searches:
        return Unfinished(open_search, fit)
    search, found = _search(demand, room, steps_max, steps, open_search)
    if found is None:
        return Unfinished(search, fit)
    if found.order is not None:
        return _completed(demand, found.order, room, packing, steps)
    if not (found.exhausted and is_coupled):
        return _as_answer(best, demand, exhausted=found.exhausted)
    # there may be too many nodes and classes to search
    tried = best_after_search(search, classes, demand, best, room, steps, counts_fit=counts_fit)
    return _as_answer(tried, demand, exhausted=True) if tried else Unfinished(search, fit)


def _as_answer(best: Placement, demand: Demand, *, exhausted: bool) -> Placement | DoesNotFit:
    fit = demand.towards_quorum(best.counts)
    return best if fit >= max(demand.need, 1) else DoesNotFit(fit, exhausted)


def _search(
    demand: Demand, room: Room, steps_max: int, steps: Steps, search: JointSearch | None
) -> tuple[JointSearch | None, SearchOutcome | None]:
    """Continue a search, or begin one; begin again where its solution is no longer valid.

    No search is created if building its tables would use up all the steps that it may take.
    """
    if search is not None:
        found = _run(search, steps)
        if found is None or found.order is None or _holds(found.order, demand, room, steps):
            return search, found
    if steps_to_begin(len(demand.classes), len(room.free)) >= steps_max:
        return None, SearchOutcome(None, exhausted=True)
    search = JointSearch(demand.classes, demand.need, demand.task_minima, room, steps_max)
    return search, _run(search, steps)


def _run(search: JointSearch, steps: Steps) -> SearchOutcome | None:
    """Continue a search. It gets some steps in each turn, even if greedy orders used them up."""
    mine = Steps(max(steps.left, policy.SEARCH_STEPS_MIN))
    found = search.run(mine)
    steps.take(mine.taken)
    return found


def _is_coupled(demand: Demand, room: Room) -> bool:
    """Whether the place of one member decides where another member may go."""
    return any(
        pod_class.matched
        or uses_selectors(pod_class.spec)
        or room.volumes.couples(pod_class)
        or pod_class.device_needs is not None
        for pod_class, _ in demand.classes
    ) and (len(demand.classes) > 1 or pack.constrain_one_another(demand.classes[0][0], room))


def _is_searched(demand: Demand) -> bool:
    """Whether the joint search applies; it does not model volumes or devices."""
    return demand.need <= policy.SEARCHED_PODS_MAX and all(
        pod_class.volume_needs is None and pod_class.device_needs is None
        for pod_class, _ in demand.classes
    )


def _lacks_slots(demand: Demand, room: Room, steps: Steps) -> bool:
    """Whether fewer than ``need`` pods have a slot even if each class is placed alone."""
    alone, most = [], demand.pods
    for pod_class, count in demand.classes:
        steps.take(1 + len(room.free) // costs.CHECKED_NODES_PER_STEP)
        alone.append((pod_class, min(count, int(pod_slots(pod_class, room).sum()))))
        most -= count - alone[-1][1]
        if most < demand.need:
            return True
    return demand.towards_quorum(alone) < demand.need


def _holds(order: tuple[tuple[int, int], ...], demand: Demand, room: Room, steps: Steps) -> bool:
    """Whether the pods still fit on the nodes of the solution, placed in its order.

    Consecutive pods of one class are checked together if they do not constrain one another.
    """
    if max(row for _, row in order) >= len(room.free):
        return False
    by_id = {pod_class.id: pod_class for pod_class, _ in demand.classes}
    after = room.copy()
    for class_id, run in groupby(order, key=lambda pod: pod[0]):
        pod_class = by_id[class_id]
        rows = [row for _, row in run]
        is_split = pack.constrain_one_another(pod_class, room)
        for some in [[row] for row in rows] if is_split else [rows]:
            here, pods = np.unique(some, return_counts=True)
            steps.take(len(room.free) // costs.CHECKED_NODES_PER_STEP + 5)
            if bool((pod_slots(pod_class, after)[here] < pods).any()):
                return False
            after.take_at(pod_class, here, pods)
    return True


def _completed(
    demand: Demand,
    order: tuple[tuple[int, int], ...],
    room: Room,
    packing: Packing,
    steps: Steps,
) -> Placement:
    """Turn the quorum that the search found into a placement, and add the other pods."""
    after = room.copy()
    found = {pod_class.id: np.zeros(len(room.free), np.int64) for pod_class, _ in demand.classes}
    for class_id, row in order:
        found[class_id][row] += 1
    for pod_class, _ in demand.classes:
        after.take(pod_class, found[pod_class.id])
    return with_extras(demand, demand.classes, found, after, packing, steps)
