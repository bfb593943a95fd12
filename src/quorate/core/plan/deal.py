"""Deal alike pods out one after the other, by domain, where several constraints meet.

Called by ``pack``. It is what placing pod after pod would do, always into the emptiest domains, but
with counters instead of arrays: a pod costs as many looks as there are cells, not nodes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

import numpy as np

from quorate.core.plan.domains import Cells, Levels
from quorate.core.state.arrays import Ints


class _Count:
    """Pods by domain for one constraint, and how many domains that count hold how many."""

    def __init__(self, cells: Cells, levels: Levels) -> None:
        self.codes = cells.codes.tolist()
        self._pods = levels.counts.tolist()
        self._in_minimum = levels.in_minimum.tolist()
        self._levels = levels
        self._held = Counter(n for n, yes in zip(self._pods, self._in_minimum, strict=True) if yes)
        self._is_fixed = levels.too_few or not self._held
        self._lowest = 0 if self._is_fixed else min(self._held)

    def pods(self, row: int) -> int:
        """Return how many are in the row's domain."""
        return int(self._pods[self.codes[row]])

    def accepts(self, row: int) -> bool:
        """Whether one more pod in the row's domain is within the skew."""
        return self.pods(row) + 1 - self._lowest <= self._levels.max_skew

    def add(self, row: int) -> None:
        """Count one pod."""
        code = self.codes[row]
        if self._in_minimum[code]:
            self._held[self._pods[code]] -= 1
            self._held[self._pods[code] + 1] += 1
        self._pods[code] += 1
        while not self._is_fixed and not self._held[self._lowest]:
            self._lowest += 1


class _Group:
    """Nodes of one cell, by how many pods the constraints on single nodes count there."""

    def __init__(self) -> None:
        self._by_level: dict[int, deque[int]] = {}

    def add(self, row: int, level: int) -> None:
        """Add a node."""
        self._by_level.setdefault(level, deque()).append(row)

    def first(self) -> int:
        """Return a row of the lowest level; -1 if there is none left."""
        while self._by_level:
            level = min(self._by_level)
            if self._by_level[level]:
                return self._by_level[level][0]
            del self._by_level[level]
        return -1

    def pop(self) -> None:
        """Remove the first one."""
        self._by_level[min(self._by_level)].popleft()


class _Deal:
    def __init__(
        self, slots: Ints, spread: Sequence[tuple[Cells, Levels]], apart: Sequence[Cells]
    ) -> None:
        self._left = slots.tolist()
        self._counts = [_Count(cells, levels) for cells, levels in spread]
        is_per_node = [cells.is_per_node for cells, _ in spread]
        self._per_node = [c for c, yes in zip(self._counts, is_per_node, strict=True) if yes]
        shared = [c.codes for c, yes in zip(self._counts, is_per_node, strict=True) if not yes]
        self._apart = [cells.codes.tolist() for cells in apart]
        self._taken: list[set[int]] = [set() for _ in apart]
        self._codes = [*shared, *self._apart]
        self._groups: dict[tuple[int, ...], _Group] = {}

    def add(self, row: int) -> None:
        """Add a node with slots; better ones first."""
        cell = tuple(codes[row] for codes in self._codes)
        level = sum(one.pods(row) for one in self._per_node)
        self._groups.setdefault(cell, _Group()).add(row, level)

    def next(self) -> int:
        """Place one pod; return its row, or -1 if no node takes it."""
        best: tuple[list[int], int, _Group] | None = None
        for group in self._groups.values():
            row = group.first()
            if row < 0 or not self._accepts(row):
                continue
            full = [one.pods(row) for one in self._counts]
            if best is None or full < best[0]:
                best = full, row, group
        if best is None:
            return -1
        _, row, group = best
        self._take(row, group)
        return row

    def _accepts(self, row: int) -> bool:
        apart = zip(self._apart, self._taken, strict=True)
        return all(one.accepts(row) for one in self._counts) and not any(
            codes[row] in taken for codes, taken in apart
        )

    def _take(self, row: int, group: _Group) -> None:
        self._left[row] -= 1
        for one in self._counts:
            one.add(row)
        for codes, taken in zip(self._apart, self._taken, strict=True):
            if codes[row] >= 0:
                taken.add(codes[row])
        if self._per_node or not self._left[row]:
            group.pop()
            if self._left[row]:
                group.add(row, sum(one.pods(row) for one in self._per_node))


def deal(
    count: int,
    slots: Ints,
    order: Ints,
    spread: Sequence[tuple[Cells, Levels]],
    apart: Sequence[Cells],
) -> Ints:
    """Return int64[n]: how many of ``count`` pods each node gets.

    ``order`` are the rows with slots, the best first. No domain of ``apart`` gets a second pod; a
    node without a domain there may.
    """
    state = _Deal(slots, spread, apart)
    for row in order.tolist():
        state.add(row)
    pods = np.zeros(len(slots), np.int64)
    for _ in range(count):
        row = state.next()
        if row < 0:
            break
        pods[row] += 1
    return pods
