"""Whether a pod would fit on a node, were some pods not there, or others there too.

Used by ``nominated`` and ``preempt.preemption``. Costs what the node's pods cost: only rules that
look at labels beyond the node judge all nodes, on counts of the trial's own. Each counts its steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.labels.neighbours import uses_selectors
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model.steps import Steps
from quorate.core.plan.filters import FIRST_RULES, RULES, node_ports, node_resources_fit
from quorate.core.plan.filters.verdict import Verdict
from quorate.core.room.moved_volumes import MovedVolumes
from quorate.core.room.room import Room

BY_LABELS = frozenset(("PodTopologySpread", "InterPodAffinity"))
"""Rules that look at what pods there are, by their labels: ``Neighbours.log`` says what changes."""
BY_NODE = frozenset((*FIRST_RULES, "NodePorts", "NodeResourcesFit"))
"""Rules that look at one node alone, and that a node in question passes, or a trial asks itself."""


_NODES_OF_A_STEP = 10_000
"""So many nodes are judged by one rule in one step, or have one count copied."""


class Refused(NamedTuple):
    """Why a node does not take the pod: its texts, and whether fewer pods could change it."""

    texts: tuple[str, ...]
    resolvable: bool


class Trial:
    """What one node would hold. The first rules are not asked: pods do not change them.

    ``rules`` are those that apply to the pod as things are: a rule that kube-scheduler's PreFilter
    skips stays skipped, whoever is thought there. ``promised`` are the nominated pods to which the
    pod yields: it has to fit beside them, and without them.
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
        self._counted = [name for name in RULES if name in applied and name not in BY_NODE]
        self._checks_fit = "NodeResourcesFit" in applied
        self._room = room.what_if() if self._counted else room
        self._steps = room.steps or Steps(0)
        self._steps.take()
        self._volumes: MovedVolumes | None = None
        if self._counted:
            self._volumes = self._room.volumes.moved = MovedVolumes(room.snapshot.storage, row)
        self._concerns = cluster.neighbours.concerns(pod_class) if self._counted else frozenset()
        self._uncounted: Counter[PodClass] = Counter()
        """Pods that came, or (negative) went, since the rules were asked: most come back before."""
        self._is_stale = True
        """Whether what rules count may differ from when they last let the pod in."""
        self._checks_ports = "NodePorts" in applied
        self._free: list[int] = room.free[row].tolist()
        self._ports = node_ports.PortsThere()
        if self._checks_ports:
            for entry in cluster.pods_on(room.snapshot.node(row).name):
                self._ports.add(entry.pod.shape.host_ports)
            self._ports.add(room.ports.on(row))

    def remove(self, entry: PodEntry) -> None:
        """Think a pod of the node away."""
        self._shift(entry, -1)

    def add(self, entry: PodEntry) -> None:
        """Think a pod there."""
        self._shift(entry, 1)

    def _shift(self, entry: PodEntry, pods: int) -> None:
        for column, amount in entry.pod_class.demands:
            self._free[column] -= pods * amount
        (self._ports.add if pods > 0 else self._ports.remove)(entry.pod.shape.host_ports)
        if self._volumes is not None:
            self._is_stale |= self._volumes.shift(entry.pod.uid, pods)
            self._shift_counts(entry, pods)

    def _shift_counts(self, entry: PodEntry, pods: int) -> None:
        """Count a pod for the rules that look at labels, if they look at pods like this one."""
        neighbours = self._cluster.neighbours
        matched = neighbours.matched(entry.label_set)
        if not uses_selectors(entry.pod.shape) and matched.isdisjoint(self._concerns):
            return
        pod_class = self._cluster.classes.matching(entry.pod_class, matched)
        self._uncounted[pod_class] += pods
        looks_back = bool(entry.pod.shape.anti_affinity)
        self._is_stale |= looks_back or not matched.isdisjoint(self._concerns)

    def refused(self) -> Refused | None:
        """Return why the node does not take the pod; None: it does."""
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
        if self._checks_ports and self._ports.conflict(pod_class.shape.host_ports):
            return Refused((node_ports.REFUSAL.message,), resolvable=True)
        if self._checks_fit and (lacks := self._lacking()):
            return lacks
        if self._counted and self._is_stale:
            self._count()
        for name in self._counted if self._is_stale else ():
            self._steps.take(1 + len(self._room.free) // _NODES_OF_A_STEP)
            verdict = RULES[name].judge(pod_class, self._room)
            if verdict is not None and verdict.codes[self._row]:
                return at_row(verdict, self._row)
        self._is_stale = False
        return None

    def _count(self) -> None:
        """Bring counts up to date: they are copies of arrays over all nodes."""
        here = np.array([self._row])
        for pod_class, pods in self._uncounted.items():
            if pods:
                self._steps.take(1 + len(self._room.free) // _NODES_OF_A_STEP)
                self._room.shift_counts(pod_class, here, np.array([pods]))
        self._uncounted.clear()

    def _lacking(self) -> Refused | None:
        table = self._room.snapshot.table
        short = [(c, a) for c, a in self._pod_class.checked if self._free[c] < a]
        missing = self._pod_class.missing
        if not (short or missing):
            return None
        texts = [node_resources_fit.message(c, table.resources.names) for c, _ in short]
        texts += [node_resources_fit.insufficient(name) for name, _ in missing]
        size = self._room.snapshot.allocatable[self._row]
        is_large_enough = all(node_resources_fit.could_hold(size, c, a) for c, a in short)
        return Refused(tuple(texts), is_large_enough and not missing)


def at_row(verdict: Verdict, row: int) -> Refused:
    """Return what a rule that refuses a node says of it."""
    refusal = verdict.refusals[verdict.codes[row] - 1]
    if verdict.several:
        texts = tuple(text for text, nodes in verdict.several if nodes[row])
        return Refused(texts, refusal.resolvable)
    return Refused((refusal.message,), refusal.resolvable)
