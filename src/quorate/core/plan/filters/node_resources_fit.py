"""NodeResourcesFit: requests must fit into allocatable minus what is used, in every resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.devices.special_claims import DELEGATED
from quorate.core.cluster.nodes.encoding import PODS, PodClass
from quorate.core.plan.filters.verdict import Refusal, Verdict

if TYPE_CHECKING:
    from quorate.core.room.room import Room

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
    short = lacking(pod_class, room.free, names)
    for lacks in short.values():
        codes[lacks] = _LACKS
    for column, amount in pod_class.checked:
        if column != PODS:
            too_small = room.snapshot.allocatable[:, column] < amount
            codes[short[message(column, names)] & too_small] = _TOO_SMALL
    if pod_class.missing:
        codes[:] = _TOO_SMALL
    return Verdict(codes, REFUSALS, tuple(short.items()))


def slots(pod_class: PodClass, free: Ints) -> Ints:
    """Return int64[n]: how many pods of the class fit on each node, by resources alone.

    ``free`` is int64[n, r]. Formula: the minimum over resources of ``free // request``.
    """
    if pod_class.missing:
        return np.zeros(len(free), np.int64)
    count = np.full(len(free), SLOTS_MAX, np.int64)
    for column, amount in pod_class.checked:
        room = free[:, column] if amount == 1 else free[:, column] // amount
        np.minimum(count, room, out=count)
    return np.maximum(count, 0, out=count)


def lacking(pod_class: PodClass, free: Ints, names: list[str]) -> dict[str, Mask]:
    """Return for each requested resource, by its message: bool[n], nodes with too little free.

    ``names`` are those of the columns.
    """
    short = {message(column, names): free[:, column] < n for column, n in pod_class.checked}
    for name, _ in pod_class.missing:
        short[insufficient(name)] = np.ones(len(free), np.bool_)
    return short


def free_of(name: str, room: Room, rows: Ints) -> Ints:
    """Return int64[len(rows)]: how much of a resource is free on these rows.

    What devices are given for seems to be there (``special_claims.DELEGATED``).
    """
    resources = room.snapshot.table.resources
    column = resources.columns.get(name)
    if column is not None:
        free: Ints = room.free[rows, column]
        return free
    return np.full(len(rows), DELEGATED if name in resources.backed else 0, np.int64)


def could_hold(size: Ints, column: int, amount: int) -> bool:
    """Whether a node with ``size`` (int64[r]) has that much of the resource, were it empty.

    The number of pods is not looked at: kube-scheduler calls a lack of it always resolvable.
    """
    return column == PODS or int(size[column]) >= amount


def message(column: int, names: list[str]) -> str:
    """Return the default scheduler's words for a lack of the resource."""
    return "Too many pods" if column == PODS else insufficient(names[column])


def insufficient(name: str) -> str:
    """Return the default scheduler's words for a lack of a resource, but for that of pods."""
    return f"Insufficient {name}"
