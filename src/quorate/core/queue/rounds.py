"""Rounds: visit each of many gangs once, a few at a time.

Used when a change alters the messages of all blocked gangs, so that they are not all explained at
once. Owned by ``queue``.
"""

from __future__ import annotations

from collections import deque

from quorate.core.model import GangKey, policy


class Rounds:
    """The gangs that rounds visit, the least recently visited first."""

    def __init__(self) -> None:
        self._places: dict[GangKey, int] = {}
        self._circle: deque[tuple[GangKey, int]] = deque()
        """Gangs with their places; entries of gangs that left or moved are outdated."""
        self._made = 0
        self._left = 0

    @property
    def is_under_way(self) -> bool:
        """Whether this round has gangs left to visit."""
        return self._left > 0

    def add(self, key: GangKey) -> None:
        """Add a gang whose message is up to date; rounds visit it last."""
        self._made += 1
        self._places[key] = self._made
        self._circle.append((key, self._made))
        if len(self._circle) > 2 * len(self._places) + policy.STALE_FEW:
            self._circle = deque(one for one in self._circle if self._places.get(one[0]) == one[1])
            self._left = min(self._left, len(self._circle))

    def discard(self, key: GangKey) -> None:
        """Remove a gang from rounds."""
        self._places.pop(key, None)

    def begin(self) -> None:
        """Begin a round: visit each gang once."""
        self._left = len(self._circle)

    def take(self, most: int) -> list[GangKey]:
        """Return the next gangs of the round, at most ``most``."""
        found: list[GangKey] = []
        while self._left > 0 and len(found) < most:
            self._left -= 1
            key, place = self._circle.popleft()
            if self._places.get(key) == place:
                self._circle.append((key, place))
                found.append(key)
        return found
