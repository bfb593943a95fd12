"""What bound pods take of each node, by priority: what a pod of higher priority could get.

Owned by ``cluster.priorities.precedence``; exists only if a profile preempts. Updated by change.
There is one entry for each node and priority with bound pods. After a query about many nodes, the
sum of all lower priorities is cached as an array, for the last ``policy.PREEMPTABLE_SUMS_MAX``
priorities queried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Ints, Mask, grown
from quorate.core.cluster.nodes.encoding import FIRST_RESOURCES, PODS, PodClass
from quorate.core.model import policy

Demands = tuple[tuple[int, int], ...]
"""Column and amount, amounts other than 0."""
_FIRST_WIDTH = len(FIRST_RESOURCES)


class _Sum:
    """What pods of lower priority take: int64[rows, resources]; rows in ``stale`` are outdated."""

    __slots__ = ("below", "stale")

    def __init__(self, below: Ints) -> None:
        self.below = below
        self.stale: set[int] = set()


class Preemptable:
    """What bound pods take, by row and priority. ``rows`` is the number of rows."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._taken: dict[int, dict[int, Demands]] = {}
        """By row, then by priority. The entry of a single pod is its class's own tuple."""
        self._pods: Counter[int] = Counter()
        self._sums: dict[int, _Sum] = {}
        """By queried priority, the least recently queried first."""

    def grow(self, rows: int) -> None:
        """Make room for ``rows`` rows."""
        self._rows = rows
        for kept in self._sums.values():
            if len(kept.below) < rows:
                kept.below = grown(kept.below, rows)

    def take(self, row: int, priority: int, pod_class: PodClass) -> None:
        """Count one bound pod on the row."""
        self._count(row, priority, pod_class.demands, 1)

    def release(self, row: int, priority: int, pod_class: PodClass) -> None:
        """Stop counting one bound pod on the row."""
        self._count(row, priority, pod_class.demands, -1)

    def _count(self, row: int, priority: int, demands: Demands, sign: int) -> None:
        there = self._taken.setdefault(row, {})
        total = _added(there.get(priority, ()), demands, sign)
        if total:
            there[priority] = total
        else:
            del there[priority]
            if not there:
                del self._taken[row]
        self._pods[priority] += sign
        if not self._pods[priority]:
            del self._pods[priority]
        for asked, kept in self._sums.items():
            if priority < asked:
                kept.stale.add(row)

    @property
    def lowest(self) -> int | None:
        """The lowest priority of a bound pod; None: no pod is bound."""
        return min(self._pods, default=None)

    def below(self, priority: int, rows: npt.ArrayLike, width: int) -> Ints:
        """Return int64[len(rows), width]: what pods of lower priority take of these rows.

        Few rows are summed directly; for more, the sums of all rows are cached for later queries.
        """
        asked = np.asarray(rows).astype(np.int64, copy=False)
        kept = self._sums.pop(priority, None)
        if kept is None and len(asked) <= policy.PREEMPTABLE_ROWS_FEW:
            return self._added_up(priority, asked.tolist(), width)
        if kept is None or kept.below.shape[1] < width:
            kept = _Sum(self._summed(priority, width))
            while len(self._sums) >= policy.PREEMPTABLE_SUMS_MAX:
                del self._sums[next(iter(self._sums))]
        self._sums[priority] = kept
        if kept.stale and (stale := kept.stale.intersection(asked.tolist())):
            kept.below[list(stale)] = self._added_up(priority, stale, kept.below.shape[1])
            kept.stale -= stale
        found: Ints = kept.below[asked, :width]
        return found

    def has_below(self, priority: int, rows: npt.ArrayLike) -> Mask:
        """Return bool[len(rows)]: whether a pod of lower priority is bound there."""
        found: Mask = self.below(priority, rows, _FIRST_WIDTH)[:, PODS] > 0
        return found

    def _added_up(self, priority: int, rows: Collection[int], width: int) -> Ints:
        found = np.zeros((len(rows), width), np.int64)
        for index, row in enumerate(rows):
            for other, demands in self._taken.get(row, {}).items():
                for column, amount in demands if other < priority else ():
                    if column < width:
                        found[index, column] += amount
        return found

    def _summed(self, priority: int, width: int) -> Ints:
        """Return the sums of all rows; rows with one pod of the same class are added in bulk."""
        alike: dict[int, tuple[Demands, list[int]]] = {}
        for row, there in self._taken.items():
            for other, demands in there.items():
                if other < priority:
                    alike.setdefault(id(demands), (demands, []))[1].append(row)
        found = np.zeros((self._rows, width), np.int64)
        places: list[int] = []  # in the flattened array
        amounts: list[int] = []
        for demands, rows in alike.values():
            within = [(column, amount) for column, amount in demands if column < width]
            if len(rows) > policy.PREEMPTABLE_ALIKE_FEW:
                for column, amount in within:
                    np.add.at(found[:, column], rows, amount)
            else:
                for row in rows:
                    places += [row * width + column for column, _ in within]
                    amounts += [amount for _, amount in within]
        np.add.at(found.reshape(-1), np.array(places, np.int64), amounts)
        return found


def _added(total: Demands, demands: Demands, sign: int) -> Demands:
    """Return the sum (or, with -1, the difference) without amounts of 0."""
    if not total and sign > 0:
        return demands
    sums = dict(total)
    for column, amount in demands:
        sums[column] = sums.get(column, 0) + sign * amount
    return tuple((column, amount) for column, amount in sums.items() if amount)
