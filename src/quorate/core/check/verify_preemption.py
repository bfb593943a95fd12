"""Check a preemption again before its victims are deleted, by independent code.

It shares no code with the planner. In: one preemption and the cluster. Out: messages.
"""

from __future__ import annotations

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.pods import SETTLED, Where
from quorate.core.model.plan import Preemption


def verify_preemption(preemption: Preemption, cluster: Cluster) -> list[str]:
    """Return a message for each pod that must not be deleted; nothing when all is well."""
    entry = cluster.pods.get(preemption.uid)
    if entry is None or entry.where is not Where.WAITING:
        return [f"pod {preemption.name} waits for no room"] if preemption.victims else []
    wrong = []
    for victim in preemption.victims:
        other = cluster.pods.get(victim.uid)
        if other is None or other.where not in SETTLED or other.node != preemption.node:
            wrong.append(f"victim {victim.name} is not bound to node {preemption.node}")
        elif other.pod.priority >= entry.pod.priority:
            wrong.append(f"victim {victim.name} has priority {other.pod.priority}")
        gang = other.gang if other is not None and other.where is Where.BOUND else None
        # The same cycle may have given a started gang another member: that does no harm.
        if gang is not None and gang.attempt is not None and not gang.started:
            wrong.append(f"victim {victim.name} belongs to a gang that is being bound")
    if entry.pod.never_preempts and preemption.victims:
        wrong.append(f"pod {preemption.name} may preempt nobody")
    return wrong
