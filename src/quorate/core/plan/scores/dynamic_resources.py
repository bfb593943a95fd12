"""DynamicResources: nodes where claims get what they list first are better."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.plan.filters.dynamic_resources import by_nodes, can_reach
from quorate.core.room.devices.allocator import Found

if TYPE_CHECKING:
    from quorate.core.room.room import Room


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100: ``100 * raw / max`` over the feasible nodes; None: no claims.

    ``raw`` is the sum of 8 minus the place of the choice, over all requests that are lists; 0 when
    no claim has to get devices any more, nor might have to on another node (extended resources).
    """
    ask = pod_class.ask
    if ask is None or ask.problem:
        return None
    raw = np.zeros(len(feasible), np.int64)
    for part, rows in by_nodes(ask, room):
        standing = sum(one.score for one in room.taking.held(part))
        if room.taking.is_settled(part):
            if ask.extended is not None:
                raw[rows] = np.where(can_reach(part, room)[rows], standing, 0)
            continue
        index, outcomes = room.taking.found(part, rows)
        scored = [standing + one.score if isinstance(one, Found) else 0 for one in outcomes]
        raw[rows] = np.where(can_reach(part, room)[rows], np.array(scored, np.int64)[index], 0)
    highest = int(raw[feasible].max(initial=0))
    return 100 * raw // highest if highest else raw
