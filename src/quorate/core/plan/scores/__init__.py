"""How good a node is for a pod class, one file for each of kube-scheduler's scores.

``packing`` is quorate's own: it decides between filling nodes and spreading over them, for whole
gangs. To add a score: one file, and a row in the table.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.plan.scores import (
    dynamic_resources,
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_resources_balanced_allocation,
    node_resources_fit,
    pod_topology_spread,
    taint_toleration,
)
from quorate.core.room.amounts import Amounts
from quorate.core.room.room import Room

STANDING: dict[str, ModuleType] = {
    "TaintToleration": taint_toleration,
    "NodeAffinity": node_affinity,
    "PodTopologySpread": pod_topology_spread,
    "InterPodAffinity": inter_pod_affinity,
    "DynamicResources": dynamic_resources,
    "ImageLocality": image_locality,
}
"""Scores that do not depend on what is allocated."""
ALLOCATION: dict[str, ModuleType] = {
    "NodeResourcesFit": node_resources_fit,
    "NodeResourcesBalancedAllocation": node_resources_balanced_allocation,
}


def standing_score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints:
    """Return int64[n]: the weighted sum of the scores that allocation does not change."""
    total = np.zeros(len(room.free), np.int64)
    weights = dict(pod_class.profile.weights)
    for name, rule in STANDING.items():
        weight = weights.get(name, 0)
        score = rule.score(pod_class, room, feasible) if weight else None
        if score is not None:
            total += weight * score
    return total


def allocation_score(pod_class: PodClass, amounts: Amounts) -> Ints:
    """Return int64[m]: the weighted sum of kube-scheduler's two scores of allocation."""
    total = np.zeros(len(amounts.free), np.int64)
    weights = dict(pod_class.profile.weights)
    for name, rule in ALLOCATION.items():
        weight = weights.get(name, 0)
        score = rule.score(pod_class, amounts) if weight else None
        if score is not None:
            total += weight * score
    return total


def scores(pod_class: PodClass, room: Room, feasible: Mask) -> dict[str, Ints]:
    """Return each score, int64[n] from 0 to 100 on the feasible nodes, before its weight."""
    found = {}
    for name, rule in STANDING.items():
        score = rule.score(pod_class, room, feasible)
        if score is not None:
            found[name] = score
    for name, allocation in ALLOCATION.items():
        score = allocation.score(pod_class, room.amounts())
        if score is not None:
            found[name] = score
    return found
