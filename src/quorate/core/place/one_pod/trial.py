"""Whether a pod would fit on a node with some pods removed from it or others added.

Used by ``nominated`` and ``preempt.preemption``. The cost depends on the node's pods. Only rules
about pods of whole domains judge all nodes, on the trial's own counts. Each rule counts its steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.labels.neighbours import uses_selectors
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model.steps import Steps, costs
from quorate.core.room.room import Room
from quorate.core.room.volume_room import MovedVolumes
from quorate.core.rules.pods import pod_topology_spread
from quorate.core.rules.table import ASKED_BY_NODE, FILTERS, ON_USE
from quorate.core.rules.verdict import Refused, Verdict


class Trial:
    """One node with pods removed or added. Rules that no pod can change are not asked.

    ``rules`` are those that apply to the pod now: a rule that kube-scheduler's PreFilter skips
    stays skipped, whatever pods are added. ``promised`` are the nominated pods to which the pod
    yields: it must fit with them and without them.
    """

    def __init__(
        self,
        pod_class: PodClass,
        row: int,
        room: Room,
        cluster: Cluster,
        rules: Iterable[str],
        promised: Sequence[PodEntry],
    ) -> None:
        self._pod_class = pod_class
        self._row = row
        self._cluster = cluster
        self._promised = promised
        applied = set(rules)
        self._counted = [
            rule for rule in FILTERS if rule.name in applied and rule.name not in ASKED_BY_NODE
        ]
        self._room = room.what_if() if self._counted else room
        self._steps = room.steps or Steps(0)
        self._steps.take()
        self._volumes: MovedVolumes | None = None
        if self._counted:
            self._volumes = self._room.volumes.moved = MovedVolumes(room.snapshot.storage, row)
        self._concerns = (
            cluster.neighbours.deciding_selectors(pod_class) if self._counted else frozenset()
        )
        self._all_of_namespace = (
            pod_topology_spread.empty_selectors(pod_class, room) if self._counted else frozenset()
        )
        """Selectors that count pods in a trial alone."""
        self._uncounted: Counter[PodClass] = Counter()
        """Pods added or (negative) removed since the rules were asked; many changes cancel out."""
        self._is_stale = True
        """Whether counts may have changed since the rules last accepted the pod."""
        self._on_node = [
            rule.on_node(room, row, cluster)
            for rule in ON_USE
            if rule.name in applied and rule.on_node is not None
        ]

    def remove(self, entry: PodEntry) -> None:
        """Remove a pod of the node, in the trial only."""
        self._shift(entry, -1)

    def add(self, entry: PodEntry) -> None:
        """Add a pod to the node, in the trial only."""
        self._shift(entry, 1)

    def _shift(self, entry: PodEntry, pods: int) -> None:
        for one in self._on_node:
            one.shift(entry, pods)
        if self._volumes is not None:
            self._is_stale |= self._volumes.shift(entry.pod.uid, pods)
            self._shift_counts(entry, pods)

    def _shift_counts(self, entry: PodEntry, pods: int) -> None:
        """Change the counts of label rules by ``pods``, if any of them matches this pod."""
        neighbours = self._cluster.neighbours
        matched = neighbours.matched(entry.label_set)
        if not uses_selectors(entry.pod.spec) and matched.isdisjoint(self._concerns):
            return
        pod_class = self._cluster.classes.variant(entry.pod_class, matched)
        self._uncounted[pod_class] += pods
        looks_back = bool(entry.pod.spec.anti_affinity)
        self._is_stale |= looks_back or not matched.isdisjoint(self._concerns)

    def refused(self) -> Refused | None:
        """Return why the node refuses the pod; None if it fits."""
        for entry in self._promised:
            self.add(entry)
        found = self._judge()
        for entry in self._promised:
            self.remove(entry)
        if found is None and self._promised:
            found = self._judge()
        return found

    def _judge(self) -> Refused | None:
        pod_class = self._pod_class
        for one in self._on_node:
            if (refused := one.refused(pod_class)) is not None:
                return refused
        if self._counted and self._is_stale:
            self._count()
        for rule in self._counted if self._is_stale else ():
            self._steps.take(1 + len(self._room.free) // costs.TRIAL_NODES_PER_STEP)
            verdict = rule.judge(pod_class, self._room) if rule.judge is not None else None
            if verdict is not None and verdict.codes[self._row]:
                return at_row(verdict, self._row)
        self._is_stale = False
        return None

    def _count(self) -> None:
        """Apply the pending changes to the counts, which are copies of arrays over all nodes."""
        here = np.array([self._row])
        for pod_class, pods in self._uncounted.items():
            if pods:
                self._steps.take(1 + len(self._room.free) // costs.TRIAL_NODES_PER_STEP)
                self._room.shift_counts(pod_class, here, np.array([pods]))
                if self._all_of_namespace:
                    here_too = self._all_of_namespace & pod_class.matched
                    self._room.suppose(here_too, here, np.array([pods]))
        self._uncounted.clear()


def at_row(verdict: Verdict, row: int) -> Refused:
    """Return the refusal that a rule's verdict has for the row."""
    refusal = verdict.refusals[verdict.codes[row] - 1]
    if verdict.several:
        texts = tuple(text for text, nodes in verdict.several if nodes[row])
        return Refused(texts, refusal.resolvable)
    return Refused((refusal.message,), refusal.resolvable)
