"""VolumeBinding: the node reaches the pod's volumes, those that are bound and those that will be.

Source: kube-scheduler 1.36's plugin of that name. Nothing here helps by preemption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.plan.filters.verdict import Refusal, Refusals, Verdict, refuse_pod
from quorate.core.state.encoding import PodClass
from quorate.core.state.wants import BINDING, BoundWant

if TYPE_CHECKING:
    from quorate.core.plan.room import Room

_BOUND = {1: "node(s) didn't match PersistentVolume's node affinity"}
_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_UNBOUND = {
    1: "node(s) didn't find available persistent volumes to bind",
    2: "node(s) did not have enough free storage",
}
_OTHER_NODE, _MISSING = 1, 2


def _refusal(bound: int, unbound: int) -> Refusal:
    """Return what is said of a node, in kube-scheduler's order of its reasons."""
    words = [_BOUND.get(bound), _UNBOUND.get(unbound), _GONE if bound == _MISSING else None]
    first, *also = [word for word in words if word] or [""]
    return Refusal(first, resolvable=False, also=tuple(also))


REFUSALS = tuple(_refusal(code // 3, code % 3) for code in range(1, 9))
"""At ``3 * bound + unbound - 1``, of the verdicts on bound and on unbound claims."""


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return what the rule says of each node for one more pod of the class; None: nothing."""
    wants = pod_class.wants
    if wants is None:
        return None
    refused = refuse_pod(wants.problems, BINDING, len(room.free))
    if refused is not None:
        return refused
    if not wants.bound and not wants.unbound:
        return None
    codes = 3 * _judge_bound(wants.bound, room)
    if wants.unbound:
        codes += room.volumes.judge_unbound(wants)
    return Verdict(codes, REFUSALS)


def _judge_bound(bound: tuple[BoundWant, ...], room: Room) -> Refusals:
    """Return int8[n]: what the first bound claim that does not do says of the node."""
    codes = np.zeros(len(room.free), np.int8)
    for want in bound:
        if not want.exists:
            codes[codes == 0] = _MISSING
        elif want.affinity is not None:
            codes[(codes == 0) & ~room.volumes.affinity(want.affinity)] = _OTHER_NODE
    return codes
