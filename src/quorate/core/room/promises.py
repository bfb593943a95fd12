"""What a cycle has promised and decided so far, beside the room that it has taken.

In: the cluster's nominations, and what the cycle adds to them. Out: who is promised room where, and
which pods are about to go. A value of one cycle; the cluster learns of it when the plan is applied.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry
from quorate.core.cluster.gangs.pods import Where
from quorate.core.cluster.priorities.nominations import Nominations
from quorate.core.model import GangKey

Promised = dict[int, list[PodEntry]]
"""Nominated pods by the row of their node."""


@dataclass(slots=True)
class Promises:
    """Nominations, victims, and gangs whose binds have begun, as one cycle sees them."""

    cluster: Cluster
    nominated: Nominations
    going: set[str] = field(default_factory=set)
    """Uids of pods that this cycle deletes for others."""
    placed: set[GangKey] = field(default_factory=set)
    """Gangs of which this cycle has placed members: their pods are no victims for a while."""

    @classmethod
    def of(cls, cluster: Cluster) -> Promises:
        """Return promises of its own for one cycle."""
        return cls(cluster, cluster.precedence.nominated.copy())

    def to_others(self, priority: int, but: GangEntry | PodEntry | None = None) -> Promised:
        """Return by row the nominated pods to which pods of a priority yield, ``but`` left out."""
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

    def is_going(self, entry: PodEntry) -> bool:
        """Whether a pod is being deleted to make room for another one."""
        by_others = entry.pod.terminating and entry.pod.preempted
        return entry.preempting or entry.pod.uid in self.going or by_others

    def may_go(self, entry: PodEntry) -> bool:
        """Whether a pod may be a victim, as far as this cycle has come."""
        gang = entry.gang
        if entry.where is not Where.PAST and gang is not None and gang.key in self.placed:
            return False
        return entry.may_be_preempted
