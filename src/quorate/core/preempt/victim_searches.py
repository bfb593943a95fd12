"""Searches for victims that take several turns. Called by ``preempt.cycle_preemptions``.

Such a search examines node after node, each in its state at that moment.
"""

from __future__ import annotations

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import policy
from quorate.core.preempt.preemption import NodeResults

Preemptor = tuple[PodClass, int, str]
"""Who needs victims: any pod of a class and a priority, or one nominated pod, by uid."""


class VictimSearches:
    """Results by node of searches that did not finish within one turn."""

    def __init__(self) -> None:
        self._of: dict[Preemptor, NodeResults] = {}
        """Ordered by age, the newest last."""

    def keep(self, who: Preemptor, results: NodeResults) -> None:
        """Store a search's results when its turn ends; above the bound the oldest go."""
        self._of.pop(who, None)
        self._of[who] = results
        while len(self._of) > max(policy.SEARCHES_OPEN_MAX, 1):
            del self._of[next(iter(self._of))]

    def take(self, who: Preemptor) -> NodeResults | None:
        """Remove and return the results of earlier turns; None if there are none."""
        results = self._of.pop(who, None)
        if results is not None:
            results.earlier = set(results.by_row)
        return results
