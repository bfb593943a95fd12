"""Who wants to be woken, and when. A wish is never withdrawn: who is woken looks what is true."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

Key = tuple[str, str]
"""Namespace and name of a pod; for a node the namespace is empty."""

_STALE_MAX = 10_000


class Timers:
    """Keys by the monotonic second at which they are due; ties in the order of their coming."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Key]] = []
        self._order = count()

    def add(self, due_s: float, key: Key) -> None:
        """Wake ``key`` at that time."""
        heapq.heappush(self._heap, (due_s, next(self._order), key))

    def pop(self, now_s: float) -> tuple[float, Key] | None:
        """Return and forget what has been due for the longest time; None when nothing is."""
        if not self._heap or self._heap[0][0] > now_s:
            return None
        due_s, _, key = heapq.heappop(self._heap)
        return due_s, key

    def next_s(self) -> float | None:
        """Return when the next one is due; None when there is none."""
        return self._heap[0][0] if self._heap else None

    def tidy(self, wanted: int, is_wanted: Callable[[float, Key], bool]) -> None:
        """Drop wishes that nobody has any more, if they are many: ``wanted`` are expected."""
        if len(self._heap) > 2 * wanted + _STALE_MAX:
            self._heap = [one for one in self._heap if is_wanted(one[0], one[2])]
            heapq.heapify(self._heap)
