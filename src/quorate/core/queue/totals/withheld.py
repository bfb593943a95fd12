"""Room that gangs of a priority may not use: reservations, and what is promised to nominated pods.

In: priorities, rows and amounts. Out: for a gang's priority, which room is not for it. A gang
yields to what is reserved at its own priority or a higher one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.model import policy

Amounts = tuple[tuple[int, int], ...]


class Withheld:
    """What is withheld, on shelves: the first one is for the lowest priorities, and holds all.

    Shelf i is for gangs of at most ``priorities[i]``, and above those of the shelf before. From the
    others nothing is withheld: theirs is the last shelf, which is empty. Of too many priorities the
    highest are told apart; gangs between the others may use too much here, never too little.
    """

    def __init__(self, found: Iterable[tuple[int, int, Amounts]], width: int) -> None:
        """Sort what is withheld: ``(priority, row, demands)``; ``width`` is r, of resources."""
        self._found = sorted(found)
        self._width = width
        every = sorted({priority for priority, _, _ in self._found})
        self.priorities = every[-policy.PRIORITIES_WATCHED_MAX :]
        self.rows = {row for _, row, _ in self._found}

    def shelf(self, priority: float) -> int:
        """Return the shelf for gangs of a priority."""
        return bisect_left(self.priorities, priority)

    def on_shelf(self, shelf: int) -> tuple[list[int], Ints]:
        """Return rows, and int64[len(rows), r]: what is withheld there."""
        if shelf == len(self.priorities):
            return [], np.zeros((0, self._width), np.int64)
        lowest = self.priorities[shelf]
        mine = [(row, demands) for priority, row, demands in self._found if priority >= lowest]
        rows = sorted({row for row, _ in mine})
        place = {row: index for index, row in enumerate(rows)}
        held = np.zeros((len(rows), self._width), np.int64)
        for row, demands in mine:
            for column, amount in demands:
                if column < self._width:
                    held[place[row], column] += amount
        return rows, held
