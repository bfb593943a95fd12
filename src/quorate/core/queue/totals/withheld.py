"""Room that is withheld from gangs by priority: reservations, and promises to nominated pods.

In: priorities, rows and amounts. Out: by a gang's priority, the room that it may not use: that
which is reserved or promised at its own priority or a higher one. Called by ``cycle_totals``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.model import policy

Amounts = tuple[tuple[int, int], ...]


class Withheld:
    """Withheld room by band, a range of priorities; the first band is the lowest range.

    Band i is for gangs with a priority above ``priorities[i - 1]`` and of at most
    ``priorities[i]``. The last band is for all higher priorities: nothing is withheld from them.
    If there are too many priorities, only the highest have bands: a gang of lower priority may
    then see too many slots here, never too few.
    """

    def __init__(self, amounts: Iterable[tuple[int, int, Amounts]], width: int) -> None:
        """Take withheld room as ``(priority, row, demands)``; ``width`` is r, of resources."""
        self._amounts = sorted(amounts)
        self._width = width
        every = sorted({priority for priority, _, _ in self._amounts})
        self.priorities = every[-policy.PRIORITIES_WATCHED_MAX :]
        self.rows = {row for _, row, _ in self._amounts}

    def band(self, priority: float) -> int:
        """Return the number of the band for gangs of a priority."""
        return bisect_left(self.priorities, priority)

    def in_band(self, band: int) -> tuple[list[int], Ints]:
        """Return rows, and int64[len(rows), r]: what is withheld there from gangs of the band."""
        if band == len(self.priorities):
            return [], np.zeros((0, self._width), np.int64)
        lowest = self.priorities[band]
        mine = [(row, demands) for priority, row, demands in self._amounts if priority >= lowest]
        rows = sorted({row for row, _ in mine})
        place = {row: index for index, row in enumerate(rows)}
        held = np.zeros((len(rows), self._width), np.int64)
        for row, demands in mine:
            for column, amount in demands:
                if column < self._width:
                    held[place[row], column] += amount
        return rows, held
