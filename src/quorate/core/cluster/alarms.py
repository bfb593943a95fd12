"""Alarms: one time (epoch seconds) for each key, at which something is due.

Used by ``queue`` for gangs.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

from quorate.core.model import policy

_Key = TypeVar("_Key", bound=tuple[Any, ...])


class Alarms(Generic[_Key]):
    """The alarm of each key; alarms at the same time come in the order of their keys."""

    def __init__(self) -> None:
        self._due_s: dict[_Key, float] = {}
        self._heap: list[tuple[float, _Key]] = []
        """A heap; entries of alarms that were cancelled or set again are outdated."""

    def __iter__(self) -> Iterator[_Key]:
        """Iterate over the keys, in no order."""
        return iter(self._due_s)

    def __contains__(self, key: _Key) -> bool:
        """Whether the key has an alarm."""
        return key in self._due_s

    def __len__(self) -> int:
        """Return the number of alarms."""
        return len(self._due_s)

    def set(self, key: _Key, due_s: float) -> None:
        """Set a key's alarm, in place of an earlier one."""
        if self._due_s.get(key) != due_s:
            self._due_s[key] = due_s
            heappush(self._heap, (due_s, key))
        if len(self._heap) > 2 * len(self._due_s) + policy.STALE_FEW:
            self._heap = [(due_s, key) for key, due_s in self._due_s.items()]
            heapify(self._heap)

    def discard(self, key: _Key) -> None:
        """Cancel a key's alarm, if it has one."""
        self._due_s.pop(key, None)

    def take_due(self, now_s: float) -> list[_Key]:
        """Remove and return the keys whose alarms are due at ``now_s``."""
        found = []
        while (next_s := self.next_s()) is not None and next_s <= now_s:
            found.append(self.take_next())
        return found

    def take_next(self) -> _Key:
        """Remove and return the key that is due next; only after ``next_s`` returned a time."""
        _, key = heappop(self._heap)
        del self._due_s[key]
        return key

    def next_s(self) -> float | None:
        """Return when the next alarm is due (epoch seconds), or None."""
        while self._heap and self._due_s.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None
