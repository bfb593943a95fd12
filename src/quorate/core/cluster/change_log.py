"""A log of changed rows or selectors, from which caches are brought up to date when read."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.core.model import policy


class Log:
    """Numbers of changed rows or selectors, in order. It is bounded: old entries are forgotten."""

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._forgotten = 0

    @property
    def position(self) -> int:
        """The position after the newest entry, for a later ``since``."""
        return self._forgotten + len(self._entries)

    def note(self, number: int) -> None:
        """Add an entry."""
        self._entries.append(number)
        self._shorten()

    def note_all(self, numbers: Iterable[int]) -> None:
        """Add several entries."""
        self._entries += numbers
        self._shorten()

    def since(self, position: int) -> list[int] | None:
        """Return the entries after a position; None if some of them are forgotten."""
        if position < self._forgotten:
            return None
        return self._entries[position - self._forgotten :]

    def _shorten(self) -> None:
        if len(self._entries) > 2 * policy.LOG_KEPT_MAX:
            gone = len(self._entries) - policy.LOG_KEPT_MAX
            del self._entries[:gone]
            self._forgotten += gone
