"""Searches for victims that go on over several turns. Written by ``preempt.clearing``.

Such a search looks at node after node, each as it is then.
"""

from __future__ import annotations

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import policy
from quorate.core.preempt.preemption import Known

Preemptor = tuple[PodClass, int, str]
"""Who looks for victims: pods of a class and a priority, or (by uid) one that is nominated."""


class VictimSearches:
    """What is known of nodes where it took longer than a turn to ask all of them."""

    def __init__(self) -> None:
        self._of: dict[Preemptor, Known] = {}
        """The newest comes last."""

    def keep(self, who: Preemptor, known: Known) -> None:
        """Keep what a search found out before its turn ended; of too many the oldest goes."""
        self._of.pop(who, None)
        self._of[who] = known
        while len(self._of) > max(policy.SEARCHES_OPEN_MAX, 1):
            del self._of[next(iter(self._of))]

    def take(self, who: Preemptor) -> Known | None:
        """Return and forget what earlier turns found out."""
        known = self._of.pop(who, None)
        if known is not None:
            known.old = set(known.answers)
        return known
