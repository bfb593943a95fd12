"""Place a number of alike pods, and take their room. Called by ``plan.gang`` class by class.

Pods that do not constrain one another are filled in, all at once; others go one after the other.
"""

from __future__ import annotations

import numpy as np

from quorate.core.model import all_of
from quorate.core.plan.fill import Packing, fill
from quorate.core.plan.room import Room
from quorate.core.state.encoding import Ints, PodClass


def pack(pod_class: PodClass, count: int, room: Room, packing: Packing) -> Ints:
    """Return int64[n]: how many of ``count`` pods each node gets. Takes that from ``room``."""
    if not constrain_one_another(pod_class, room):
        pods = fill(pod_class, count, room.slots(pod_class), room, packing)
        room.take(pod_class, pods)
        return pods
    pods = np.zeros(len(room.free), np.int64)
    for _ in range(count):
        one = fill(pod_class, 1, room.slots(pod_class), room, packing)
        if not one.any():
            break
        room.take(pod_class, one)
        pods += one
    return pods


def constrain_one_another(pod_class: PodClass, room: Room) -> bool:
    """Whether a pod of the class changes where the next one of it may go."""
    shape = pod_class.shape
    if pod_class.ask is not None and room.taking.couples(pod_class.ask):
        return True
    if not pod_class.matched:
        return False
    used = [term.selector for term in shape.anti_affinity]
    used += [one.selector for one in pod_class.spread if one.hard]
    if shape.affinity:
        used.append(all_of(shape.affinity))
    number = room.snapshot.neighbours.selector_id
    return any(number(selector) in pod_class.matched for selector in used)
