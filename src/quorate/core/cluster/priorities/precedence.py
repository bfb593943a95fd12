"""What preemption reads of pods: use by priority, nominated pods, disruption budgets.

In: every pod that comes to a place or leaves it, from ``cluster.cluster``, which owns this. Out:
what bound pods take by priority, nominations, budgets, and rows where room became available. Read
by ``preempt.preemption`` and by all that places pods.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where
from quorate.core.cluster.gangs.pods import SETTLED
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.cluster.priorities.budgets import Budgets
from quorate.core.cluster.priorities.nominations import Nominations
from quorate.core.cluster.priorities.preemptable import Preemptable
from quorate.core.model import GangKey
from quorate.core.model.changes import PreemptionFailed
from quorate.core.model.profile import Profile


class Precedence:
    """All that preemption reads of pods, under these profiles."""

    def __init__(self, nodes: NodeTable, profiles: Iterable[Profile]) -> None:
        self._nodes = nodes
        self.budgets = Budgets()
        self.nominated = Nominations()
        preempts = any(profile.preempts for profile in profiles)
        self.bound = Preemptable(nodes.capacity) if preempts else None
        """What bound pods take; None if no profile preempts."""
        self.next_start = 0
        """The offset at which the next search for victims begins, so that searches rotate."""
        self.freed: set[int] = set()
        """Rows on which a promise ended, or on which pods may newly be victims."""
        self._spared: tuple[str, int] | None = None
        """The last released pod and its row, if it could not be a victim there."""

    def grow(self) -> None:
        """Make room for all rows of the nodes."""
        if self.bound is not None:
            self.bound.grow(self._nodes.capacity)

    def recount(self, entries: Iterable[PodEntry]) -> None:
        """Count again what bound pods take; ``entries`` are all pods that are counted on a row."""
        if self.bound is not None:
            self.bound = Preemptable(self._nodes.capacity)
            for entry in entries:
                self.took(entry)

    def took(self, entry: PodEntry) -> None:
        """Note that a pod is counted on its row."""
        if self.bound is None or entry.where not in SETTLED:
            return
        self.bound.take(entry.row, entry.pod.priority, entry.pod_class)
        if self._spared == (entry.pod.uid, entry.row) and entry.may_be_preempted:
            self.freed.add(entry.row)

    def released(self, entry: PodEntry) -> None:
        """Note that a pod is no longer counted on its row; the entry still has its old place."""
        if self.bound is None:
            return
        self._spared = None if entry.may_be_preempted else (entry.pod.uid, entry.row)
        if entry.where in SETTLED:
            self.bound.release(entry.row, entry.pod.priority, entry.pod_class)

    def waits(self, entry: PodEntry) -> None:
        """Note that a pod waits, so that its nomination counts."""
        self.nominated.add(entry, entry.nominated)

    def waits_no_more(self, entry: PodEntry, goes_to: str = "") -> None:
        """Note that a pod no longer waits; the entry keeps its ``nominated``.

        The row of its promise is freed, unless the pod goes to that node.
        """
        node = self.nominated.discard(entry)
        if node in self._nodes.rows and node != goes_to:
            self.freed.add(self._nodes.rows[node])

    def nominate(self, entry: PodEntry, node: str) -> None:
        """Promise a waiting pod room on ``node``, or ("") end its promise."""
        self.waits_no_more(entry)
        entry.nominated = node
        if entry.where is Where.WAITING:
            self.nominated.add(entry, node)

    def note_settled(self, gang: GangEntry) -> None:
        """Note that the gang's binds are settled: its pods may be victims from now on."""
        if self.bound is not None:
            rows = (entry.row for entry in gang.members.values() if entry.where in SETTLED)
            self.freed.update(row for row in rows if row >= 0)

    def take_freed(self) -> set[int]:
        """Return the rows freed since the last call."""
        freed, self.freed = self.freed, set()
        return freed

    def failed(self, change: PreemptionFailed, pods: dict[str, PodEntry]) -> set[GangKey]:
        """Take a failed preemption; return the gang that tries again after a back-off, if any."""
        for victim in (pods[uid] for uid in change.victims if uid in pods):
            victim.preempting = False
            if victim.row >= 0:
                self.freed.add(victim.row)
        entry = pods.get(change.uid)
        if entry is None or entry.gang is None:
            return set()
        if entry.nominated != entry.pod.nominated:  # return to the nomination in the API
            self.nominate(entry, entry.pod.nominated)
        entry.gang.memory.failed, entry.gang.memory.last_failure = True, change.message
        return {entry.gang.key}
