"""A round: each of many gangs is named once, a few at a time.

For what makes the words of all blocked gangs another: that must not have all of them explained at
once.
"""

from __future__ import annotations

from collections import deque

from quorate.core.model import GangKey

_STALE_FEW = 64


class Rounds:
    """The gangs that rounds go over, the one that was named longest ago first."""

    def __init__(self) -> None:
        self._places: dict[GangKey, int] = {}
        self._circle: deque[tuple[GangKey, int]] = deque()
        """Gangs with their places; some have left, or have another place."""
        self._made = 0
        self._left = 0

    @property
    def is_under_way(self) -> bool:
        """Whether some have not been named in this round."""
        return self._left > 0

    def add(self, key: GangKey) -> None:
        """Have rounds go over a gang, whose words are up to date."""
        self._made += 1
        self._places[key] = self._made
        self._circle.append((key, self._made))
        if len(self._circle) > 2 * len(self._places) + _STALE_FEW:
            self._circle = deque(one for one in self._circle if self._places.get(one[0]) == one[1])
            self._left = min(self._left, len(self._circle))

    def discard(self, key: GangKey) -> None:
        """Leave a gang out from now on."""
        self._places.pop(key, None)

    def begin(self) -> None:
        """Name each of them once from now on."""
        self._left = len(self._circle)

    def take(self, most: int) -> list[GangKey]:
        """Return the next ones, at most so many."""
        found: list[GangKey] = []
        while self._left > 0 and len(found) < most:
            self._left -= 1
            key, place = self._circle.popleft()
            if self._places.get(key) == place:
                self._circle.append((key, place))
                found.append(key)
        return found
