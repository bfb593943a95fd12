"""Writes the effects of a decision into the cluster, attempts and preparations.

In: a ``Decision``, one outcome after the other. Called by ``scheduler.apply``. Planning only
reads; what it has placed, promised or learned is written here and nowhere else.
"""

from __future__ import annotations

from itertools import groupby

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.lifecycle.attempts import Attempts
from quorate.core.lifecycle.effects import GangOutcome
from quorate.core.lifecycle.preparing import Preparations
from quorate.core.model.plan import GangBinds, Preemption
from quorate.core.preempt.cycle_preemptions import displaced_by


class Applier:
    """Writes effects, one gang after the other."""

    def __init__(self, cluster: Cluster, attempts: Attempts, preparations: Preparations) -> None:
        self._cluster = cluster
        self._attempts = attempts
        self._preparations = preparations

    def apply(self, outcome: GangOutcome, now_s: float) -> None:
        """Write the effects of one gang's try; AssertionError if the gang no longer exists."""
        gang = self._cluster.gangs.get(outcome.key)
        assert gang is not None, f"gang {outcome.key} was tried"
        self._remember(gang, outcome)
        if outcome.binds is not None:
            self._assume(outcome.binds)
            self._attempts.begin(gang, outcome.binds, now_s)
            if outcome.prepares:
                self._preparations.begin(gang, outcome.binds)
        for back in outcome.take_backs:
            self._cluster.devices.taken_back.add((back.namespace, back.claim))
        if outcome.undo is not None:
            gang.lifecycle.is_undoing = True
        if outcome.preemption is not None:
            self._promise(outcome.preemption)

    @staticmethod
    def _remember(gang: GangEntry, outcome: GangOutcome) -> None:
        memory = gang.memory
        if outcome.passed_gates:
            memory.aside.end()
        if outcome.ends_avoidance:
            memory.avoid_if_possible = frozenset()
        if outcome.preemption_message is not None:
            memory.preemption_message = outcome.preemption_message
        if outcome.postponed is not None:
            memory.not_before_s, memory.last_failure = outcome.postponed

    def _assume(self, plan: GangBinds) -> None:
        """Assume the pods on their nodes, with what their claims get, until binds have outcomes."""
        cluster = self._cluster
        pods, rows = cluster.pods, cluster.nodes.rows
        for _, alike in groupby(plan.binds, key=lambda bind: pods[bind.uid].pod_class.id):
            binds = list(alike)
            entries = [pods[bind.uid] for bind in binds]
            cluster.assume(entries, [rows[bind.node] for bind in binds])
        for bind in plan.binds:
            if bind.prepare:
                prepared = [(one.key, one.volume, one.node) for one in bind.prepare]
                cluster.storage.assume(bind.uid, prepared)
            for give in bind.gives:
                key = give.namespace, give.claim
                cluster.devices.assume(key, give.allocation, bind.uid)

    def _promise(self, one: Preemption) -> None:
        """Promise a pod room on a node, or take the promise back; mark its victims as preempted."""
        cluster = self._cluster
        entry = cluster.pods[one.uid]
        for other in displaced_by(entry, one.node, cluster.precedence.nominated):
            cluster.precedence.nominate(other, "")
        for victim in one.victims:
            cluster.pods[victim.uid].preempting = True
        if cluster.precedence.nominated.node_of(one.uid) != one.node or not one.node:
            cluster.precedence.nominate(entry, one.node)
