"""VolumeBinding: the node reaches the pod's volumes, those that are bound and those that will be.

Source: kube-scheduler 1.36's plugin of that name. Nothing here helps by preemption.
"""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.storage.needs import BoundNeed
from quorate.core.cluster.storage.volume_needs import BINDING
from quorate.core.room.room import Room
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Refusals, Verdict, rejected_for

_MISMATCH = "node(s) didn't match PersistentVolume's node affinity"
_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
_NO_SPACE = "node(s) did not have enough free storage"
_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
REFUSALS = (Refusal(_MISMATCH, resolvable=False),)
_OTHER_NODE, _MISSING = 1, 2
_UNMATCHED, _FULL = 1, 2


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return what the rule says of each node for one more pod of the class; None: nothing."""
    volume_needs = pod_class.volume_needs
    if volume_needs is None:
        return None
    refused = rejected_for(volume_needs.problems, BINDING, len(room.free))
    if refused is not None:
        return refused
    if not volume_needs.bound and not volume_needs.unbound:
        return None
    bound = _judge_bound(volume_needs.bound, room)
    unbound = room.volumes.judge_unbound(volume_needs)
    several = (
        (_MISMATCH, bound == _OTHER_NODE),
        (_NO_VOLUME, unbound == _UNMATCHED),
        (_NO_SPACE, unbound == _FULL),
        (_GONE, bound == _MISSING),
    )
    return Verdict(((bound > 0) | (unbound > 0)).astype(np.int8), REFUSALS, several)


def _judge_bound(bound: tuple[BoundNeed, ...], room: Room) -> Refusals:
    """Return int8[n]: what the first bound claim that does not do says of the node."""
    codes = np.zeros(len(room.free), np.int8)
    for need in bound:
        if not need.exists:
            codes[codes == 0] = _MISSING
        elif need.affinity is not None:
            codes[(codes == 0) & ~room.volumes.reach.affinity(need.affinity)] = _OTHER_NODE
    return codes


def cap(pod_class: PodClass, room: Room, count: Ints, _together: bool) -> None:
    """Lower ``count`` (int64[n]) to the pods for whose claims there are volumes.

    Where pods constrain one another that is how many there are at most.
    """
    volume_needs = pod_class.volume_needs
    if volume_needs is not None and not volume_needs.problems:
        room.volumes.cap_by_claims(volume_needs, count)


def concerns(pod_class: PodClass) -> bool:
    """Whether the class has volumes."""
    return pod_class.volume_needs is not None


RULE = Rule(
    name="VolumeBinding",
    kind=RuleKind.VOLUMES,
    judge=judge,
    cap=cap,
    concerns=concerns,
)
