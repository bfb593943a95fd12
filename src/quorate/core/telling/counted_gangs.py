"""Counts of the gangs of which something is told, kept as it is told. Owned by ``telling``.

In: what is told of a gang, and which of its members wait. Out: counts for metrics. A change costs
the same, however many gangs there are; only ``oldest_s`` walks the gangs that wait.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry
from quorate.core.model import GangKey
from quorate.core.model.quantity import counts_gpus
from quorate.core.model.reasons import GangState, Reason


class _Counted(NamedTuple):
    state: GangState
    reason: Reason
    gpus: tuple[tuple[str, int], ...]


class CountedGangs:
    """How many gangs are in which state, why they wait and since when, and what for."""

    def __init__(self) -> None:
        self.states: Counter[GangState] = Counter()
        self.reasons: Counter[Reason] = Counter()
        self.gpus: Counter[str] = Counter()
        """GPUs that waiting members request, by the resource's name."""
        self._gangs: dict[GangKey, _Counted] = {}
        self._since_s: defaultdict[Reason, dict[GangKey, float]] = defaultdict(dict)

    def put(
        self, gang: GangEntry, state: GangState, reason: Reason, waiting: Iterable[PodEntry]
    ) -> None:
        """Count a gang as it is now; ``waiting`` are the members who are told why they wait.

        One without pods waits since its object was made.
        """
        self.drop(gang.key)
        gpus = tuple(_gpus_of(gang))
        self._gangs[gang.key] = _Counted(state, reason, gpus)
        self._add(state, reason, gpus, 1)
        since_s = min((entry.pod.created_s for entry in waiting), default=None)
        if not gang.members:
            since_s = gang.created_s
        if since_s is not None:
            self._since_s[reason][gang.key] = since_s

    def drop(self, key: GangKey) -> None:
        """Count a gang no longer."""
        counted = self._gangs.pop(key, None)
        if counted is not None:
            self._add(*counted, -1)
            self._since_s[counted.reason].pop(key, None)

    def oldest_s(self, reason: Reason) -> float | None:
        """Return the creation (epoch seconds) of the oldest that waits for this reason."""
        return min(self._since_s[reason].values(), default=None)

    def _add(
        self, state: GangState, reason: Reason, gpus: tuple[tuple[str, int], ...], times: int
    ) -> None:
        self.states[state] += times
        self.reasons[reason] += times
        for name, amount in gpus:
            self.gpus[name] += times * amount
            if not self.gpus[name]:
                del self.gpus[name]  # tenants write names


def _gpus_of(gang: GangEntry) -> Iterable[tuple[str, int]]:
    for alike in gang.waiting.values():
        for name, amount in next(iter(alike.values())).pod_class.asked:
            if counts_gpus(name):
                yield name, amount * len(alike)
