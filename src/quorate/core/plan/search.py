"""Find a joint placement for pods of several classes, or show that there is none, within a bound.

Depth first, one pod after the other, the largest first. Nodes that are alike (same room as far as
these pods could use it, same verdicts) are one choice, and a multiset of nodes that was seen at the
same depth is not tried again: so the search is over kinds of nodes, not over nodes. Called by
``plan.gang`` when greedy orders have failed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from quorate.core.plan.filters import node_ports
from quorate.core.plan.room import Room
from quorate.core.state.encoding import Ints, PodClass

_Kind = tuple[tuple[int, ...], tuple[int, ...]]
"""A kind of node: its free room in the columns that matter, and which classes it may take (0/1)."""


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
        self.classes = [pod_class for pod_class, _ in counts]
        self.rows = len(room.free)
        self.columns = sorted({c for pod_class in self.classes for c in pod_class.columns})
        self.demand = [
            tuple(dict(pod_class.demands).get(c, 0) for c in self.columns)
            for pod_class in self.classes
        ]
        largest = np.maximum(room.free.max(axis=0, initial=1), 1)
        size = [max(a / largest[c] for c, a in p.demands) for p in self.classes]
        by_size = sorted(range(len(counts)), key=lambda index: -size[index])
        self.pods = [index for index in by_size for _ in range(counts[index][1])]
        self.rows_of: dict[_Kind, list[int]] = {}
        self._sort_into_kinds(room)
        self.left: Counter[_Kind] = Counter({k: len(rows) for k, rows in self.rows_of.items()})
        self.path: list[tuple[int, _Kind, _Kind]] = []
        self.seen: set[tuple[int, frozenset[tuple[_Kind, int]]]] = set()
        self.steps = 0
        self.steps_max = steps_max

    def _sort_into_kinds(self, room: Room) -> None:
        slots = np.stack([room.slots(pod_class) for pod_class in self.classes], axis=1)
        rows = np.flatnonzero(slots.any(axis=1))
        # Room that all these pods together cannot use does not tell nodes apart.
        usable = np.minimum(room.free[rows][:, self.columns], self._in_all())
        allowed = (slots[rows] > 0).astype(np.int64)
        for row, free, verdicts in zip(
            rows.tolist(), usable.tolist(), allowed.tolist(), strict=True
        ):
            self.rows_of.setdefault((tuple(free), tuple(verdicts)), []).append(row)

    def _in_all(self) -> Ints:
        """Return int64[columns]: what all the pods ask for together."""
        demand = np.array(self.demand, np.int64)[self.pods]
        in_all: Ints = demand.sum(axis=0)
        return in_all

    def run(self) -> Found:
        if self._place(0):
            return Found(self._as_counts(), self.steps)
        return Found(None, self.steps)

    def _place(self, depth: int) -> bool:
        """Place the pod at ``depth`` and all after it."""
        if depth == len(self.pods):
            return True
        self.steps += len(self.left)
        if self.steps >= self.steps_max:
            return False
        seen = depth, frozenset(self.left.items())
        if seen in self.seen:
            return False
        self.seen.add(seen)
        index = self.pods[depth]
        for kind, after in self._choices(index):
            if self.steps >= self.steps_max:
                return False
            self._move(kind, after)
            self.path.append((index, kind, after))
            if self._place(depth + 1):
                return True
            self.path.pop()
            self._move(after, kind)
        return False

    def _choices(self, index: int) -> list[tuple[_Kind, _Kind]]:
        """Return the kinds that take a pod of the class, and what they become; tightest first."""
        demand = self.demand[index]
        choices = []
        for kind in self.left:
            free, allowed = kind
            if allowed[index] and all(f >= d for f, d in zip(free, demand, strict=True)):
                rest = tuple(f - d for f, d in zip(free, demand, strict=True))
                choices.append((kind, (rest, self._allowed_after(allowed, index))))
        return sorted(choices, key=lambda choice: choice[1])

    def _allowed_after(self, allowed: tuple[int, ...], index: int) -> tuple[int, ...]:
        mine = self.classes[index].shape
        if not mine.host_ports:
            return allowed
        return tuple(
            0 if node_ports.conflict(mine, self.classes[i].shape) else n
            for i, n in enumerate(allowed)
        )

    def _move(self, source: _Kind, target: _Kind) -> None:
        self.left[source] -= 1
        if not self.left[source]:
            del self.left[source]
        self.left[target] += 1

    def _as_counts(self) -> dict[int, Ints]:
        pods = {c.id: np.zeros(self.rows, np.int64) for c in self.classes}
        for index, kind, after in self.path:
            row = self.rows_of[kind].pop()
            pods[self.classes[index].id][row] += 1
            self.rows_of.setdefault(after, []).append(row)
        return pods
