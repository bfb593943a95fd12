"""VolumeRestrictions: disks that one node mounts once, and claims that one pod may use at a time.

Source: kube-scheduler 1.36's plugin of that name.
"""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.storage.volume_needs import RESTRICTIONS
from quorate.core.room.room import Room
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Verdict, rejected_for

REFUSALS = (
    Refusal("node(s) had no available disk", resolvable=True),
    Refusal(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod",
        resolvable=True,
    ),
)
_DISK, _IN_USE = 1, 2


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return what the rule says of each node for one more pod of the class; None: nothing."""
    volume_needs, disks = pod_class.volume_needs, pod_class.spec.disks
    if volume_needs is None:
        return None
    refused = rejected_for(volume_needs.problems, RESTRICTIONS, len(room.free))
    if refused is not None:
        return refused
    in_use = room.volumes.is_used(volume_needs.exclusive)
    if not disks and not in_use:
        return None
    codes = np.full(len(room.free), _IN_USE if in_use else 0, np.int8)
    codes[room.volumes.rows_with_disks(disks)] = _DISK
    return Verdict(codes, REFUSALS)


def cap(pod_class: PodClass, room: Room, count: Ints, _together: bool) -> None:
    """Lower ``count`` (int64[n]): a disk that conflicts with itself is on a node once."""
    if pod_class.volume_needs is not None:
        room.volumes.cap_by_disks(pod_class.spec.disks, count)


def concerns(pod_class: PodClass) -> bool:
    """Whether the class has volumes."""
    return pod_class.volume_needs is not None


RULE = Rule(
    name="VolumeRestrictions",
    kind=RuleKind.VOLUMES,
    judge=judge,
    cap=cap,
    concerns=concerns,
)
