"""Place pods of one class one by one, by domain, where several constraints meet.

Called by ``pack``. In: ranked rows and constraints. Out: pods per node. Each pod goes into the
emptiest domains that accept it; counters replace arrays. Cells are in heaps, the emptiest first. A
cell's count in a heap is refreshed only when the cell comes first; counts only grow, so a stale
count never hides a better cell. Where a constraint has few domains, one pod changes the counts of
many cells: then each such domain has a heap, and the constraint is checked for first cells only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.model.steps import Steps, costs
from quorate.core.place.packing.domains import Cells, Levels

_Row = tuple[int, int, int]
"""A node of a group: the pods that per-node constraints count there, its rank, its row."""


class _Group:
    """Nodes of one cell, sorted by the pods that per-node constraints count there."""

    def __init__(self, number: int, rows: list[_Row], block: _Block) -> None:
        self.number = number
        self.block = block
        self.rows = rows
        """A heap."""

    @property
    def first(self) -> int:
        """The row of the first node; -1 if none is left."""
        return self.rows[0][2] if self.rows else -1


_Entry = tuple[tuple[int, ...], int, _Group]


class _Block:
    """Cells in the same domains of all constraints with few domains; ``row`` is one of their rows.

    ``heap`` has the cells that may take a pod, by a lower bound of their other constraints' counts.
    """

    def __init__(self, row: int) -> None:
        self.row = row
        self.heap: list[_Entry] = []


class _Count:
    """Pods by domain for one constraint, and how many domains hold each number of pods."""

    def __init__(self, cells: Cells, levels: Levels) -> None:
        self.cells = cells
        self.codes: list[int] = cells.codes.tolist()
        self._pods: list[int] = levels.counts.tolist()
        self._in_minimum = levels.in_minimum.tolist()
        self._levels = levels
        self._held = Counter(n for n, yes in zip(self._pods, self._in_minimum, strict=True) if yes)
        self._is_fixed = levels.too_few or not self._held
        self._lowest = 0 if self._is_fixed else min(self._held)
        self._waiting: dict[int, list[_Group]] = {}
        """Refused groups, by the lowest minimum at which they are accepted again."""

    def pods(self, row: int) -> int:
        """Return the number of pods in the row's domain."""
        return self._pods[self.codes[row]]

    def pods_on(self, rows: Ints) -> Ints:
        """Return int64[m]: as ``pods``, before the first ``add``."""
        found: Ints = self._levels.counts[self.cells.codes[rows]]
        return found

    def accepts(self, row: int) -> bool:
        """Whether one more pod in the row's domain is within the skew."""
        return self.pods(row) + 1 - self._lowest <= self._levels.max_skew

    def wait(self, group: _Group) -> None:
        """Store a refused group until its first row is accepted."""
        level = self.pods(group.first) + 1 - self._levels.max_skew
        self._waiting.setdefault(level, []).append(group)

    def add(self, row: int) -> list[_Group]:
        """Count one pod in the row's domain; return the groups that are accepted again."""
        code = self.codes[row]
        if self._in_minimum[code]:
            self._held[self._pods[code]] -= 1
            self._held[self._pods[code] + 1] += 1
        self._pods[code] += 1
        freed = []
        while not self._is_fixed and not self._held[self._lowest]:
            self._lowest += 1
            freed += self._waiting.pop(self._lowest, [])
        return freed


