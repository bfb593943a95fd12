"""Find a joint placement for pods of several classes, or show that there is none, within a bound.

Depth first, one pod after the other. Nodes that are alike to these pods are one choice, and so are
domains that are alike with all that is in them; a state that was seen is not tried again. So the
search is over kinds of nodes and domains, not over nodes. A placement is valid if in some order
each pod obeys every rule when it is placed: where order matters, orders are searched too. Called
by ``plan.gang`` when greedy orders have failed.
"""

from __future__ import annotations

from dataclasses import dataclass

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


def search(counts: tuple[tuple[PodClass, int], ...], room: Room, steps_max: int) -> Found:
    """Place all the counted pods, taking at most ``steps_max`` steps.

    A step looks at one kind of node for one pod. Recursion goes as deep as there are pods.
    """
    return _Search(counts, room, steps_max).run()


class _Search:
    def __init__(
        self, counts: tuple[tuple[PodClass, int], ...], room: Room, steps_max: int
    ) -> None:
        largest = np.maximum(room.free.max(axis=0, initial=1), 1)
        by_size = sorted(counts, key=lambda item: -max(a / largest[c] for c, a in item[0].demands))
        self.classes = [pod_class for pod_class, _ in by_size]
        self.rows = len(room.free)
        columns = sorted({c for pod_class in self.classes for c in pod_class.columns})
        demand = np.array([[dict(p.demands).get(c, 0) for c in columns] for p in self.classes])
        numbers = [count for _, count in by_size]
        self.ties = Ties(self.classes, room, np.array(numbers) @ demand)
        self.state = State(self.ties, numbers, [tuple(row) for row in demand.tolist()])
        self.bounds = Bounds(self.state)
        self.path: list[Move] = []
        self.seen: set[object] = set()
        self.steps = 0
        self.steps_max = steps_max

    def run(self) -> Found:
        if self._place():
            return Found(self._as_counts(), self.steps)
        return Found(None, self.steps)

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
        left.sort(key=lambda i: (spare[i], i))
        if state.is_settled():
            return left[:1]
        early = [i for i in left if not self.ties.is_last[i]]
        return early or left[:1]

    def _moves(self, index: int) -> list[Move]:
        """Return where a pod of the class may go; where least is lost, first."""
        state = self.state
        choices = []
        lowest = state.lowest()
        for cell in state.distinct_cells():
            for kind in state.cells[cell]:
                self.steps += 1
                if state.accepts(index, cell, kind, lowest):
                    move = Move(index, cell, kind, state.after(index, kind))
                    choices.append((state.cost(move), move))
        choices.sort()
        return [move for _, move in choices]

    def _as_counts(self) -> dict[int, Ints]:
        pods = {c.id: np.zeros(self.rows, np.int64) for c in self.classes}
        rows_of: dict[tuple[Cell, Kind], list[int]] = self.ties.rows_of
        for index, cell, kind, after in self.path:
            row = rows_of[cell, kind].pop()
            pods[self.classes[index].id][row] += 1
            rows_of.setdefault((cell, after), []).append(row)
        return pods
