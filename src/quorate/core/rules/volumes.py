"""The four rules of volumes: what a node is refused for by a pod's claims.

Source: kube-scheduler 1.36's plugins VolumeRestrictions, NodeVolumeLimits, VolumeBinding and
VolumeZone. Where a pod's claims have a problem, the rule that found it refuses all nodes.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.storage.needs import BoundNeed, VolumeNeeds
from quorate.core.cluster.storage.volume_needs import BINDING, LIMITS, RESTRICTIONS, ZONE
from quorate.core.room.room import Room
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Refusals, Verdict, rejected_for

_IN_USE = Refusal(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod",
    resolvable=True,
)
_TOO_MANY = Refusal("node(s) exceed max volume count", resolvable=True)
_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_MISMATCH = Refusal("node(s) didn't match PersistentVolume's node affinity", resolvable=False)
_NO_ZONE = Refusal("node(s) had no available volume zone", resolvable=False)
_OTHER_NODE, _MISSING = 1, 2


def concerns(pod_class: PodClass) -> bool:
    """Whether the class has volumes."""
    return pod_class.volume_needs is not None


def judge_restrictions(pod_class: PodClass, room: Room) -> Verdict | None:
    """Refuse all nodes while another pod uses a claim that one pod at a time may use."""
    volume_needs = pod_class.volume_needs
    if volume_needs is None:
        return None
    refused = rejected_for(volume_needs.problems, RESTRICTIONS, len(room.free))
    if refused is not None or not room.volumes.is_used(volume_needs.exclusive):
        return refused
    return Verdict(np.ones(len(room.free), np.int8), (_IN_USE,))


def judge_limits(pod_class: PodClass, room: Room) -> Verdict | None:
    """Refuse nodes on which a CSI driver takes no more volumes; each counts there once.

    A volume that a pod there uses already is not counted again for the next pod. Volumes that are
    attached to a node where no pod uses them are not counted (docs/users/limits.md).
    """
    volume_needs = pod_class.volume_needs
    if volume_needs is None:
        return None
    for problem in volume_needs.problems:
        if problem.rule == LIMITS:
            refusal = Refusal(problem.text, resolvable=False)
            return Verdict(np.ones(len(room.free), np.int8), (refusal,))
    codes = np.zeros(len(room.free), np.int8)
    for driver, more in _more(volume_needs, room).items():
        limits = room.volumes.limits(driver)
        if limits is not None:
            codes[(more > 0) & (room.volumes.attached(driver) + more > limits)] = 1
    return Verdict(codes, (_TOO_MANY,))


def _more(volume_needs: VolumeNeeds, room: Room) -> dict[str, Ints]:
    """Return for each driver that may have limits how many of its volumes come to the node."""
    more = room.volumes.new_shared(volume_needs)
    for driver, each in volume_needs.new:
        if room.volumes.limits(driver) is not None:
            more[driver] = more.get(driver, np.zeros(len(room.free), np.int64)) + each
    return more


def cap_by_limits(pod_class: PodClass, room: Room, count: Ints, _together: bool) -> None:
    """Lower ``count`` (int64[n]) to the pods whose volumes the drivers take."""
    volume_needs = pod_class.volume_needs
    if volume_needs is not None and not volume_needs.problems:
        room.volumes.cap_by_limits(volume_needs, count)


def judge_binding(pod_class: PodClass, room: Room) -> Verdict | None:
    """Refuse nodes that do not reach the pod's volumes, those that are bound or will be.

    Nothing here helps by preemption.
    """
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
        (_MISMATCH.message, bound == _OTHER_NODE),
        (_NO_VOLUME, unbound),
        (_GONE, bound == _MISSING),
    )
    return Verdict(((bound > 0) | unbound).astype(np.int8), (_MISMATCH,), several)


def _judge_bound(bound: tuple[BoundNeed, ...], room: Room) -> Refusals:
    """Return int8[n]: what the first bound claim that does not do says of the node."""
    codes = np.zeros(len(room.free), np.int8)
    for need in bound:
        if not need.exists:
            codes[codes == 0] = _MISSING
        elif need.affinity is not None:
            codes[(codes == 0) & ~room.volumes.reach.affinity(need.affinity)] = _OTHER_NODE
    return codes


def cap_by_claims(pod_class: PodClass, room: Room, count: Ints, _together: bool) -> None:
    """Lower ``count`` (int64[n]) to the pods for whose claims there are volumes.

    Where pods constrain one another that is how many there are at most.
    """
    volume_needs = pod_class.volume_needs
    if volume_needs is not None and not volume_needs.problems:
        room.volumes.cap_by_claims(volume_needs, count)


def judge_zone(pod_class: PodClass, room: Room) -> Verdict | None:
    """Refuse nodes with zone or region labels that are not those of the pod's bound volumes."""
    volume_needs = pod_class.volume_needs
    if volume_needs is None:
        return None
    refused = rejected_for(volume_needs.problems, ZONE, len(room.free))
    if refused is not None or not volume_needs.topologies:
        return refused
    in_zone = room.volumes.reach.in_zone(volume_needs.topologies)
    return Verdict((~in_zone).astype(np.int8), (_NO_ZONE,))


_rule = partial(Rule, kind=RuleKind.VOLUMES, concerns=concerns)
RULES = (
    _rule(name="VolumeRestrictions", judge=judge_restrictions),
    _rule(name="NodeVolumeLimits", judge=judge_limits, cap=cap_by_limits),
    _rule(name="VolumeBinding", judge=judge_binding, cap=cap_by_claims),
    _rule(name="VolumeZone", judge=judge_zone),
)
"""In kube-scheduler's order."""
