"""The nominations, victims and placed gangs of one cycle; the room it took is in ``Room``.

In: the cluster's nominations, and those that the cycle adds. Out: which pods are promised room
where, and which are victims. The cluster gets these changes when the plan is applied.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry
from quorate.core.cluster.gangs.pods import Where
from quorate.core.cluster.priorities.precedence import Nominations
from quorate.core.model import GangKey

Promised = dict[int, list[PodEntry]]
"""Nominated pods by the row of their node."""


@dataclass(slots=True)
class Promises:
    """Nominations, victims and gangs with binds under way, as one cycle knows them."""

    cluster: Cluster
    nominated: Nominations
    victims: set[str] = field(default_factory=set)
    """Uids of pods that this cycle deletes for others."""
    placed: set[GangKey] = field(default_factory=set)
    """Gangs with members that this cycle placed: their pods cannot be victims yet."""

    @classmethod
    def of(cls, cluster: Cluster) -> Promises:
        """Return new promises for one cycle, copied from the cluster's nominations."""
        return cls(cluster, cluster.precedence.nominated.copy())

    def to_others(self, priority: int, but: GangEntry | PodEntry | None = None) -> Promised:
        """Return, by row, the nominated pods to which this priority yields, without ``but``."""
        found: Promised = {}
        if not self.nominated:
            return found
        rows = self.cluster.nodes.rows
        for node in self.nominated:
            there = [
                entry
                for entry in self.nominated.on(node)
                if entry.pod.priority >= priority and entry is not but and entry.gang is not but
            ]
            if there and node in rows:
                found[rows[node]] = there
        return found

    def is_victim(self, entry: PodEntry) -> bool:
        """Whether a pod is being deleted to make room for another one."""
        by_others = entry.pod.terminating and entry.pod.preempted
        return entry.preempting or entry.pod.uid in self.victims or by_others

    def may_be_victim(self, entry: PodEntry) -> bool:
        """Whether a pod may be a victim, given what this cycle has decided so far."""
        gang = entry.gang
        if entry.where is not Where.PAST and gang is not None and gang.key in self.placed:
            return False
        return entry.may_be_preempted
