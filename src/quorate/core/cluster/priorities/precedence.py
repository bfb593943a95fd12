"""What preemption reads of pods: use by priority, nominated pods, disruption budgets.

In: every pod that comes to a place or leaves it, from ``cluster.cluster``, which owns this. Out:
what bound pods take by priority, nominations, budgets, and rows where room became available. Read
by ``preempt.preemption`` and by all that places pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where
from quorate.core.cluster.gangs.pods import SETTLED
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.cluster.priorities.preemptable import Preemptable
from quorate.core.model import GangKey
from quorate.core.model.budgets import PodDisruptionBudget
from quorate.core.model.changes import PreemptionFailed
from quorate.core.model.profile import Profile


class Nominations:
    """Pods of ours that wait and are nominated, by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodEntry]] = {}
        self._node_of: dict[str, str] = {}

    def copy(self) -> Nominations:
        """Return an independent copy."""
        other = Nominations()
        other._by_node = {node: dict(there) for node, there in self._by_node.items()}
        other._node_of = dict(self._node_of)
        return other

    def __bool__(self) -> bool:
        """Whether any pod is nominated."""
        return bool(self._by_node)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the nodes to which a pod is nominated."""
        return iter(self._by_node)

    def on(self, node: str) -> list[PodEntry]:
        """Return the pods that are nominated to the node."""
        return list(self._by_node.get(node, {}).values())

    def node_of(self, uid: str) -> str:
        """Return the node to which a waiting pod is nominated, or ""."""
        return self._node_of.get(uid, "")

    def has(self, gang: GangEntry) -> bool:
        """Whether a member of the gang is nominated."""
        if len(gang.members) <= len(self._node_of):
            return any(uid in self._node_of for uid in gang.members)
        return any(uid in gang.members for uid in self._node_of)

    def add(self, entry: PodEntry, node: str) -> None:
        """Nominate a waiting pod to ``node``, in place of an earlier node; "": to none."""
        self.discard(entry)
        if node:
            self._by_node.setdefault(node, {})[entry.pod.uid] = entry
            self._node_of[entry.pod.uid] = node

    def discard(self, entry: PodEntry) -> str:
        """Remove a pod's nomination; return its node, or ""."""
        node = self._node_of.pop(entry.pod.uid, "")
        if node:
            there = self._by_node[node]
            del there[entry.pod.uid]
            if not there:
                del self._by_node[node]
        return node


class Budgets:
    """All budgets that exist."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, PodDisruptionBudget]] = {}

    def put(self, budget: PodDisruptionBudget) -> None:
        """Take a budget's newest version."""
        self._by_namespace.setdefault(budget.namespace, {})[budget.name] = budget

    def remove(self, namespace: str, name: str) -> None:
        """Forget a budget."""
        there = self._by_namespace.get(namespace, {})
        there.pop(name, None)
        if not there:
            self._by_namespace.pop(namespace, None)

    def split(self, pods: Iterable[PodEntry]) -> tuple[list[PodEntry], list[PodEntry]]:
        """Return the pods whose eviction violates a budget, and the others.

        Earlier pods use budgets first; both lists keep the order. A pod whose eviction the API
        server has counted already uses none (kube-scheduler's filterPodsWithPDBViolation).
        """
        left: dict[tuple[str, str], int] = {}
        violating: list[PodEntry] = []
        others: list[PodEntry] = []
        for entry in pods:
            violates = False
            for budget in self._of(entry):
                key = budget.namespace, budget.name
                left[key] = left.get(key, budget.allowed) - 1
                violates = violates or left[key] < 0
            (violating if violates else others).append(entry)
        return violating, others

    def _of(self, entry: PodEntry) -> list[PodDisruptionBudget]:
        """Return the budgets that the pod's eviction uses; here an empty selector matches none."""
        pod = entry.pod
        budgets = self._by_namespace.get(pod.namespace)
        if not budgets or not pod.labels:
            return []
        labels = dict(pod.labels)
        return [
            budget
            for budget in budgets.values()
            if budget.selector is not None
            and budget.selector.requirements
            and pod.name not in budget.disrupted
            and budget.selector.matches(labels)
        ]


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
