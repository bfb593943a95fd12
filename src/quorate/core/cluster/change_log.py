"""What has changed, in order, for those who keep something and bring it up to date when asked."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.core.model import policy


class Log:
    """Numbers of what changed (rows, selectors); bounded: of what is long ago nobody is told."""

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._forgotten = 0

    @property
    def position(self) -> int:
        """The place after the newest entry, to ask from later."""
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
        """Return the entries after a position; None when some of them are forgotten."""
        if position < self._forgotten:
            return None
        return self._entries[position - self._forgotten :]

    def _shorten(self) -> None:
        if len(self._entries) > 2 * policy.LOG_KEPT_MAX:
            gone = len(self._entries) - policy.LOG_KEPT_MAX
            del self._entries[:gone]
            self._forgotten += gone
