"""How many pods of a class fit on nodes by their resources alone: the one formula of slots."""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import PodClass

SLOTS_MAX = 2**31
"""The largest number of slots on one node."""
NO_COLUMN = 2**40
"""The column of a resource that no node has."""


def slots_of(pod_class: PodClass, free: Ints) -> Ints:
    """Return int64[n]: how many pods of the class fit on each node; ``free`` is int64[n, r].

    Formula: the minimum of ``free // amount`` over all checked demands, from 0 to SLOTS_MAX.
    """
    count = np.full(len(free), SLOTS_MAX, np.int64)
    for column, amount in checked_of(pod_class):
        if column >= free.shape[1]:
            return np.zeros(len(free), np.int64)
        room = free[:, column] if amount == 1 else free[:, column] // amount
        np.minimum(count, room, out=count)
    return np.maximum(count, 0, out=count)


def checked_of(pod_class: PodClass) -> tuple[tuple[int, int], ...]:
    """Return the demands (column, amount) for which nodes must have room."""
    return ((NO_COLUMN, 1),) if pod_class.missing else pod_class.demands
