"""Joint searches that go on over several turns. Written by ``plan.cycle``.

A search is about the room as it was when it began. So if one ends in vain, and room has become free
since, another one has to begin.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.core import policy
from quorate.core.model import GangKey
from quorate.core.plan.search import JointSearch

Part = tuple[int, bool]
"""Which room it is about: how many holds are left out, and whether some nodes are."""


class _Kept(NamedTuple):
    search: JointSearch
    news: int
    """How often pods may have come to fit, before it began."""


class Searches:
    """The searches that were not finished: few, for each keeps what it needs of all nodes."""

    def __init__(self) -> None:
        self._of: dict[GangKey, dict[Part, _Kept]] = {}
        """The gang whose search was touched longest ago comes first."""
        self._news = 0

    def __len__(self) -> int:
        """Return how many gangs have some."""
        return len(self._of)

    def __contains__(self, key: GangKey) -> bool:
        """Whether something is known of a gang."""
        return key in self._of

    def note_news(self) -> None:
        """Note that pods may fit where they did not."""
        self._news += 1

    def of(self, key: GangKey, part: Part) -> JointSearch | None:
        """Return what was begun for a gang, if it was."""
        kept = self._of.get(key, {}).get(part)
        return kept.search if kept is not None else None

    def are_outdated(self, key: GangKey) -> bool:
        """Whether pods may have come to fit since searches for a gang began."""
        return any(kept.news != self._news for kept in self._of.get(key, {}).values())

    def keep(self, key: GangKey, part: Part, search: JointSearch) -> None:
        """Keep a search for later turns; of too many gangs one has to begin anew."""
        parts = self._of.pop(key, {})
        before = parts.get(part)
        if before is None or before.search is not search:
            parts[part] = _Kept(search, self._news)
        self._of[key] = parts
        while len(self._of) > policy.SEARCHES_OPEN_MAX:
            del self._of[next(iter(self._of))]

    def end(self, key: GangKey) -> None:
        """Forget the searches for a gang."""
        self._of.pop(key, None)
