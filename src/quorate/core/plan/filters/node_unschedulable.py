"""NodeUnschedulable: a cordoned node takes only pods that tolerate the cordon's taint."""

from __future__ import annotations

from quorate.core.model import PodShape, Taint
from quorate.core.plan.filters.taint_toleration import tolerates
from quorate.core.state.encoding import Mask
from quorate.core.state.snapshot import Snapshot

MESSAGE = "node(s) were unschedulable"

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def passes(shape: PodShape, snapshot: Snapshot) -> Mask:
    """Return bool[n]: which nodes are not cordoned, or all if the pod tolerates a cordon."""
    if tolerates(shape.tolerations, _CORDON):
        return snapshot.alive.copy()
    return ~snapshot.unschedulable
