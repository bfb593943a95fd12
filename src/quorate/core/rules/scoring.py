"""Ask all scores of the table how good each node is for a pod class, and weigh them.

In: a pod class and the room. Out: int64[n], n rows. Weights are those of the profile. For whole
gangs of a profile of quorate's own, ``resources.packing`` takes the place of the scores of amounts.
"""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.room.amounts import Amounts, NodeAmounts
from quorate.core.room.room import Room
from quorate.core.rules.table import SCORES, SCORES_OF_AMOUNTS


def standing_score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints:
    """Return int64[n]: the weighted sum of the scores that do not depend on amounts."""
    total = np.zeros(len(room.free), np.int64)
    weights = dict(pod_class.profile.weights)
    for name, score in SCORES:
        weight = weights.get(name, 0)
        found = score(pod_class, room, feasible) if weight else None
        if found is not None:
            total += weight * found
    return total


def allocation_score(pod_class: PodClass, amounts: Amounts) -> Ints:
    """Return int64[m]: the weighted sum of the scores of amounts."""
    total = np.zeros(len(amounts.free), np.int64)
    weights = dict(pod_class.profile.weights)
    for name, score, _ in SCORES_OF_AMOUNTS:
        weight = weights.get(name, 0)
        found = score(pod_class, amounts) if weight else None
        if found is not None:
            total += weight * found
    return total


def allocation_score_on(pod_class: PodClass, amounts: NodeAmounts) -> int | None:
    """Return what ``allocation_score`` says of one node; None where only arrays have the formula.

    It takes a tenth of the time: most placements change one node.
    """
    weights, total = dict(pod_class.profile.weights), 0
    for name, _, score_one in SCORES_OF_AMOUNTS:
        if weight := weights.get(name, 0):
            found = score_one(pod_class, amounts) if score_one is not None else None
            if found is None:
                return None
            total += weight * found
    return total


def scores(pod_class: PodClass, room: Room, feasible: Mask) -> dict[str, Ints]:
    """Return each score, int64[n] from 0 to 100 on the feasible nodes, before its weight."""
    found = {name: score(pod_class, room, feasible) for name, score in SCORES}
    for name, of_amounts, _ in SCORES_OF_AMOUNTS:
        found[name] = of_amounts(pod_class, room.amounts())
    return {name: score for name, score in found.items() if score is not None}
