"""How good a node is for a pod class, one file for each of kube-scheduler's scores.

A score of attributes does not depend on what is placed; the score of resources does, and decides
between filling nodes and spreading over them.
"""

from __future__ import annotations

import numpy as np

from quorate.core.plan.scores import node_affinity, node_resources, taint_toleration
from quorate.core.state.encoding import Mask, PodClass
from quorate.core.state.snapshot import Snapshot


def attribute_score(
    pod_class: PodClass, snapshot: Snapshot, feasible: Mask
) -> node_resources.Scores:
    """Return float64[n]: the weighted sum of the scores of attributes."""
    total = np.zeros(len(snapshot))
    shape = pod_class.shape
    if shape.preferred_terms:
        total += node_affinity.WEIGHT * node_affinity.score(shape, snapshot, feasible)
    total += taint_toleration.WEIGHT * taint_toleration.score(shape, snapshot, feasible)
    return total
