"""NodeResourcesFit: how much of a node is allocated, least, most, or by a curve.

Source: kube-scheduler 1.36, noderesources/{least,most}_allocated.go, requested_to_capacity_ratio.go
and resource_allocation.go. All divisions are of integers.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import CPU, MEMORY, PodClass
from quorate.core.model.profile import FitStrategy
from quorate.core.room.amounts import Amounts

_NATIVE = ("cpu", "memory", "ephemeral-storage")


def score(pod_class: PodClass, amounts: Amounts) -> Ints:
    """Return int64[m] from 0 to 100, with one pod of the class counted in."""
    strategy = pod_class.profile.fit
    total = np.zeros(len(amounts.free), np.int64)
    weights = np.zeros(len(amounts.free), np.int64)
    for name, weight in strategy.resources:
        found = requested(name, pod_class, amounts)
        if found is None:
            continue
        asked, size = found
        part = _score_one(strategy, asked, size)
        # A curve's zero does not count; elsewhere only what the node has does.
        counts = (part > 0) if strategy.type == "RequestedToCapacityRatio" else (size > 0)
        total += np.where(counts, part * weight, 0)
        weights += np.where(counts, weight, 0)
    return _mean(strategy, total, weights)


def requested(name: str, pod_class: PodClass, amounts: Amounts) -> tuple[Ints, Ints] | None:
    """Return int64[m] twice: what would be requested of a resource, and what there is of it.

    None: an extended resource that the pod does not ask for, which is not scored.
    """
    column = amounts.resources.columns.get(name)
    if column is None:
        return None
    size = amounts.allocatable[:, column]
    if column in (CPU, MEMORY):
        shape = pod_class.shape
        pending = shape.scored_pending or shape.scored
        index = 0 if column == CPU else 1
        return amounts.scored[:, index] + pending[index], size
    amount = dict(pod_class.demands).get(column, 0)
    if not amount and name not in _NATIVE:
        return None
    return size - amounts.free[:, column] + amount, size


def _score_one(strategy: FitStrategy, asked: Ints, size: Ints) -> Ints:
    divisor = np.maximum(size, 1)
    if strategy.type == "LeastAllocated":
        scores = np.where(asked > size, 0, (size - asked) * 100 // divisor)
    elif strategy.type == "MostAllocated":
        scores = np.minimum(asked, size) * 100 // divisor
    else:
        used = np.where((size == 0) | (asked > size), 100, asked * 100 // divisor)
        scores = _curve(strategy.shape)[used]
    return np.where(size > 0, scores, 0)


def _curve(points: tuple[tuple[int, int], ...]) -> Ints:
    """Return int64[101]: the broken line through the points, ten times as high, by utilisation."""
    curve = np.zeros(101, np.int64)
    for used in range(101):
        if used <= points[0][0]:
            curve[used] = points[0][1] * 10
            continue
        curve[used] = points[-1][1] * 10
        for (x0, y0), (x1, y1) in pairwise(points):
            if used <= x1:
                # Go's division goes towards zero.
                rise = (y1 - y0) * 10 * (used - x0)
                curve[used] = y0 * 10 + int(rise / (x1 - x0))
                break
    return curve


def _mean(strategy: FitStrategy, total: Ints, weights: Ints) -> Ints:
    if strategy.type == "RequestedToCapacityRatio":
        mean = np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)
    else:
        mean = total // np.maximum(weights, 1)
    return np.where(weights > 0, mean, 0)
