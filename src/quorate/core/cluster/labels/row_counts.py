"""Sparse counts by row: stored compactly, and returned as arrays on request.

Owned by ``cluster.labels.neighbours``. Counts are a dictionary while few rows have one, and an
array when that is no larger, so memory follows the number of rows with a count.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np

from quorate.core.cluster.arrays import Ints, grown
from quorate.core.cluster.lru_cache import LruCache
from quorate.core.model import policy

_Key = TypeVar("_Key", bound=Hashable)


class RowCounts:
    """One count for each row. The argument ``rows`` is the number of rows."""

    __slots__ = ("_few", "_filled", "_many")

    def __init__(self, few: dict[int, int], rows: int) -> None:
        self._few = few
        """The counts that are not 0, unless ``_many`` has them."""
        self._many: Ints | None = None
        self._filled = 0
        """How many counts in ``_many`` are not 0."""
        if len(few) * policy.COUNT_ENTRY_CELLS > rows:
            self._widen(rows)

    def __bool__(self) -> bool:
        """Whether any row has a count other than 0."""
        return bool(self._few or self._filled)

    @property
    def array(self) -> Ints | None:
        """The counts if they are stored as an array, which may be shorter than the rows."""
        return self._many

    def add(self, row: int, amount: int, rows: int) -> None:
        """Add to one count."""
        if self._many is None:
            left = self._few.get(row, 0) + amount
            if not left:
                self._few.pop(row, None)
                return
            self._few[row] = left
            if len(self._few) * policy.COUNT_ENTRY_CELLS > rows:
                self._widen(rows)
            return
        many = self._lengthened(rows)
        before = int(many[row])
        many[row] = before + amount
        self._filled += (before + amount != 0) - (before != 0)
        self._narrow()

    def add_at(self, places: Ints, amounts: Ints, rows: int) -> None:
        """Add ``amounts`` to the counts of the rows ``places``, which do not repeat."""
        if self._many is None:
            if (len(self._few) + len(places)) * policy.COUNT_ENTRY_CELLS <= rows:
                for row, amount in zip(places.tolist(), amounts.tolist(), strict=True):
                    self.add(row, amount, rows)
                return
            self._widen(rows)
        many = self._lengthened(rows)
        before = int(np.count_nonzero(many[places]))
        many[places] += amounts
        self._filled += int(np.count_nonzero(many[places])) - before
        self._narrow()

    def to_array(self, rows: int) -> Ints:
        """Return the counts as a new array, int64[rows]."""
        if self._many is not None:
            return grown(self._many, rows)
        found = np.zeros(rows, np.int64)
        at = np.fromiter(self._few.keys(), np.int64, len(self._few))
        found[at] = np.fromiter(self._few.values(), np.int64, len(self._few))
        return found

    def _lengthened(self, rows: int) -> Ints:
        assert self._many is not None
        if len(self._many) < rows:
            self._many = grown(self._many, rows)
        return self._many

    def _widen(self, rows: int) -> None:
        self._many, self._filled, self._few = self.to_array(rows), len(self._few), {}

    def _narrow(self) -> None:
        """Return to a dictionary once it is much smaller, and not at each pod that goes."""
        assert self._many is not None
        if self._filled * policy.COUNT_ENTRY_CELLS * 4 >= len(self._many):
            return
        at = np.flatnonzero(self._many)
        self._few = dict(zip(at.tolist(), self._many[at].tolist(), strict=True))
        self._many, self._filled = None, 0


Views = LruCache[RowCounts, Ints]
"""A cache of arrays for counts that are stored as dictionaries."""


class Columns(Generic[_Key]):
    """Counts by key and row. A key without counts takes no memory."""

    def __init__(self, rows: int, views: Views) -> None:
        self._rows = rows
        self._views = views
        self._counts: dict[_Key, RowCounts] = {}
        self._zeros = np.zeros(rows, np.int64)

    def __contains__(self, key: object) -> bool:
        """Whether the key has counts."""
        return key in self._counts

    def add(self, key: _Key, row: int, amount: int) -> None:
        """Add to one count."""
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = RowCounts({}, self._rows)
        counts.add(row, amount, self._rows)
        view = self._views.peek(counts)
        if view is not None:
            view[row] += amount
        if not counts:
            self.drop(key)

    def add_at(self, key: _Key, places: Ints, amounts: Ints) -> None:
        """Add ``amounts`` to the key's counts of the rows ``places``, which do not repeat."""
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = RowCounts({}, self._rows)
        counts.add_at(places, amounts, self._rows)
        view = self._views.peek(counts)
        if view is not None:
            view[places] += amounts
        if not counts:
            self.drop(key)

    def fill(self, key: _Key, few: dict[int, int]) -> None:
        """Start a key with these counts, none of which is 0; the dictionary is taken over."""
        if few:
            self._counts[key] = RowCounts(few, self._rows)

    def drop(self, key: _Key) -> None:
        """Forget the counts of a key."""
        counts = self._counts.pop(key, None)
        if counts is not None:
            self._views.drop(counts)

    def column(self, key: _Key) -> Ints:
        """Return int64[rows]: the key's counts now.

        The array is read-only. Later changes may update it in place: copy it to keep it.
        """
        counts = self._counts.get(key)
        if counts is None:
            found = self._zeros
        elif counts.array is not None:
            found = counts.array if len(counts.array) == self._rows else counts.to_array(self._rows)
        else:
            kept = self._views.get(counts)
            if kept is None:
                kept = counts.to_array(self._rows)
                self._views.put(counts, kept, policy.NEIGHBOUR_CELLS_MAX, self._rows)
            found = kept
        shown = found.view()
        shown.flags.writeable = False
        return shown

    def grow(self, rows: int, views: Views) -> None:
        """Make room for ``rows`` rows; ``views`` is an empty cache to use from now on."""
        self._rows, self._views = rows, views
        self._zeros = np.zeros(rows, np.int64)