class _OneByOne:
    def __init__(
        self,
        slots: Ints,
        order: Ints,
        spread: Sequence[tuple[Cells, Levels]],
        apart: Sequence[Cells],
    ) -> None:
        self._left = slots.tolist()
        self._counts = [_Count(cells, levels) for cells, levels in spread]
        is_per_node = [cells.is_per_node for cells, _ in spread]
        self._per_node = [c for c, yes in zip(self._counts, is_per_node, strict=True) if yes]
        shared = [c for c, yes in zip(self._counts, is_per_node, strict=True) if not yes]
        self._apart = [cells.codes.tolist() for cells in apart]
        self._taken: list[set[int]] = [set() for _ in apart]
        self.looks = len(order) * (2 + len(self._counts) + len(self._apart)) // 4
        """Look-ups so far. Array operations count less: they take less time for each element."""
        self._turns = len(order)
        self._coarse: list[_Count] = []
        which = _agreeing([*(one.cells.codes for one in shared), *(c.codes for c in apart)], order)
        self._blocks = self._split(order, which, shared) if len(order) else []

    def _split(self, order: Ints, which: Ints, shared: list[_Count]) -> list[_Block]:
        """Build the groups from ``which`` (int64[m], by rank of the nodes), and assign blocks."""
        level = np.zeros(len(order), np.int64)
        for one in self._per_node:
            level += one.pods_on(order)
        by_group = np.lexsort((level, which))
        starts = np.flatnonzero(np.diff(which[by_group], prepend=-1))
        first = order[by_group[starts]]
        blocks = self._blocks_of(first, sorted(shared, key=lambda one: one.cells.number))
        self._fine = [one for one in self._counts if one not in self._coarse]
        turns, ends = by_group.tolist(), [*starts[1:].tolist(), len(order)]
        rows = list(zip(level[by_group].tolist(), turns, order[by_group].tolist(), strict=True))
        full = [one.pods_on(first).tolist() for one in self._fine]
        fulls = list(zip(*full, strict=True)) if full else [()] * len(starts)
        for number, start in enumerate(starts.tolist()):
            block = blocks[number]
            group = _Group(number, rows[start : ends[number]], block)
            block.heap.append((fulls[number], number, group))
        found = list(dict.fromkeys(blocks))
        for block in found:
            heapify(block.heap)
        return found

    def _blocks_of(self, first: Ints, shared: list[_Count]) -> list[_Block]:
        """Return each group's block. Blocks are few, so checking all of them for each pod pays."""
        which = np.zeros(len(first), np.int64)
        for one in shared:
            codes = one.cells.codes[first]
            values, finer = np.unique(which * one.cells.number + codes, return_inverse=True)
            if len(values) ** 2 > len(first):
                break
            self._coarse.append(one)
            which = finer
        blocks: dict[int, _Block] = {}
        pairs = zip(which.tolist(), first.tolist(), strict=True)
        return [blocks.get(n) or blocks.setdefault(n, _Block(row)) for n, row in pairs]

    def next(self) -> int:
        """Place one pod; return its row, or -1 if no node takes it."""
        best: _Entry | None = None
        for block in self._blocks:
            self.looks += len(self._coarse)
            if not all(one.accepts(block.row) for one in self._coarse):
                continue
            group = self._first_of(block)
            if group is None:
                continue
            found = self._entry(group, self._counts)
            if best is None or found < best:
                best = found
        if best is None:
            return -1
        return self._take(best[2])

    def _first_of(self, block: _Block) -> _Group | None:
        """Return the block's first group, by fewest pods, that takes a pod; None without one."""
        heap, fine = block.heap, self._fine
        while heap:
            self.looks += 1 + len(fine) + len(self._apart)
            group = heap[0][2]
            if self._is_taken(group.first):
                heappop(heap)
                continue
            now = self._entry(group, fine)
            if now[0] != heap[0][0]:
                heapreplace(heap, now)
                continue
            refusing = next((one for one in fine if not one.accepts(group.first)), None)
            if refusing is None:
                return group
            heappop(heap)
            refusing.wait(group)
        return None

    def _is_taken(self, row: int) -> bool:
        apart = zip(self._apart, self._taken, strict=True)
        return any(codes[row] in taken for codes, taken in apart)

    @staticmethod
    def _entry(group: _Group, counts: list[_Count]) -> _Entry:
        row = group.rows[0][2]
        return tuple([one.pods(row) for one in counts]), group.number, group

    def _take(self, group: _Group) -> int:
        """Place a pod on the first node of the block's first group; return the row."""
        row = group.first
        heappop(group.block.heap)
        self._left[row] -= 1
        changed = [one for count in self._counts for one in count.add(row)]
        for codes, taken in zip(self._apart, self._taken, strict=True):
            if codes[row] >= 0:
                taken.add(codes[row])
        if self._per_node or not self._left[row]:
            heappop(group.rows)
            if self._left[row]:  # behind the nodes with the same count
                self._turns += 1
                level = sum(one.pods(row) for one in self._per_node)
                heappush(group.rows, (level, self._turns, row))
        if group.rows:
            changed.append(group)
        self.looks += len(self._counts) * (1 + len(changed))
        for one in changed:
            heappush(one.block.heap, self._entry(one, self._fine))
        return row


def _agreeing(codes: list[Ints], order: Ints) -> Ints:
    """Return int64[m]: equal numbers for rows equal in all ``codes``, in order of first rows."""
    which = np.zeros(len(order), np.int64)
    for one in codes:
        here = one[order] + 1
        which = np.unique(which * (here.max(initial=0) + 1) + here, return_inverse=True)[1]
    _, first, which = np.unique(which, return_index=True, return_inverse=True)
    numbers: Ints = np.argsort(np.argsort(first))[which]
    return numbers


def place_one_by_one(
    count: int,
    slots: Ints,
    order: Ints,
    spread: Sequence[tuple[Cells, Levels]],
    apart: Sequence[Cells],
    steps: Steps | None = None,
) -> Ints:
    """Return int64[n]: how many of ``count`` pods each node gets.

    ``order`` has the rows with slots, the best first. No domain of ``apart`` gets a second pod; a
    node without a domain may. Raises OutOfStepsError when the ``steps`` (None: no bound) run out.
    """
    state = _OneByOne(slots, order, spread, apart)
    pods = np.zeros(len(slots), np.int64)
    for _ in range(count):
        if steps is not None:
            steps.take(state.looks // costs.SPREAD_LOOKUPS_PER_STEP)
            steps.expect()
            state.looks %= costs.SPREAD_LOOKUPS_PER_STEP
        row = state.next()
        if row < 0:
            break
        pods[row] += 1
    return pods
