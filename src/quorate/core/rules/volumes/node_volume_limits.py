"""NodeVolumeLimits: a CSI driver takes so many volumes on a node; each counts there once.

Source: kube-scheduler 1.36's plugin of that name. A volume that a pod there uses already is not
counted again for the next pod; one that is merely attached is.
"""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.storage.needs import VolumeNeeds
from quorate.core.cluster.storage.volume_needs import LIMITS
from quorate.core.room.room import Room
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Verdict

REFUSALS = (Refusal("node(s) exceed max volume count", resolvable=True),)


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return what the rule says of each node for one more pod of the class; None: nothing."""
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
    return Verdict(codes, REFUSALS)


def _more(volume_needs: VolumeNeeds, room: Room) -> dict[str, Ints]:
    """Return for each driver that may have limits how many of its volumes come to the node."""
    more = room.volumes.new_shared(volume_needs)
    for driver, each in volume_needs.new:
        if room.volumes.limits(driver) is not None:
            more[driver] = more.get(driver, np.zeros(len(room.free), np.int64)) + each
    return more


def cap(pod_class: PodClass, room: Room, count: Ints, _together: bool) -> None:
    """Lower ``count`` (int64[n]) to the pods whose volumes the drivers take."""
    volume_needs = pod_class.volume_needs
    if volume_needs is not None and not volume_needs.problems:
        room.volumes.cap_by_limits(volume_needs, count)


def concerns(pod_class: PodClass) -> bool:
    """Whether the class has volumes."""
    return pod_class.volume_needs is not None


RULE = Rule(
    name="NodeVolumeLimits",
    kind=RuleKind.VOLUMES,
    judge=judge,
    cap=cap,
    concerns=concerns,
)
