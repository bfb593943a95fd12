"""NodeDeclaredFeatures: the node must declare every feature that the pod needs.

Source: kube-scheduler 1.36's plugin of that name; which features a pod needs is in its spec.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.room.room import Room
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Verdict

REFUSALS = (Refusal("node(s) didn't match Pod's required features", resolvable=False),)


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return what the rule says of each node; None: nothing, as the pod needs no feature."""
    needed = set(pod_class.spec.node_features)
    if not needed:
        return None
    column = room.snapshot.feature_sets()
    sets = (cast("tuple[str, ...]", features) for features in column.values)
    lacks = [not needed.issubset(features) for features in sets]
    codes = np.array([*lacks, True], np.int8)[column.codes[: len(room.free)]]
    return Verdict(codes, REFUSALS)


def admits(pod_class: PodClass, snapshot: Snapshot, row: int) -> bool:
    """Whether the node at ``row`` declares all of them."""
    needed = pod_class.spec.node_features
    return not needed or set(needed).issubset(snapshot.node(row).declared_features)


RULE = Rule(name="NodeDeclaredFeatures", kind=RuleKind.NODE, judge=judge, admits=admits)
