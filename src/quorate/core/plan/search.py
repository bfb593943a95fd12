"""Find a joint placement for pods of several classes, or show that there is none, within a bound.

Depth first, one pod after the other. Nodes that are alike to these pods are one choice, and so are
domains that are alike with all that is in them; a state that was seen is not tried again. So the
search is over kinds of nodes and domains, not over nodes. A placement is valid if in some order
each pod obeys every rule when it is placed: where order matters, orders are searched too. Called
by ``plan.gang`` when greedy orders have failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from quorate.core.plan.room import Room
from quorate.core.plan.search_bounds import Bounds
from quorate.core.plan.search_state import Move, State
from quorate.core.plan.ties import Cell, Kind, Ties
from quorate.core.state.encoding import Ints, PodClass


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


_HABITS = (Habit(), Habit(roomiest=True), Habit(largest=True), Habit(largest=True, roomiest=True))


def search(counts: tuple[tuple[PodClass, int], ...], room: Room, steps_max: int) -> Found:
    """Place all the counted pods, taking at most ``steps_max`` steps.

    A step looks at one kind of node for one pod. Recursion goes as deep as there are pods.
    """
    problem = _Search(counts, room)
    dives = [steps_max // 10] * len(_HABITS)
    for habit, dive in zip((*_HABITS, _HABITS[0]), (*dives, steps_max - sum(dives)), strict=True):
        found = problem.run(habit, problem.steps + dive)
        if found is not None:
            break
    return Found(problem.as_counts() if found else None, problem.steps)


def _checked(pod_class: PodClass) -> dict[int, int]:
    """Return what nodes must have room for: not what the profile ignores."""
    is_checked = "NodeResourcesFit" not in pod_class.profile.disabled
    return dict(pod_class.checked) if is_checked else {}


class _Search:
    def __init__(self, counts: tuple[tuple[PodClass, int], ...], room: Room) -> None:
        largest = np.maximum(room.free.max(axis=0, initial=1), 1)
        by_size = sorted(counts, key=lambda item: -max(a / largest[c] for c, a in item[0].demands))
        self.classes = [pod_class for pod_class, _ in by_size]
        self.rows = len(room.free)
        columns = sorted({c for pod_class in self.classes for c in pod_class.columns})
        demand = np.array([[_checked(p).get(c, 0) for c in columns] for p in self.classes])
        numbers = [count for _, count in by_size]
        self.ties = Ties(self.classes, room, np.array(numbers) @ demand)
        self.state = State(self.ties, numbers, [tuple(row) for row in demand.tolist()])
        self.bounds = Bounds(self.state)
        self.path: list[Move] = []
        self.seen: set[object] = set()
        self.steps = self.steps_max = 0
        self.habit = _HABITS[0]

    def run(self, habit: Habit, steps_max: int) -> bool | None:
        """Search until there have been so many steps; None: then it was not complete."""
        self.habit, self.steps_max = habit, steps_max
        self.seen.clear()
        if self._place():
            return True
        return None if self.steps >= steps_max else False

    def _place(self) -> bool:
        """Place the pods that are left."""
        state = self.state
        if not any(state.left):
            return True
        signature = state.signature()
        if signature in self.seen:
            return False
        self.seen.add(signature)
        spare = self.bounds.spare() if state.cells else None
        self.steps += len(state.cells)
        if spare is None:
            return False
        for index in self._next_classes(spare):
            for move in self._moves(index):
                if self.steps >= self.steps_max:
                    return False
                undo = state.make(move)
                self.path.append(move)
                if self._place():
                    return True
                self.path.pop()
                state.undo(move, undo)
        return False

    def _next_classes(self, spare: list[int]) -> list[int]:
        """Return the classes of which a pod may be next, the one with the least to spare first.

        One is enough where pods only ever take choices from others: then order changes nothing.
        """
        state = self.state
        left = [i for i, count in enumerate(state.left) if count]
        left.sort(key=lambda i: (i,) if self.habit.largest else (spare[i], i))
        if state.is_settled():
            return left[:1]
        early = [i for i in left if not self.ties.is_last[i]]
        return early or left[:1]

    def _moves(self, index: int) -> list[Move]:
        """Return where a pod of the class may go; by habit, where least is lost first."""
        state = self.state
        choices = []
        lowest = state.lowest()
        for cell in state.distinct_cells():
            for kind in state.cells[cell]:
                self.steps += 1
                if state.accepts(index, cell, kind, lowest):
                    move = Move(index, cell, kind, state.after(index, kind))
                    choices.append((state.cost(move, roomiest=self.habit.roomiest), move))
        choices.sort()
        return [move for _, move in choices]

    def as_counts(self) -> dict[int, Ints]:
        pods = {c.id: np.zeros(self.rows, np.int64) for c in self.classes}
        rows_of: dict[tuple[Cell, Kind], list[int]] = self.ties.rows_of
        for index, cell, kind, after in self.path:
            row = rows_of[cell, kind].pop()
            pods[self.classes[index].id][row] += 1
            rows_of.setdefault((cell, after), []).append(row)
        return pods
