"""NodeResourcesFit: requests must fit into allocatable minus what is used, in every resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.plan.filters.verdict import Refusal, Verdict
from quorate.core.state.arrays import Ints, Mask
from quorate.core.state.encoding import PODS, PodClass

if TYPE_CHECKING:
    from quorate.core.plan.room import Room

SLOTS_MAX = 2**31
REFUSALS = (
    Refusal("the node has too little left", resolvable=True),
    Refusal("the node is too small", resolvable=False),
)
_LACKS, _TOO_SMALL = 1, 2


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return which nodes lack which resources; one too small when empty cannot be helped."""
    names = room.snapshot.table.resources.names
    codes = np.zeros(len(room.free), np.int8)
    short = lacking(pod_class, room.free)
    for lacks in short.values():
        codes[lacks] = _LACKS
    for column, amount in pod_class.checked:
        if column != PODS:
            codes[short[column] & (room.snapshot.allocatable[:, column] < amount)] = _TOO_SMALL
    several = tuple((message(column, names), lacks) for column, lacks in short.items())
    return Verdict(codes, REFUSALS, several)


def slots(pod_class: PodClass, free: Ints) -> Ints:
    """Return int64[n]: how many pods of the class fit on each node, by resources alone.

    ``free`` is int64[n, r]. Formula: the minimum over resources of ``free // request``.
    """
    count = np.full(len(free), SLOTS_MAX, np.int64)
    for column, amount in pod_class.checked:
        room = free[:, column] if amount == 1 else free[:, column] // amount
        np.minimum(count, room, out=count)
    return np.maximum(count, 0, out=count)


def lacking(pod_class: PodClass, free: Ints) -> dict[int, Mask]:
    """Return for each requested resource (by column) bool[n]: nodes with too little of it free."""
    return {column: free[:, column] < amount for column, amount in pod_class.checked}


def could_hold(size: Ints, column: int, amount: int) -> bool:
    """Whether a node with ``size`` (int64[r]) has that much of the resource, were it empty.

    The number of pods is not looked at: kube-scheduler calls a lack of it always resolvable.
    """
    return column == PODS or int(size[column]) >= amount


def message(column: int, names: list[str]) -> str:
    """Return the default scheduler's words for a lack of the resource."""
    return "Too many pods" if column == PODS else f"Insufficient {names[column]}"
