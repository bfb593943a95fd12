"""Ask all scores of the table how good each node is for a pod class, and weigh them.

In: a pod class and the room. Out: int64[n], n rows. For whole gangs ``resources.packing`` takes the
place of the scores of amounts.
"""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.room.amounts import Amounts, NodeAmounts
from quorate.core.room.room import Room
from quorate.core.rules.table import SCORES, SCORES_OF_AMOUNTS

WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
}
"""kube-scheduler's weights of its scores (1.36, default_plugins.go)."""


def standing_score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints:
    """Return int64[n]: the weighted sum of the scores that do not depend on amounts."""
    total = np.zeros(len(room.free), np.int64)
    for name, score in SCORES:
        part = score(pod_class, room, feasible)
        if part is not None:
            total += WEIGHTS[name] * part
    return total


def allocation_score(pod_class: PodClass, amounts: Amounts) -> Ints:
    """Return int64[m]: the weighted sum of the scores of amounts."""
    total = np.zeros(len(amounts.free), np.int64)
    for name, score, _ in SCORES_OF_AMOUNTS:
        part = score(pod_class, amounts)
        if part is not None:
            total += WEIGHTS[name] * part
    return total


def allocation_score_on(pod_class: PodClass, amounts: NodeAmounts) -> int:
    """Return what ``allocation_score`` says of one node, in a tenth of the time."""
    return sum(
        WEIGHTS[name] * score_one(pod_class, amounts) for name, _, score_one in SCORES_OF_AMOUNTS
    )
