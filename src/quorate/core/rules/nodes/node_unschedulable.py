"""NodeUnschedulable: a cordoned node takes only pods that tolerate the cordon's taint."""

from __future__ import annotations

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import Taint
from quorate.core.model.selectors import tolerates
from quorate.core.room.room import Room
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Verdict, verdict_of

REFUSAL = Refusal("node(s) were unschedulable", resolvable=False)
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that a cordon stands for, and that the node controller sets beside it."""


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return which nodes are cordoned; None: the pod tolerates that."""
    if tolerates(pod_class.spec.tolerations, CORDON):
        return None
    return verdict_of(~room.snapshot.unschedulable, REFUSAL)


def admits(pod_class: PodClass, snapshot: Snapshot, row: int) -> bool:
    """Whether the node at ``row`` passes."""
    return not snapshot.unschedulable[row] or tolerates(pod_class.spec.tolerations, CORDON)


RULE = Rule(name="NodeUnschedulable", kind=RuleKind.NODE, judge=judge, admits=admits)
