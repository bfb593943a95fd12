"""Find a joint placement for pods of several classes, or show that there is none, within a bound.

Depth first, one pod after the other, over what there is in the end: whether some order of the pods
leads there is asked of a whole placement (``search_order``), not of each step. Nodes that are alike
to these pods are one choice, and so are domains that are alike with all that is in them; a state
that was seen is not tried again. So the search is over kinds of nodes and domains, not over nodes.
Called by ``place.gang`` when greedy orders have failed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Literal, NamedTuple

import numpy as np

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import policy
from quorate.core.model.steps import Steps
from quorate.core.place.packing.domains import fixed_slots
from quorate.core.place.search.bounds import Bounds
from quorate.core.place.search.branching import Habit, Moves
from quorate.core.place.search.capacities import Fits
from quorate.core.place.search.constraints import Ties
from quorate.core.place.search.ordering import Order, Placed
from quorate.core.place.search.selections import ways
from quorate.core.place.search.state import Move, State, Undo
from quorate.core.place.search.values import Cell, Kind, Outlook, Work
from quorate.core.place.tasks import Least, useful
from quorate.core.room.room import Room

Counts = tuple[tuple[PodClass, int], ...]
_HABITS = (
    Habit(),
    Habit(roomiest=True, root=True),
    Habit(largest=True),
    Habit(roomiest=True),
    Habit(root=True),
    Habit(largest=True, roomiest=True, root=True),
)
_WORK_OF_A_STEP = 16
_NO_ROOT: Literal["no root"] = "no root"
"""A choice: no pod comes as the first of its group any more."""
_Choice = Move | Literal["no root"] | None
"""None is a pause: it took long to find the next choice."""
_END: Literal["end"] = "end"


@dataclass(frozen=True, slots=True)
class Found:
    """How a search ended. ``order`` are pods as (class id, row), each where it may go in its turn.

    None: there is no placement, or the search was ``exhausted`` before that was certain.
    """

    order: tuple[tuple[int, int], ...] | None
    exhausted: bool = False


class _Frame(NamedTuple):
    """A state on the way down: what is left, and which choices were not tried yet."""

    signature: object
    outlook: Outlook | None
    choices: Iterator[_Choice]


def steps_to_begin(classes: int, nodes: int) -> int:
    """Return how many steps the tables of a search take at least, whatever is in them."""
    return _work_to_begin(classes, nodes) // _WORK_OF_A_STEP


def _work_to_begin(classes: int, nodes: int) -> int:
    """Return the same in work: all classes are compared with one another, and with all nodes."""
    return 1000 + classes * nodes // 4 + 3 * classes * classes // 2


class JointSearch:
    """One search, which a turn begins and later turns may go on with.

    All that it needs of the room is copied at the beginning: what it finds is about the room as it
    was then. ``steps`` are those taken so far.
    """

    def __init__(self, counts: Counts, need: int, least: Least, room: Room, steps_max: int) -> None:
        """Prepare to place ``need`` of the counted pods, in at most ``steps_max`` steps.

        ``least`` are tasks of which so many have to be among them.
        """
        self.counts, self.need, self._least = counts, need, least
        self._steps_max = steps_max
        largest = np.maximum(room.free.max(axis=0, initial=1), 1)
        by_size = sorted(counts, key=lambda item: -max(a / largest[c] for c, a in item[0].demands))
        self._classes = [pod_class for pod_class, _ in by_size]
        columns = sorted({c for pod_class in self._classes for c in pod_class.columns})
        checked = [
            dict(one.checked) if "NodeResourcesFit" not in one.profile.disabled else {}
            for one in self._classes
        ]
        self._demand = [tuple(one.get(column, 0) for column in columns) for one in checked]
        slots = np.stack([fixed_slots(one, room, self._classes) for one in self._classes], axis=1)
        most = slots.sum(axis=0).tolist()
        numbers = [min(count, some) for (_, count), some in zip(by_size, most, strict=True)]
        demand = np.array(self._demand)
        units = np.maximum(np.gcd.reduce(demand, axis=0), 1)
        self._ties = Ties(self._classes, room, np.array(numbers) @ demand, units, slots)
        self._numbers = numbers
        """By class: how many of its pods may be chosen. More of them never have a slot."""
        self._state = State(self._ties, numbers, self._demand)
        self._fresh: State | None = None
        """The state before the first pod, for orders to be tried on."""
        self._work = Work()
        ports = sum(len(one.shape.host_ports) for one in self._classes)
        self._work.done = _work_to_begin(len(counts), len(room.free)) + ports
        self._work.done += 5 * len(self._ties.rows_of)
        fits = Fits(self._demand)
        self._bounds = Bounds(self._state, fits, self._work)
        self._moves = Moves(self._state, fits, self._work)
        self._made: list[tuple[Move, Undo] | None] = []
        """The way down; None where it was chosen that no more roots come."""
        self._failed: set[object] = set()
        """States that cannot be completed."""
        self._weights = [1] * len(numbers)
        """By class: how often it was for its pods that a state could not be completed."""
        self._failures_left = 0
        self._is_sure = True
        """No placement was dropped for which no order was found, though there may be one."""
        self._charged = 0
        self._found: Found | None = None
        self.orders_tried = 0
        """How many orders of the classes ``gang`` has tried since it ended in vain."""
        self._pieces = self._search()

    def is_for(self, counts: Counts, need: int) -> bool:
        """Whether this is the search for these pods."""
        return (dict(self.counts), self.need) == (dict(counts), need)

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return self._work.done // _WORK_OF_A_STEP

    def run(self, steps: Steps) -> Found | None:
        """Search until it ends, or these steps are over: then None, and a later call goes on.

        Each call comes further, however few steps there are.
        """
        self._charge(steps)
        is_first = True
        while self._found is None and (is_first or not steps.are_over):
            is_first = False
            if self.steps >= self._steps_max:
                self._found = Found(None, exhausted=True)
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

    def _search(self) -> Generator[None, None, Found]:
        """Search. Yields between pieces of a few milliseconds at most."""
        if not self._state.cells:
            return Found(None)
        small_first = sorted(
            range(len(self._classes)), key=lambda i: sum(a for _, a in self._classes[i].demands)
        )
        numbers = [self._numbers[i] for i in small_first]
        considered = islice(ways(numbers, self.need), policy.SEARCH_CHOSEN_MAX**2)
        enough = (taken for taken in considered if self._has_tasks(small_first, taken))
        for number, taken in enumerate(enough):
            if number == policy.SEARCH_CHOSEN_MAX:
                return Found(None, exhausted=True)
            left = [0] * len(taken)
            for i, count in zip(small_first, taken, strict=True):
                left[i] = count
            order = yield from self._place_all(left)
            if order is not None:
                return Found(tuple((self._classes[who].id, row) for who, row in order))
        return Found(None, exhausted=not self._is_sure)

    def _has_tasks(self, which: list[int], taken: list[int]) -> bool:
        """Whether each task has as many of the pods as it needs."""
        chosen = zip((self._classes[index] for index in which), taken, strict=True)
        return useful(chosen, self.need, self._least) >= self.need

    def _place_all(self, left: list[int]) -> Generator[None, None, list[tuple[int, int]] | None]:
        """Place so many pods of each class; return their order, or None if there is no way to."""
        self._state.begin(left)
        self._failed.clear()
        for turn, habit in enumerate(cycle(_HABITS)):
            self._failures_left = policy.DIVE_FAILURES_MAX << turn // len(_HABITS)
            order = yield from self._dive(habit)
            if order is not None or self._failures_left > 0:
                return order
        raise AssertionError("habits are tried in turn for ever")

    def _dive(self, habit: Habit) -> Generator[None, None, list[tuple[int, int]] | None]:
        """Go down from the first pod, and on after dead ends, until there were too many of them."""
        path: list[_Frame] = []
        outlook: Outlook | None = None
        while True:
            frame = yield from self._enter(habit, outlook)
            if frame.outlook is not None and not any(self._state.left):
                order = yield from self._order(frame.outlook)
                if order is not None:
                    return order
            path.append(frame)
            while (choice := self._next(path)) is None:
                yield
            if choice == _END:
                return None
            outlook = path[-1].outlook
            self._do(choice)
            yield

    def _enter(self, habit: Habit, before: Outlook | None) -> Generator[None, None, _Frame]:
        """Look at the present state. Without an outlook it cannot be completed."""
        signature = self._state.signature()
        self._work.done += 40 if self._ties.is_nested else 40 + len(self._state.cells)
        if signature in self._failed:
            return _Frame(signature, None, iter(()))
        outlook = yield from self._bounds.look(before, self._made[-1] if self._made else None)
        if outlook is None:
            self._failures_left -= 1
            for index in self._bounds.blamed:
                self._weights[index] += 1
            return _Frame(signature, None, iter(()))
        return _Frame(signature, outlook, self._choices(outlook, habit))

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

    def _do(self, choice: Move | Literal["no root"]) -> None:
        if choice == _NO_ROOT:
            self._state.is_rooting = False
            self._made.append(None)
            return
        if self._state.is_rooting:
            self._state.add_root(choice.who, choice.cell)
        self._made.append((choice, self._state.make(choice)))

    def _undo(self) -> None:
        made = self._made.pop()
        if made is None:
            self._state.is_rooting = True
            return
        if self._state.is_rooting:
            self._state.drop_root()
        self._state.undo(*made)

    def _choices(self, outlook: Outlook, habit: Habit) -> Iterator[_Choice]:
        """Yield what may come next: the first pods of groups that attract themselves, then others.

        Of other pods one class is enough: in each placement its pods are somewhere.
        """
        state = self._state
        left = [i for i, count in enumerate(state.left) if count]
        if not left:
            return
        if not state.is_rooting:
            yield from self._moves.of(self._next_class(left, outlook, habit), outlook, habit)
            return
        first = [i for i in left if state.may_begin(i)]
        needed = [i for i in first if not state.openers(i)]
        others = [i for i in first if state.openers(i)]
        for i in (*needed, *(others if habit.root else ())):
            yield from self._moves.of(i, outlook, habit)
        yield _NO_ROOT
        for i in () if habit.root else others:
            yield from self._moves.of(i, outlook, habit)

    def _next_class(self, left: list[int], outlook: Outlook, habit: Habit) -> int:
        """Return the class of which a pod is next: the one with the least to spare."""
        if habit.largest:
            return left[0]
        return min(left, key=lambda i: ((outlook.spare[i] + 1) / self._weights[i], i))

    def _order(self, outlook: Outlook) -> Generator[None, None, list[tuple[int, int]] | None]:
        """Return an order of the pods that were placed."""
        if self._fresh is None:
            self._fresh = State(self._ties, self._state.left, self._demand)
        roots = self._state.roots
        order = Order(self._fresh, self._work, list(self._placed()), roots, outlook.highest)
        found = yield from order.find()
        self._failures_left -= 1
        self._is_sure &= found is not None or order.is_sure
        return found

    def _placed(self) -> Iterator[Placed]:
        """Yield each pod with the row that is used for it, and what kind that was at first."""
        rows_of = self._ties.rows_of
        rows: dict[tuple[Cell, Kind], list[int]] = {}
        first: dict[int, Kind] = {}
        for move, _ in filter(None, self._made):
            before, after = (move.cell, move.kind), (move.cell, move.after)
            for key in (before, after):
                if key not in rows:
                    rows[key] = list(rows_of.get(key, ()))
            row = rows[before].pop()
            rows[after].append(row)
            yield move.who, move.cell, first.setdefault(row, move.kind), row
