"""Searches that go on over several turns: joint ones, and those for victims. Written by a cycle.

A joint search is about the room as it was when it began. So if one ends in vain, and room has
become free since, another one has to begin. A search for victims looks at node after node, each as
it is then.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import GangKey, policy
from quorate.core.plan.search import JointSearch
from quorate.core.preempt.preemption import Known

Part = tuple[int, bool]
"""Which room it is about: how many holds are left out, and whether some nodes are."""
Preemptor = tuple[PodClass, int, str]
"""Who looks for victims: pods of a class and a priority, or (by uid) one that is nominated."""


class _Kept(NamedTuple):
    search: JointSearch
    news: int
    """How often pods may have come to fit, before it began."""


class Searches:
    """The searches that were not finished: few, for each keeps what it needs of all nodes."""

    def __init__(self) -> None:
        self._of: dict[GangKey, dict[Part, _Kept]] = {}
        """The gang whose search was touched longest ago comes first."""
        self._learnt: dict[Preemptor, Known] = {}
        """What is known of nodes where it took longer than a turn; the newest comes last."""
        self.news = 0
        """How often pods may have come to fit where they did not."""

    def __len__(self) -> int:
        """Return how many gangs have some."""
        return len(self._of)

    def __contains__(self, key: GangKey) -> bool:
        """Whether something is known of a gang."""
        return key in self._of

    def note_news(self) -> None:
        """Note that pods may fit where they did not."""
        self.news += 1

    def of(self, key: GangKey, part: Part) -> JointSearch | None:
        """Return what was begun for a gang, if it was."""
        kept = self._of.get(key, {}).get(part)
        return kept.search if kept is not None else None

    def are_outdated(self, key: GangKey) -> bool:
        """Whether pods may have come to fit since searches for a gang began."""
        return any(kept.news != self.news for kept in self._of.get(key, {}).values())

    def keep(self, key: GangKey, part: Part, search: JointSearch) -> None:
        """Keep a search for later turns; of too many gangs one has to begin anew."""
        parts = self._of.pop(key, {})
        before = parts.get(part)
        if before is None or before.search is not search:
            parts[part] = _Kept(search, self.news)
        self._of[key] = parts
        while len(self._of) > policy.SEARCHES_OPEN_MAX:
            del self._of[next(iter(self._of))]

    def end(self, key: GangKey) -> None:
        """Forget the searches for a gang."""
        self._of.pop(key, None)

    def keep_learnt(self, who: Preemptor, learnt: Known) -> None:
        """Keep what a search for victims found out before its turn ended."""
        self._learnt.pop(who, None)
        self._learnt[who] = learnt
        while len(self._learnt) > max(policy.SEARCHES_OPEN_MAX, 1):
            del self._learnt[next(iter(self._learnt))]

    def take_learnt(self, who: Preemptor) -> Known | None:
        """Return and forget what earlier turns found out."""
        learnt = self._learnt.pop(who, None)
        if learnt is not None:
            learnt.old = set(learnt.answers)
        return learnt
