"""Find a joint placement for pods of several classes, or show that there is none, within a bound.

Depth first, one pod after the other, over what there is in the end: whether some order of the pods
leads there is asked of a whole placement (``search_order``), not of each step. Nodes that are alike
to these pods are one choice, and so are domains that are alike with all that is in them; a state
that was seen is not tried again. So the search is over kinds of nodes and domains, not over nodes.
Called by ``plan.gang`` when greedy orders have failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

import numpy as np

from quorate.core.plan.domains import fixed_slots
from quorate.core.plan.room import Room
from quorate.core.plan.search_bounds import Bounds
from quorate.core.plan.search_facts import Cell, Kind, Outlook
from quorate.core.plan.search_order import has_order
from quorate.core.plan.search_state import Move, State
from quorate.core.plan.ties import Ties
from quorate.core.state.arrays import Ints
from quorate.core.state.encoding import PodClass


@dataclass(frozen=True, slots=True)
class Found:
    """``pods`` is int64[n] by class id, or None; ``steps`` is how many were taken."""

    pods: dict[int, Ints] | None
    steps: int


class Habit(NamedTuple):
    """What is tried first. Where one habit errs early and goes on for long, another may not."""

    largest: bool = False
    """The largest pods first, not those with the fewest slots to spare."""
    roomiest: bool = False
    """The roomiest nodes first, not the tightest."""
    root: bool = False
    """With the first pod of a group that is attracted to itself, where it may come later, too."""


_HABITS = (
    Habit(),
    Habit(roomiest=True, root=True),
    Habit(largest=True),
    Habit(roomiest=True),
    Habit(root=True),
    Habit(largest=True, roomiest=True, root=True),
)
_DIVE_FAILURES = 20


def search(counts: tuple[tuple[PodClass, int], ...], room: Room, steps_max: int) -> Found:
    """Place all the counted pods, taking at most ``steps_max`` steps.

    A step looks at one kind of node for one pod. Recursion goes as deep as there are pods.
    """
    problem = _Problem.of(counts, room)
    whole = _Search(problem, frozenset())
    steps = 0
    for turn, habit in enumerate(cycle(_HABITS)):
        if turn == len(_HABITS):
            is_impossible, steps = _is_impossible(problem, whole.ties, steps_max // 4)
            if is_impossible:
                return Found(None, whole.steps + steps)
        failures_max = _DIVE_FAILURES << turn // len(_HABITS)
        found = whole.run(habit, failures_max, steps_max - steps)
        if found is not None:
            return Found(whole.as_counts() if found else None, whole.steps + steps)
        if not whole.was_cut or whole.steps + steps >= steps_max:
            break
    return Found(None, max(whole.steps + steps, steps_max))


def _is_impossible(problem: _Problem, ties: Ties, steps_max: int) -> tuple[bool, int]:
    """Whether there is no placement even if some of the shared topologies meant nothing.

    More nodes are alike then, so the search is over fewer kinds. Returns the steps taken, too.
    """
    steps = 0
    shared = ties.shared
    for kept in ((), *((key,) for key in shared)) if len(shared) > 1 else ((),) * len(shared):
        relaxed = _Search(problem, frozenset(shared) - frozenset(kept))
        found = relaxed.run(_HABITS[0], 1_000, steps_max // (len(shared) + 1))
        steps += relaxed.steps
        if found is False:
            return True, steps
    return False, steps


class _Problem(NamedTuple):
    classes: list[PodClass]
    """The largest first."""
    numbers: list[int]
    demand: list[tuple[int, ...]]
    """What nodes must have room for: not what the profile ignores."""
    slots: Ints
    room: Room

    @classmethod
    def of(cls, counts: tuple[tuple[PodClass, int], ...], room: Room) -> _Problem:
        largest = np.maximum(room.free.max(axis=0, initial=1), 1)
        by_size = sorted(counts, key=lambda item: -max(a / largest[c] for c, a in item[0].demands))
        classes = [pod_class for pod_class, _ in by_size]
        columns = sorted({c for pod_class in classes for c in pod_class.columns})
        checked = [
            dict(one.checked) if "NodeResourcesFit" not in one.profile.disabled else {}
            for one in classes
        ]
        demand = [tuple(one.get(column, 0) for column in columns) for one in checked]
        slots = np.stack([fixed_slots(one, room, classes) for one in classes], axis=1)
        return cls(classes, [count for _, count in by_size], demand, slots, room)


class _Search:
    def __init__(self, problem: _Problem, dropped: frozenset[str]) -> None:
        self.problem = problem
        classes, numbers, demand, slots, room = problem
        in_all = np.array(numbers) @ np.array(demand)
        self.ties = Ties(classes, room, in_all, slots, dropped)
        self.state = State(self.ties, numbers, demand)
        self.bounds = Bounds(self.state)
        self.path: list[Move] = []
        self.failed: set[object] = set()
        """States that cannot be completed."""
        self._lost: dict[tuple[int, Kind], tuple[int, ...]] = {}
        self.weights = [1] * len(numbers)
        """By class: how often it was for its pods that a state could not be completed."""
        self.steps = self.steps_max = self.failures_left = 0
        self.was_cut = False
        self.is_sure = True
        """No placement was dropped for which no order was found, though there may be one."""
        self.habit = _HABITS[0]

    def run(self, habit: Habit, failures_max: int, steps_max: int) -> bool | None:
        """Search until there have been so many failures or steps; None: it was not complete."""
        self.habit, self.steps_max = habit, steps_max
        self.failures_left = failures_max
        if self._place():
            return True
        self.was_cut = self.is_over()
        return None if self.was_cut or not self.is_sure else False

    def is_over(self) -> bool:
        """Whether to stop here."""
        return self.failures_left <= 0 or self.steps >= self.steps_max

    def _place(self) -> bool:
        """Place the pods that are left."""
        signature = self.state.signature()
        if signature in self.failed:
            return False
        if self._go_on():
            return True
        if not self.is_over():
            self.failed.add(signature)
        return False

    def _go_on(self) -> bool:
        state = self.state
        looked_at = self.bounds.looked_at
        outlook = self.bounds.look() if state.cells else None
        self.steps += self.bounds.looked_at - looked_at
        if outlook is None:
            self.failures_left -= 1
            for index in self.bounds.blamed:
                self.weights[index] += 1
            return False
        if not any(state.left):
            return self._has_order(outlook)
        if state.is_rooting:
            return self._place_roots(outlook)
        return any(self._try(move) for move in self._moves(self._next_class(outlook), outlook))

    def _place_roots(self, outlook: Outlook) -> bool:
        """Place the first pod of a group that is attracted to itself, or none of them any more."""
        state = self.state
        first = [i for i, count in enumerate(state.left) if count and state.may_begin(i)]
        needed = [i for i in first if not state.openers(i)]
        others = [i for i in first if state.openers(i)]
        early, late = (others, []) if self.habit.root else ([], others)
        return (
            any(self._try(move) for i in (*needed, *early) for move in self._moves(i, outlook))
            or self._try_no_root()
            or any(self._try(move) for i in late for move in self._moves(i, outlook))
        )

    def _try_no_root(self) -> bool:
        self.state.is_rooting = False
        if self._place():
            return True
        self.state.is_rooting = True
        return False

    def _try(self, move: Move) -> bool:
        if self.is_over():
            return False
        state = self.state
        undo = state.make(move)
        if state.is_rooting:
            state.roots.append((move.who, move.cell))
        self.path.append(move)
        if self._place():
            return True
        self.path.pop()
        if state.is_rooting:
            state.roots.pop()
        state.undo(move, undo)
        return False

    def _next_class(self, outlook: Outlook) -> int:
        """Return the class of which a pod is next: the one with the least to spare.

        One is enough: in each placement its pods are somewhere.
        """
        left = [i for i, count in enumerate(self.state.left) if count]
        if self.habit.largest:
            return left[0]
        return min(left, key=lambda i: ((outlook.spare[i] + 1) / self.weights[i], i))

    def _moves(self, index: int, outlook: Outlook) -> Iterator[Move]:
        """Yield where a pod of the class may go; by habit, where least is lost first."""
        state, roomiest = self.state, self.habit.roomiest
        choices = []
        for cell in state.distinct_cells():
            for kind in outlook.inside[cell].kinds[index]:
                if state.is_below(index, cell, kind, outlook.highest):
                    gain = self._gain(index, cell, kind, outlook)
                    loss = self._loss(index, kind, outlook)
                    cost = state.cost(index, cell, kind, roomiest=roomiest)
                    choices.append(((loss - gain, *cost), cell, kind))
        self.steps += len(choices)
        choices.sort()
        for _, cell, kind in choices:
            yield Move(index, cell, kind, state.after(index, kind))

    def _loss(self, index: int, kind: Kind, outlook: Outlook) -> float:
        """Return how much of what others have to choose from a pod of the class would take."""
        lost = self._lost.get((index, kind))
        if lost is None:
            free, demand = kind.free, self.state.demand[index]
            after = tuple(f - d for f, d in zip(free, demand, strict=True))
            apart = self.ties.statics[kind.static].apart[index]
            allowed = self.ties.statics[kind.static].allowed
            lost = self._lost[index, kind] = tuple(
                0
                if other == index or not allowed >> other & 1
                else _slots(free, needs) - (0 if apart >> other & 1 else _slots(after, needs))
                for other, needs in enumerate(self.state.demand)
            )
        scarce = outlook.scarce
        return sum(n * scarce[other] for other, n in enumerate(lost) if n)

    def _gain(self, index: int, cell: Cell, kind: Kind, outlook: Outlook) -> float:
        """Return for how many pods to come a pod of the class would satisfy their affinity here."""
        state, gain = self.state, 0.0
        for other, pull in enumerate(self.ties.pulls):
            if pull is None or not pull.by & ~self.ties.shadowed[other] >> index & 1:
                continue
            left = state.left[other]
            for _, level, near in pull.terms:
                if level < 0:
                    if kind.present & pull.by or other == index:
                        continue
                    waits = kind.present >> other & 1
                    slots = left > 0 and self.ties.statics[kind.static].allowed >> other & 1
                else:
                    code = cell[level]
                    members = state.present[level].get(code, 0)
                    if code < 0 or code in near or members & pull.by & ~(1 << other):
                        continue
                    waits = members >> other & 1
                    slots = min(outlook.domains[level][code][other], left)
                gain += 64 * waits + slots * outlook.scarce[other]
        return gain

    def _has_order(self, outlook: Outlook) -> bool:
        fresh = State(self.ties, self.problem.numbers, self.problem.demand)
        placed = [(move.who, move.cell, kind, row) for move, kind, row in self._rows()]
        self.failures_left -= 1
        found, tried = has_order(fresh, placed, len(self.state.roots), outlook.highest)
        self.steps += tried
        self.is_sure &= found is not None
        return bool(found)

    def _rows(self) -> Iterator[tuple[Move, Kind, int]]:
        """Yield each move with the row that is used for it, and what kind that was at first."""
        of = {pair: list(rows) for pair, rows in self.ties.rows_of.items()}
        first = {row: kind for (_, kind), rows in of.items() for row in rows}
        for move in self.path:
            row = of[move.cell, move.kind].pop()
            of.setdefault((move.cell, move.after), []).append(row)
            yield move, first[row], row

    def as_counts(self) -> dict[int, Ints]:
        classes = self.problem.classes
        pods = {c.id: np.zeros(len(self.problem.slots), np.int64) for c in classes}
        for move, _, row in self._rows():
            pods[classes[move.who].id][row] += 1
        return pods


def _slots(free: tuple[int, ...], demand: tuple[int, ...]) -> int:
    return min((f // d for f, d in zip(free, demand, strict=True) if d), default=64)
