"""Gangs that have to be looked at when some time has come."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from quorate.core.model import GangKey

_STALE_FEW = 64


class Alarms:
    """One instant (epoch seconds) for each gang."""

    def __init__(self) -> None:
        self._due_s: dict[GangKey, float] = {}
        self._heap: list[tuple[float, GangKey]] = []
        """Some were cancelled, or set anew."""

    def __iter__(self) -> Iterator[GangKey]:
        """Iterate over the gangs, in no order."""
        return iter(self._due_s)

    def __contains__(self, key: GangKey) -> bool:
        """Whether the gang has an alarm."""
        return key in self._due_s

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._due_s)

    def set(self, key: GangKey, due_s: float) -> None:
        """Set a gang's alarm, in the place of an earlier one."""
        if self._due_s.get(key) != due_s:
            self._due_s[key] = due_s
            heappush(self._heap, (due_s, key))
        if len(self._heap) > 2 * len(self._due_s) + _STALE_FEW:
            self._heap = [(due_s, key) for key, due_s in self._due_s.items()]
            heapify(self._heap)

    def discard(self, key: GangKey) -> None:
        """Cancel a gang's alarm, if it has one."""
        self._due_s.pop(key, None)

    def take_due(self, now_s: float) -> list[GangKey]:
        """Return and forget the gangs whose time has come."""
        found = []
        while (next_s := self.next_s()) is not None and next_s <= now_s:
            found.append(heappop(self._heap)[1])
            del self._due_s[found[-1]]
        return found

    def next_s(self) -> float | None:
        """Return when the next one is due; None when there is none."""
        while self._heap and self._due_s.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None
