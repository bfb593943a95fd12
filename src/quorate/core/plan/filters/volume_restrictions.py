"""VolumeRestrictions: disks that one node mounts once, and claims that one pod may use at a time.

Source: kube-scheduler 1.36's plugin of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.storage.volume_needs import RESTRICTIONS
from quorate.core.plan.filters.verdict import Refusal, Verdict, rejected_for

if TYPE_CHECKING:
    from quorate.core.room.room import Room

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
    wants, disks = pod_class.wants, pod_class.shape.disks
    if wants is None:
        return None
    refused = rejected_for(wants.problems, RESTRICTIONS, len(room.free))
    if refused is not None:
        return refused
    in_use = room.volumes.is_used(wants.exclusive)
    if not disks and not in_use:
        return None
    codes = np.full(len(room.free), _IN_USE if in_use else 0, np.int8)
    codes[room.volumes.rows_with_disks(disks)] = _DISK
    return Verdict(codes, REFUSALS)
