"""The demands of all tallied classes as flat arrays, to compute slots of all classes at once.

Used by ``slots``. The demands of all classes are one list of ``(column, amount)``; those of class i
begin at ``starts[i]``. So a class costs only as much as its own demands.
"""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints, grown
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.nodes.slots import SLOTS_MAX

_WITHOUT_LIMIT = -1
"""The column of a class without demands: every node has enough of it."""
_FIRST = 64


class Tally:
    """Names the count of slots of one class over all nodes; ``SlotTotals`` has the count.

    ``level`` is a priority: what bound pods of lower priority hold counts as room; None: nothing
    does. ``users`` counts the buckets with this tally; ``index`` is its place in the arrays.
    """

    __slots__ = ("group", "index", "key", "level", "pod_class", "users")

    def __init__(self, pod_class: PodClass, level: int | None) -> None:
        self.key = pod_class.base, level
        self.pod_class = pod_class
        self.level = level
        self.group = -1
        self.index = -1
        self.users = 0


class Demands:
    """The demands of the tallied classes. A level is given by its place in the list of levels."""

    def __init__(self) -> None:
        self.count = 0
        """The number of classes."""
        self._used = 0
        self._columns: Ints = np.zeros(_FIRST, np.int64)
        self._amounts: Ints = np.ones(_FIRST, np.int64)
        self._levels: Ints = np.zeros(_FIRST, np.int64)
        self._starts: Ints = np.zeros(_FIRST, np.int64)

    @property
    def size(self) -> int:
        """The number of demands of all classes together."""
        return self._used

    @property
    def columns(self) -> list[int]:
        """The columns that a class demands, ascending."""
        columns: list[int] = np.unique(self._columns[: self._used]).tolist()
        return [column for column in columns if column >= 0]

    def clear(self) -> None:
        """Forget all classes."""
        self.count = self._used = 0

    def add(self, checked: tuple[tuple[int, int], ...], level: int) -> int:
        """Add a class; return its place. A class without demands fits everywhere."""
        checked = checked or ((_WITHOUT_LIMIT, 1),)
        first, last = self._used, self._used + len(checked)
        while last > len(self._columns):
            self._columns = grown(self._columns, 2 * len(self._columns))
            self._amounts = grown(self._amounts, 2 * len(self._amounts), fill=1)
            self._levels = grown(self._levels, 2 * len(self._levels))
        if self.count == len(self._starts):
            self._starts = grown(self._starts, 2 * len(self._starts))
        self._columns[first:last] = [column for column, _ in checked]
        self._amounts[first:last] = [amount for _, amount in checked]
        self._levels[first:last] = level
        self._starts[self.count] = first
        self._used = last
        self.count += 1
        return self.count - 1

    def slots(self, free: Ints) -> Ints:
        """Return int64[classes, m]: the slots of each class on each of m rows.

        ``free`` is int64[levels, m, r]. The formula is that of ``cluster.nodes.slots``, for all
        classes at once. A column >= r is one that no node has.
        """
        levels, rows, width = free.shape
        padded = np.zeros((levels, width + 2, rows), np.int64)
        padded[:, :width] = free.transpose(0, 2, 1)
        padded[:, width] = SLOTS_MAX
        columns = self._columns[: self._used]
        inside = np.where(columns >= width, width + 1, columns)
        inside = np.where(columns < 0, width, inside)
        flat = self._levels[: self._used] * (width + 2) + inside
        found = padded.reshape(levels * (width + 2), rows)[flat]
        np.floor_divide(found, self._amounts[: self._used, None], out=found)
        slots: Ints = np.minimum.reduceat(found, self._starts[: self.count], axis=0)
        return np.clip(slots, 0, SLOTS_MAX, out=slots)
