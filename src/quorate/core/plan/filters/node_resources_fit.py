"""NodeResourcesFit: requests must fit into allocatable minus what is used, in every resource."""

from __future__ import annotations

import numpy as np

from quorate.core.state.encoding import PODS, Ints, Mask, PodClass

SLOTS_MAX = 2**31


def slots(pod_class: PodClass, free: Ints) -> Ints:
    """Return int64[n]: how many pods of the class fit on each node, by resources alone.

    ``free`` is int64[n, r]. Formula: the minimum over resources of ``free // request``.
    """
    count = np.full(len(free), SLOTS_MAX, np.int64)
    for column, amount in pod_class.demands:
        room = free[:, column] if amount == 1 else free[:, column] // amount
        np.minimum(count, room, out=count)
    return np.maximum(count, 0, out=count)


def lacking(pod_class: PodClass, free: Ints) -> dict[int, Mask]:
    """Return for each requested resource (by column) bool[n]: nodes with too little of it free."""
    return {column: free[:, column] < amount for column, amount in pod_class.demands}


def message(column: int, names: list[str]) -> str:
    """Return the default scheduler's words for a lack of the resource."""
    return "Too many pods" if column == PODS else f"Insufficient {names[column]}"
