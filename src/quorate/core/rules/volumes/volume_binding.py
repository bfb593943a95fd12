"""VolumeBinding: the node reaches the pod's volumes, those that are bound and those that will be.

Source: kube-scheduler 1.36's plugin of that name. Nothing here helps by preemption.
"""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.storage.needs import BoundWant
from quorate.core.cluster.storage.volume_needs import BINDING
from quorate.core.room.room import Room
from quorate.core.rules.rule import Kind, Rule
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
    wants = pod_class.wants
    if wants is None:
        return None
    refused = rejected_for(wants.problems, BINDING, len(room.free))
    if refused is not None:
        return refused
    if not wants.bound and not wants.unbound:
        return None
    bound = _judge_bound(wants.bound, room)
    unbound = room.volumes.judge_unbound(wants)
    several = (
        (_MISMATCH, bound == _OTHER_NODE),
        (_NO_VOLUME, unbound == _UNMATCHED),
        (_NO_SPACE, unbound == _FULL),
        (_GONE, bound == _MISSING),
    )
    return Verdict(((bound > 0) | (unbound > 0)).astype(np.int8), REFUSALS, several)


def _judge_bound(bound: tuple[BoundWant, ...], room: Room) -> Refusals:
    """Return int8[n]: what the first bound claim that does not do says of the node."""
    codes = np.zeros(len(room.free), np.int8)
    for want in bound:
        if not want.exists:
            codes[codes == 0] = _MISSING
        elif want.affinity is not None:
            codes[(codes == 0) & ~room.volumes.reach.affinity(want.affinity)] = _OTHER_NODE
    return codes


def cap(pod_class: PodClass, room: Room, count: Ints, _together: bool) -> None:
    """Lower ``count`` (int64[n]) to the pods for whose claims there are volumes.

    Where pods constrain one another that is how many there are at most.
    """
    wants = pod_class.wants
    if wants is not None and not wants.problems:
        room.volumes.cap_by_claims(wants, count)


def concerns(pod_class: PodClass) -> bool:
    """Whether the class has volumes."""
    return pod_class.wants is not None


RULE = Rule(
    name="VolumeBinding",
    kind=Kind.VOLUMES,
    judge=judge,
    cap=cap,
    concerns=concerns,
)
