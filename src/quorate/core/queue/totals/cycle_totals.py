"""Slots of all tallied classes during one turn: as at its beginning, less what the turn placed.

In: ``SlotTotals``, the room withheld by priority, and the rows on which pods were placed, with the
room left there. Out: how many slots a gang of a priority may use. It lasts one turn, and does not
change the ``SlotTotals``. Called by ``waking``, ``line`` and ``blocked``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.model.steps import Steps
from quorate.core.queue.totals.slots import SlotTotals
from quorate.core.queue.totals.tallies import Tally
from quorate.core.queue.totals.withheld import Withheld


class CycleTotals:
    """The totals of one turn. ``withheld`` is called again when pods were placed on its rows."""

    def __init__(self, base: SlotTotals, withheld: Callable[[], Withheld], steps: Steps) -> None:
        self._base = base
        self._ask_withheld = withheld
        self._steps = steps
        self._totals: Ints = base.totals.copy()
        self._free: dict[int, Ints] = {}
        """By row on which pods were placed, int64[r]: what is left there."""
        self._fresh: list[tuple[Ints, Ints]] = []
        """Rows, and what is left there, that are not in the totals yet."""
        self._withheld: Withheld | None = None
        self._withheld_slots_by_band: dict[int, Ints] = {}
        """By band, int64[tallies]: slots that are withheld."""
        self.version = 0
        """Grows whenever pods are placed."""

    def note_placed(self, rows: Iterable[int], free: Ints) -> None:
        """Note that pods were placed on these rows; ``free`` is int64[n, r], left on all nodes."""
        where = np.unique(np.fromiter(rows, np.int64))
        self._fresh.append((where, free[where]))
        self.version += 1

    def of(self, tally: Tally, priority: float) -> int:
        """Return the slots of a class that a gang of this priority may use."""
        self._bring_up_to_date()
        return int(
            self._totals[tally.index] - self._withheld_slots(self._band(priority))[tally.index]
        )

    def all(self) -> tuple[Ints, list[int]]:
        """Return int64[bands, tallies], the slots, and the priorities of bands but the last.

        See ``Withheld``.
        """
        self._bring_up_to_date()
        assert self._withheld is not None, "it was settled"
        bands = range(len(self._withheld.priorities) + 1)
        left = np.array([self._totals - self._withheld_slots(band) for band in bands])
        return left, self._withheld.priorities

    def _band(self, priority: float) -> int:
        assert self._withheld is not None, "it was settled"
        return self._withheld.band(priority)

    def _bring_up_to_date(self) -> None:
        """Bring the totals up to date with placed pods and with classes tallied since."""
        fresh: dict[int, Ints] = {}
        for where, free in self._fresh:
            fresh.update(zip(where.tolist(), free, strict=True))
        self._fresh.clear()
        rows = list(fresh)
        if len(self._base) > len(self._totals):
            self._free.update(fresh)
            before = self._base.free_on(list(self._free))
            self._totals = self._base.totals + self._change(list(self._free), before)
            self._withheld_slots_by_band.clear()
        elif rows:
            before = self._free_on(rows)
            self._free.update(fresh)
            self._totals = self._totals + self._change(rows, before)
        if self._withheld is None or not self._withheld.rows.isdisjoint(rows):
            self._withheld = self._ask_withheld()
            self._withheld_slots_by_band.clear()

    def _free_on(self, rows: list[int]) -> Ints:
        """Return int64[m, r]: what is left on m rows, as the totals count it."""
        free = self._base.free_on(rows)
        for place, row in enumerate(rows):
            if row in self._free:
                free[place] = self._free[row]
        return free

    def _change(self, rows: list[int], before: Ints) -> Ints:
        """Return int64[tallies]: the change of totals since ``before`` was left on the rows."""
        if not rows:
            return np.zeros(len(self._base), np.int64)
        return self._sums(rows, self._free_on(rows)) - self._sums(rows, before)

    def _sums(self, rows: list[int], free: Ints) -> Ints:
        return self._base.sums_if(np.array(rows, np.int64), free, self._steps)

    def _withheld_slots(self, band: int) -> Ints:
        found = self._withheld_slots_by_band.get(band)
        if found is None:
            assert self._withheld is not None, "it was settled"
            rows, held = self._withheld.in_band(band)
            found = np.zeros(len(self._totals), np.int64)
            if rows:
                free = self._free_on(rows)
                found = self._sums(rows, free) - self._sums(rows, free - held)
            self._withheld_slots_by_band[band] = found
        return found
