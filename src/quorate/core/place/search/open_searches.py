"""Joint searches that go on over several turns. Written by a cycle.

A joint search is about the room as it was when it began. So if one ends in vain, and room has
become free since, another one has to begin.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.model import GangKey, policy
from quorate.core.place.search.joint import JointSearch

Part = tuple[int, bool]
"""Which room a search is about: how many holds are left out, and whether some nodes are."""


class _Open(NamedTuple):
    search: JointSearch
    news: int
    """``OpenSearches.news`` when it began."""


class OpenSearches:
    """The joint searches that have not ended: few, for each keeps what it needs of all nodes."""

    def __init__(self) -> None:
        self._of: dict[GangKey, dict[Part, _Open]] = {}
        """The gang whose search was touched longest ago comes first."""
        self.news = 0
        """How often pods may have come to fit where they did not."""

    def __len__(self) -> int:
        """Return how many gangs have some."""
        return len(self._of)

    def __contains__(self, key: GangKey) -> bool:
        """Whether a gang has some."""
        return key in self._of

    def note_news(self) -> None:
        """Note that pods may fit where they did not."""
        self.news += 1

    def of(self, key: GangKey, part: Part) -> JointSearch | None:
        """Return what was begun for a gang, if it was."""
        begun = self._of.get(key, {}).get(part)
        return begun.search if begun is not None else None

    def are_outdated(self, key: GangKey) -> bool:
        """Whether pods may have come to fit since searches for a gang began."""
        return any(one.news != self.news for one in self._of.get(key, {}).values())

    def keep(self, key: GangKey, part: Part, search: JointSearch) -> None:
        """Keep a search for later turns; of too many gangs one has to begin anew."""
        parts = self._of.pop(key, {})
        before = parts.get(part)
        if before is None or before.search is not search:
            parts[part] = _Open(search, self.news)
        self._of[key] = parts
        while len(self._of) > policy.SEARCHES_OPEN_MAX:
            del self._of[next(iter(self._of))]

    def end(self, key: GangKey) -> None:
        """Forget the searches for a gang."""
        self._of.pop(key, None)
