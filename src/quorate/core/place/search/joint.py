"""Find places for pods of several classes together, or show that there are none, within a bound.

Depth first on an explicit stack, one pod after the other. A state says where pods are in the end,
not in which order they came: an order is looked for once all have a place (``ordering``).
Interchangeable nodes are one choice, and so are interchangeable domains; a state that failed is not
entered again. So the search is over kinds of nodes and domains, not over nodes. After a number of
dead ends it begins anew with another heuristic. Called by ``place.gang`` when greedy orders failed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Literal, NamedTuple

import numpy as np

from quorate.core.cluster.gangs.tasks import TaskMinima
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import policy
from quorate.core.model.steps import Steps, costs
from quorate.core.place.packing.domains import fixed_slots
from quorate.core.place.search.branching import Branching, Heuristic
from quorate.core.place.search.capacities import ResourceSlots
from quorate.core.place.search.constraints import Constraints
from quorate.core.place.search.ordering import Order, Placed
from quorate.core.place.search.propagation import Propagation
from quorate.core.place.search.state import Assignment, BeforeAssignment, State
from quorate.core.place.search.values import Bounds, Location, NodeKind, WorkEstimate
from quorate.core.place.tasks import towards_quorum
from quorate.core.room.room import Room

ClassCounts = tuple[tuple[PodClass, int], ...]
_HEURISTICS = (
    Heuristic(),
    Heuristic(worst_fit=True, roots_early=True),
    Heuristic(largest_first=True),
    Heuristic(worst_fit=True),
    Heuristic(roots_early=True),
    Heuristic(largest_first=True, worst_fit=True, roots_early=True),
)
_NO_ROOT: Literal["no root"] = "no root"
"""A choice: no further pod is the first of its group."""
_Choice = Assignment | Literal["no root"] | None
"""None is a pause: it took long to find the next choice."""
_END: Literal["end"] = "end"
_Order = list[tuple[int, int]]
"""Pods as pairs of class and row."""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """How a search ended. ``order`` are pods as (class id, row), each allowed there in its turn.

    None: there is no placement, or the search was ``exhausted`` before that was certain.
    """

    order: tuple[tuple[int, int], ...] | None
    exhausted: bool = False


class _Frame(NamedTuple):
    """A state on the way down: its bounds (None: a dead end), and the choices not tried yet."""

    signature: object
    bounds: Bounds | None
    choices: Iterator[_Choice]


def steps_to_begin(classes: int, nodes: int) -> int:
    """Return how many steps the tables of a search take at least, whatever is in them."""
    return _us_to_begin(classes, nodes) // costs.SEARCH_US_PER_STEP


def _us_to_begin(classes: int, nodes: int) -> int:
    """Return the same as work: all classes are compared with one another, and with all nodes."""
    return 1000 + classes * nodes // 4 + 3 * classes * classes // 2


class JointSearch:
    """One search, which a turn begins and later turns may go on with.

    It copies what it needs of the room when it begins: what it finds is about the room as it was
    then.
    """

    def __init__(
        self, counts: ClassCounts, need: int, task_minima: TaskMinima, room: Room, steps_max: int
    ) -> None:
        """Prepare to place ``need`` of the counted pods, in at most ``steps_max`` steps.

        ``task_minima`` are tasks of which so many have to be among them.
        """
        self.counts, self.need, self._task_minima = counts, need, task_minima
        self._steps_max = steps_max
        largest = np.maximum(room.free.max(axis=0, initial=1), 1)
        by_size = sorted(counts, key=lambda item: -max(a / largest[c] for c, a in item[0].demands))
        self._classes = [pod_class for pod_class, _ in by_size]
        self._demand = _demand_of(self._classes)
        slots = np.stack([fixed_slots(one, room, self._classes) for one in self._classes], axis=1)
        most = slots.sum(axis=0).tolist()
        self._numbers = [min(count, some) for (_, count), some in zip(by_size, most, strict=True)]
        """By class: how many of its pods may be chosen. More of them never have a slot."""
        demand = np.array(self._demand)
        units = np.maximum(np.gcd.reduce(demand, axis=0), 1)
        in_all = np.array(self._numbers) @ demand
        self._constraints = Constraints(self._classes, room, in_all, units, slots)
        self._state = State(self._constraints, self._numbers, self._demand)
        self._fresh: State | None = None
        """The state before the first pod, for orders to be tried on."""
        self._work = WorkEstimate()
        ports = sum(len(one.spec.host_ports) for one in self._classes)
        kinds = len(self._constraints.rows_of)
        self._work.done_us = _us_to_begin(len(counts), len(room.free)) + ports + 5 * kinds
        resource_slots = ResourceSlots(self._demand)
        self._propagation = Propagation(self._state, resource_slots, self._work)
        self._branching = Branching(self._state, resource_slots, self._work)
        self._assigned: list[tuple[Assignment, BeforeAssignment] | None] = []
        """The way down; None where it was chosen that no more roots come."""
        self._failed: set[object] = set()
        """Signatures of states that cannot be completed."""
        self._weights = [1] * len(self._numbers)
        """By class: one more than the dead ends for which it is to blame."""
        self._failures_left = 0
        self._is_complete = True
        """No placement was dropped for want of an order before all orders were tried."""
        self._charged = 0
        self._found: SearchOutcome | None = None
        self.orders_tried = 0
        """How many greedy orders ``place.greedy`` has tried since the search ended in vain."""
        self._pieces = self._search()

    def is_for(self, counts: ClassCounts, need: int) -> bool:
        """Whether this is the search for these pods."""
        return (dict(self.counts), self.need) == (dict(counts), need)

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return self._work.done_us // costs.SEARCH_US_PER_STEP

    def run(self, steps: Steps) -> SearchOutcome | None:
        """Search until it ends, or these steps are over: then None, and a later call goes on.

        Each call comes further, however few steps there are.
        """
        self._charge(steps)
        is_first = True
        while self._found is None and (is_first or not steps.are_over):
            is_first = False
            if self.steps >= self._steps_max:
                self._found = SearchOutcome(None, exhausted=True)
                break
            try:
                next(self._pieces)
            except StopIteration as end:
                self._found = end.value
            self._charge(steps)
        return self._found

    def _charge(self, steps: Steps) -> None:
        steps.take(self.steps - self._charged)
        self._charged = self.steps

    def _search(self) -> Generator[None, None, SearchOutcome]:
        """Search. Yields between pieces of work of a few milliseconds at most."""
        if not self._state.nodes:
            return SearchOutcome(None)
        small_first = sorted(
            range(len(self._classes)), key=lambda i: sum(a for _, a in self._classes[i].demands)
        )
        numbers = [self._numbers[i] for i in small_first]
        considered = islice(selections(numbers, self.need), policy.SEARCH_CHOSEN_MAX**2)
        enough = (chosen for chosen in considered if self._serves_all_tasks(small_first, chosen))
        for number, chosen in enumerate(enough):
            if number == policy.SEARCH_CHOSEN_MAX:
                return SearchOutcome(None, exhausted=True)
            left = [0] * len(chosen)
            for i, count in zip(small_first, chosen, strict=True):
                left[i] = count
            order = yield from self._place_chosen(left)
            if order is not None:
                return SearchOutcome(tuple((self._classes[who].id, row) for who, row in order))
        return SearchOutcome(None, exhausted=not self._is_complete)

    def _serves_all_tasks(self, which: list[int], chosen: list[int]) -> bool:
        """Whether each task has as many of the chosen pods as it needs."""
        pods = zip((self._classes[index] for index in which), chosen, strict=True)
        return towards_quorum(pods, self.need, self._task_minima) >= self.need

    def _place_chosen(self, left: list[int]) -> Generator[None, None, _Order | None]:
        """Place ``left`` pods of each class; return their order, or None if there is no way to."""
        self._state.begin(left)
        self._failed.clear()
        for turn, heuristic in enumerate(cycle(_HEURISTICS)):
            failures = policy.RESTART_FAILURES_MAX << turn // len(_HEURISTICS)
            self._failures_left = failures
            order = yield from self._descend(heuristic)
            if order is not None or self._failures_left > 0:
                return order
        raise AssertionError("heuristics are tried in turn for ever")

    def _descend(self, heuristic: Heuristic) -> Generator[None, None, _Order | None]:
        """Go down from the first pod, and back up from dead ends, until no failure is left."""
        path: list[_Frame] = []
        bounds: Bounds | None = None
        while True:
            frame = yield from self._enter(heuristic, bounds)
            if frame.bounds is not None and not any(self._state.left):
                order = yield from self._order(frame.bounds)
                if order is not None:
                    return order
            path.append(frame)
            while (choice := self._next(path)) is None:
                yield
            if choice == _END:
                return None
            bounds = path[-1].bounds
            self._do(choice)
            yield

    def _enter(self, heuristic: Heuristic, before: Bounds | None) -> Generator[None, None, _Frame]:
        """Compute the bounds of the present state; ``before`` are those of the state above it."""
        signature = self._state.signature()
        self._work.done_us += 40 if self._constraints.is_nested else 40 + len(self._state.nodes)
        if signature in self._failed:
            return _Frame(signature, None, iter(()))
        assigned = self._assigned[-1] if self._assigned else None
        bounds = yield from self._propagation.propagate(before, assigned)
        if bounds is None:
            self._failures_left -= 1
            for index in self._propagation.blamed:
                self._weights[index] += 1
            return _Frame(signature, None, iter(()))
        return _Frame(signature, bounds, self._choices(bounds, heuristic))

    def _next(self, path: list[_Frame]) -> _Choice | Literal["end"]:
        """Return what to try next, going back up to where something is left."""
        while path:
            choice = next(path[-1].choices, _END) if self._failures_left > 0 else _END
            if choice != _END:
                return choice
            frame = path.pop()
            if self._failures_left > 0:
                self._failed.add(frame.signature)
            if path:
                self._undo()
        return _END

    def _do(self, choice: Assignment | Literal["no root"]) -> None:
        if choice == _NO_ROOT:
            self._state.roots_open = False
            self._assigned.append(None)
            return
        if self._state.roots_open:
            self._state.add_root(choice.who, choice.location)
        self._assigned.append((choice, self._state.assign(choice)))

    def _undo(self) -> None:
        assigned = self._assigned.pop()
        if assigned is None:
            self._state.roots_open = True
            return
        if self._state.roots_open:
            self._state.drop_root()
        self._state.undo(*assigned)

    def _choices(self, bounds: Bounds, heuristic: Heuristic) -> Iterator[_Choice]:
        """Yield what may come next: roots first, then pods of one other class.

        One class is enough: in each placement its pods are somewhere.
        """
        state, assignments = self._state, self._branching.assignments
        left = [i for i, count in enumerate(state.left) if count]
        if not left:
            return
        if not state.roots_open:
            yield from assignments(self._next_class(left, bounds, heuristic), bounds, heuristic)
            return
        roots = [i for i in left if state.may_be_first(i)]
        needed = [i for i in roots if not state.openers(i)]
        others = [i for i in roots if state.openers(i)]
        for i in (*needed, *(others if heuristic.roots_early else ())):
            yield from assignments(i, bounds, heuristic)
        yield _NO_ROOT
        for i in () if heuristic.roots_early else others:
            yield from assignments(i, bounds, heuristic)

    def _next_class(self, left: list[int], bounds: Bounds, heuristic: Heuristic) -> int:
        """Return the class whose pod is next: little slack, and to blame for many dead ends."""
        if heuristic.largest_first:
            return left[0]
        return min(left, key=lambda i: ((bounds.slack[i] + 1) / self._weights[i], i))

    def _order(self, bounds: Bounds) -> Generator[None, None, _Order | None]:
        """Return an order of the pods that have places."""
        if self._fresh is None:
            self._fresh = State(self._constraints, self._state.left, self._demand)
        roots = self._state.roots
        order = Order(self._fresh, self._work, list(self._placed()), roots, bounds.minima_max)
        found = yield from order.find()
        self._failures_left -= 1
        self._is_complete &= found is not None or order.is_complete
        return found

    def _placed(self) -> Iterator[Placed]:
        """Yield each pod with its row, and what kind of node that was before the first pod."""
        rows_of = self._constraints.rows_of
        rows: dict[tuple[Location, NodeKind], list[int]] = {}
        first: dict[int, NodeKind] = {}
        for (who, location, kind, after), _ in filter(None, self._assigned):
            for key in ((location, kind), (location, after)):
                if key not in rows:
                    rows[key] = list(rows_of.get(key, ()))
            row = rows[location, kind].pop()
            rows[location, after].append(row)
            yield who, location, first.setdefault(row, kind), row


def _demand_of(classes: Sequence[PodClass]) -> list[tuple[int, ...]]:
    """Return by class what a pod asks for of each column that one of the classes names."""
    columns = sorted({c for pod_class in classes for c in pod_class.columns})
    asked = [dict(pod_class.demands) for pod_class in classes]
    return [tuple(amounts.get(column, 0) for column in columns) for amounts in asked]


def selections(counts: Sequence[int], need: int) -> Iterator[list[int]]:
    """Yield how many of each to choose, ``need`` in all: those with many of the first come first.

    All selections there are, each in time that is linear in ``counts``.
    """
    if need > sum(counts):
        return
    chosen = _filled(counts, need)
    while True:
        yield chosen.copy()
        free = moved = 0
        for index in reversed(range(len(counts))):
            if chosen[index] and free:  # one of these less, and one more of those behind
                break
            free += counts[index] - chosen[index]
            moved += chosen[index]
        else:
            return
        chosen[index] -= 1
        chosen[index + 1 :] = _filled(counts[index + 1 :], moved + 1)


def _filled(counts: Sequence[int], need: int) -> list[int]:
    chosen = []
    for count in counts:
        chosen.append(min(count, need))
        need -= chosen[-1]
    return chosen
