"""NodePorts: a host port that the pod wants must be free on the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.model import PodShape
from quorate.core.plan.filters.verdict import Refusal, Verdict, verdict_of
from quorate.core.state.arrays import Ints, Mask
from quorate.core.state.encoding import PodClass

if TYPE_CHECKING:
    from quorate.core.plan.room import Room

REFUSAL = Refusal("node(s) didn't have free ports for the requested pod ports", resolvable=True)


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return on which nodes a port that the pod wants is taken; None: it wants none."""
    if not pod_class.shape.host_ports:
        return None
    return verdict_of(~taken(pod_class, room), REFUSAL)


def taken(pod_class: PodClass, room: Room, rows: Ints | None = None) -> Mask:
    """Return bool[m]: nodes (of these rows; None: all) where a pod holds a conflicting port.

    Those placed now are included.
    """
    mask = np.zeros(len(room.free), np.bool_)
    for port in pod_class.shape.host_ports:
        if rows is None:
            mask[room.snapshot.rows_with_port(port)] = True
        else:
            mask[[row for row in rows.tolist() if room.snapshot.has_port(row, port)]] = True
    for other, where in room.ports_taken:
        if conflict(pod_class.shape, other.shape):
            mask[where] = True
    return mask if rows is None else mask[rows]


def conflict(shape: PodShape, other: PodShape) -> bool:
    """Whether two pods of these shapes cannot be on one node because of their host ports."""
    return any(mine.conflicts(yours) for mine in shape.host_ports for yours in other.host_ports)
