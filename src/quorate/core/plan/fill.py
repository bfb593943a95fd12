"""Spread a number of alike pods over nodes: the packing. Hot code: plain functions of arrays."""

from __future__ import annotations

from typing import Literal

import numpy as np

from quorate.core.plan.room import Room
from quorate.core.plan.scores import packing as utilisation_of
from quorate.core.plan.scores import standing_score
from quorate.core.state.arrays import Ints
from quorate.core.state.encoding import PodClass

Packing = Literal["most-allocated", "least-allocated"]
_LEAST = "LeastAllocated"


def fill(pod_class: PodClass, count: int, slots: Ints, room: Room, packing: Packing) -> Ints:
    """Return int64[n]: how many of ``count`` pods each node gets; fewer in all if slots run out.

    ``slots`` is int64[n]. The result is what placing the pods one after the other by the same
    scores would give.
    """
    rows = np.flatnonzero(slots)
    pods = np.zeros(len(slots), np.int64)
    count = min(count, int(slots[rows].sum()))
    if not count:
        return pods
    if not pod_class.profile.packs_gangs:
        packing = "least-allocated" if pod_class.profile.fit.type == _LEAST else "most-allocated"
    attributes = standing_score(pod_class, room, slots > 0).astype(np.float64)
    free, allocatable = room.free[rows], room.snapshot.allocatable[rows]
    full_with_one = utilisation_of.utilisation(pod_class, free, allocatable, 1)
    if packing == "most-allocated":
        pods[rows] = _fill_best_first(attributes[rows] + full_with_one, slots[rows], count)
    else:
        full_with_two = utilisation_of.utilisation(pod_class, free, allocatable, 2)
        slope = full_with_two - full_with_one
        pods[rows] = _spread(attributes[rows] - full_with_one, slope, slots[rows], count)
    assert int(pods.sum()) == count, "every pod that has a slot gets one"
    assert bool((pods <= slots).all()), "no node takes more than it has slots for"
    return pods


def _fill_best_first(score: utilisation_of.Scores, slots: Ints, count: int) -> Ints:
    """Fill nodes whole, best first. Filling raises a node's score, so greedy order is the same."""
    if 4 * count < len(score):  # at most ``count`` nodes are needed: do not sort the others
        edge = np.partition(score, len(score) - count)[len(score) - count]
        best = np.flatnonzero(score > edge)
        best = best[np.argsort(-score[best], kind="stable")]
        order = np.append(best, np.flatnonzero(score == edge)[: count - len(best)])
    else:
        order = np.argsort(-score, kind="stable")
    filled = np.minimum(np.minimum(slots[order], count).cumsum(), count)
    pods = np.zeros(len(slots), np.int64)
    pods[order] = np.diff(filled, prepend=0)
    return pods


def _spread(
    score: utilisation_of.Scores, slope: utilisation_of.Scores, slots: Ints, count: int
) -> Ints:
    """Give each next pod to the node that is then the best.

    The k-th pod on a node scores ``score - (k - 1) * slope``: find the score that ``count`` pods
    reach by bisection, and hand out what is left at that score in row order.
    """
    slope = np.maximum(slope, 1e-6)  # pods that ask for nothing still spread evenly
    low, high = float((score - slots * slope).min()) - 1.0, float(score.max()) + 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if int(_pods_above(middle, score, slope, slots).sum()) >= count:
            low = middle
        else:
            high = middle
    pods = _pods_above(high, score, slope, slots)
    left = count - int(pods.sum())
    at_the_edge = np.flatnonzero(_pods_above(low, score, slope, slots) > pods)
    pods[at_the_edge[:left]] += 1
    left = count - int(pods.sum())
    if left:  # several pods of one node share the edge's score
        more = np.minimum((slots - pods).cumsum(), left)
        pods += np.diff(more, prepend=0)
    return pods


def _pods_above(
    limit: float, score: utilisation_of.Scores, slope: utilisation_of.Scores, slots: Ints
) -> Ints:
    pods = np.floor((score - limit) / slope) + 1
    clipped: Ints = np.clip(pods, 0, slots).astype(np.int64)
    return clipped
