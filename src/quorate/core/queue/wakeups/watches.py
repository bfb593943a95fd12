"""Watchers, each of one number and one threshold; one array comparison checks all of them.

In: watchers with a place in an array of numbers (slots by tally, or free room by resource), and a
threshold. Out: the watchers whose threshold is reached now. Called by ``blocked`` and ``waking``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from quorate.core.cluster.arrays import Ints, grown

Owner = TypeVar("Owner")
_NEVER = 2**62


class Watches(Generic[Owner]):
    """Watches by number; the number of a removed watch is reused."""

    def __init__(self) -> None:
        self._owners: list[Owner | None] = []
        self._free: list[int] = []
        self._places: Ints = np.zeros(16, np.int64)
        self._thresholds: Ints = np.full(16, _NEVER, np.int64)
        self._priorities: Ints = np.zeros(16, np.int64)

    def __len__(self) -> int:
        """Return the number of watches."""
        return len(self._owners) - len(self._free)

    @property
    def places(self) -> set[int]:
        """The places that somebody watches."""
        return set(np.unique(self._places[self._thresholds < _NEVER]).tolist())

    def add(self, owner: Owner, place: int, threshold: int, priority: int = 0) -> int:
        """Watch the number at a place; return the number of the watch.

        ``priority`` is the owner's; it decides which band ``reached`` reads.
        """
        if self._free:
            watch = self._free.pop()
            self._owners[watch] = owner
        else:
            watch = len(self._owners)
            self._owners.append(owner)
            if watch == len(self._places):
                self._places = grown(self._places, 2 * watch)
                self._thresholds = grown(self._thresholds, 2 * watch, fill=_NEVER)
                self._priorities = grown(self._priorities, 2 * watch)
        self._places[watch], self._thresholds[watch] = place, threshold
        self._priorities[watch] = priority
        return watch

    def remove(self, watch: int) -> None:
        """Forget a watch."""
        self._owners[watch] = None
        self._places[watch], self._thresholds[watch] = 0, _NEVER
        self._free.append(watch)

    def move(self, watch: int, place: int) -> None:
        """Move a watch to another place in the array."""
        self._places[watch] = place

    def reached(self, numbers: Ints, priorities: Sequence[int] = ()) -> list[Owner]:
        """Return the owners whose threshold is reached, in the order of their watches' numbers.

        ``numbers`` is int64[bands, places]. ``priorities``, ascending, are those of all bands
        but the last. An owner reads the first band whose priority is not below its own, else the
        last one.
        """
        count = len(self._owners)
        if not len(self) or not numbers.shape[1]:
            return []
        bands = np.searchsorted(priorities, self._priorities[:count]) if priorities else 0
        is_reached = numbers[bands, self._places[:count]] >= self._thresholds[:count]
        found = (self._owners[watch] for watch in np.flatnonzero(is_reached).tolist())
        return [owner for owner in found if owner is not None]
