"""The gangs to try in the next turn, and the order in which gangs are tried. Owned by ``queue``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model import GangKey, policy

OrderKey = tuple[bool, int, float, GangKey]


def order_key(gang: GangEntry) -> OrderKey:
    """Return the sort key of a gang; smaller comes first.

    A partly bound gang comes first, so that it is completed before others start. A gang that does
    not fit does not block those after it. The last element makes the order total.
    """
    half_started = gang.bound > 0 and not gang.started
    return (not half_started, -gang.priority, gang.created_s, gang.key)


class Ready:
    """A set of gangs with a first one. A gang is ranked again whenever it is added."""

    def __init__(self) -> None:
        self._ranks: dict[GangKey, OrderKey | None] = {}
        """Order keys; None for gangs that were added since the last ``first``."""
        self._unranked: list[GangKey] = []
        self._heap: list[OrderKey] = []
        """A heap; entries of gangs that left or were ranked again are outdated."""

    def __iter__(self) -> Iterator[GangKey]:
        """Iterate over the gangs, in no order."""
        return iter(self._ranks)

    def __contains__(self, key: GangKey) -> bool:
        """Whether the gang is ready."""
        return key in self._ranks

    def __len__(self) -> int:
        """Return the number of ready gangs."""
        return len(self._ranks)

    def add(self, key: GangKey) -> None:
        """Add a gang, or rank it again if it is there already."""
        self._ranks[key] = None
        self._unranked.append(key)

    def discard(self, key: GangKey) -> None:
        """Remove a gang, if it is there."""
        self._ranks.pop(key, None)

    def first(self, gangs: Mapping[GangKey, GangEntry]) -> OrderKey | None:
        """Return the order key of the first gang that still exists; None when there is none."""
        self._rank(gangs)
        heap = self._heap
        while heap:
            key = heap[0][-1]
            if self._ranks.get(key) == heap[0]:
                if key in gangs:
                    return heap[0]
                del self._ranks[key]
            heappop(heap)
        return None

    def pop(self) -> GangKey:
        """Remove and return the gang that ``first`` has just returned."""
        key: GangKey = heappop(self._heap)[-1]
        del self._ranks[key]
        return key

    def _rank(self, gangs: Mapping[GangKey, GangEntry]) -> None:
        new = []
        for key in self._unranked:
            if self._ranks.get(key, ()) is not None:
                continue  # it has left, or was ranked a moment ago
            if key in gangs:
                rank = self._ranks[key] = order_key(gangs[key])
                new.append(rank)
            else:
                del self._ranks[key]
        self._unranked.clear()
        self._add_all(new)

    def _add_all(self, new: Iterable[OrderKey]) -> None:
        ranks = list(new)
        is_stale = len(self._heap) > 2 * len(self._ranks) + policy.STALE_FEW
        if is_stale or len(ranks) > len(self._heap) // 8:
            self._heap = [rank for rank in self._heap if self._ranks.get(rank[-1]) == rank] + ranks
            heapify(self._heap)
            return
        for rank in ranks:
            heappush(self._heap, rank)
