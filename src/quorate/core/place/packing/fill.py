"""Distribute pods of one class over nodes by score. Hot code: plain functions of arrays.

``fill`` treats all nodes as one set; ``fill_cells`` does the same in many cells at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model.profile import Packing
from quorate.core.room.room import Room
from quorate.core.rules.resources import packing as utilisation_of
from quorate.core.rules.scoring import standing_score


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
    standing = standing_score(pod_class, room, slots > 0)
    which = rows if len(rows) < len(slots) else slice(None)  # a slice of all nodes copies nothing
    score, slope = _scores(pod_class, standing, which, room, packing)
    if slope is None:
        pods[rows] = _fill_best_first(score, slots[rows], count)
    else:
        pods[rows] = _spread(score, slope, slots[rows], count)
    assert int(pods.sum()) == count, "every pod that has a slot gets one"
    assert bool((pods <= slots).all()), "no node takes more than it has slots for"
    return pods


def fill_cells(
    pod_class: PodClass, quotas: Ints, codes: Ints, slots: Ints, room: Room, packing: Packing
) -> Ints:
    """Return int64[n]: the pods of each node; ``fill`` would place each cell's quota so.

    ``quotas`` is int64[cells], none above the cell's slots; ``codes`` is int64[n], -1: no cell.
    Scores relative to the best node use the best node of all cells.
    """
    pods = np.zeros(len(slots), np.int64)
    rows = np.flatnonzero((slots > 0) & (np.append(quotas, 0)[codes] > 0))
    if not len(rows):
        return pods
    rows = rows[np.argsort(codes[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(codes[rows], prepend=-1))
    which = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
    cells = _Cells(starts, which, quotas[codes[rows[starts]]])
    standing = standing_score(pod_class, room, slots > 0)
    score, slope = _scores(pod_class, standing, rows, room, packing)
    if slope is None:
        order = np.lexsort(
            (-score, which)
        )  # within a cell the best node comes first; the sort is stable
        pods[rows[order]] = cells.first_ones(slots[rows[order]], cells.quotas)
    else:
        pods[rows] = _spread_in_cells(score, slope, slots[rows], cells)
    assert int(pods.sum()) == int(quotas.sum()), "every pod that has a slot gets one"
    assert bool((pods <= slots).all()), "no node takes more than it has slots for"
    return pods


class _Cells(NamedTuple):
    """Cells over m nodes that are sorted by cell."""

    starts: Ints
    which: Ints
    quotas: Ints

    def sums(self, counts: Ints) -> Ints:
        """Return int64[cells]: the sum of ``counts`` (int64[m]) over each cell."""
        sums: Ints = np.add.reduceat(counts, self.starts)
        return sums

    def first_ones(self, slots: Ints, most: Ints) -> Ints:
        """Return int64[m]: the first slots of each cell, ``most`` (int64[cells]) of them."""
        slots = np.minimum(slots, most[self.which])
        upto = slots.cumsum()
        before = (upto - slots)[self.starts][self.which]
        taken = np.minimum(upto - before, most[self.which])
        found: Ints = np.diff(taken, prepend=0)
        found[self.starts] = taken[self.starts]
        return found


def _scores(
    pod_class: PodClass, standing: Ints, rows: Ints | slice, room: Room, packing: Packing
) -> tuple[utilisation_of.Scores, utilisation_of.Scores | None]:
    """Return, by row, the score of a first pod, and how much it falls with each further pod.

    The second is None where each node is filled before the next one.
    """
    if not pod_class.profile.packs_gangs:
        packing = pod_class.profile.packing
    attributes = standing[rows].astype(np.float64)
    free, allocatable = room.free, room.snapshot.allocatable
    full_with_one = utilisation_of.utilisation(pod_class, free, allocatable, rows, 1)
    if packing == "most-allocated":
        return attributes + full_with_one, None
    full_with_two = utilisation_of.utilisation(pod_class, free, allocatable, rows, 2)
    return attributes - full_with_one, full_with_two - full_with_one


def _fill_best_first(score: utilisation_of.Scores, slots: Ints, count: int) -> Ints:
    """Fill node after node, best first. A placed pod raises its node's score, as greedy would."""
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
    """Place each pod on the node that has the best score at that moment.

    The k-th pod on a node scores ``score - (k - 1) * slope``: find the score that ``count`` pods
    reach by bisection, then place the remaining pods at that score in row order. So no pod goes to
    a node that ranks behind ``count`` other nodes.
    """
    if 4 * count < len(score):
        best = _first_few(score, count)
        pods = np.zeros(len(slots), np.int64)
        alone = count == 1  # the best node takes it
        pods[best] = 1 if alone else _spread(score[best], slope[best], slots[best], count)
        return pods
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
    if left:  # several pods of one node have the threshold's score
        more = np.minimum((slots - pods).cumsum(), left)
        pods += np.diff(more, prepend=0)
    return pods


def _spread_in_cells(
    score: utilisation_of.Scores, slope: utilisation_of.Scores, slots: Ints, cells: _Cells
) -> Ints:
    """As ``_spread``, for each cell separately."""
    slope = np.maximum(slope, 1e-6)
    low = np.minimum.reduceat(score - slots * slope, cells.starts) - 1.0
    high = np.maximum.reduceat(score, cells.starts) + 1.0
    for _ in range(60):
        middle = (low + high) / 2
        pods = _pods_above(middle[cells.which], score, slope, slots)
        is_enough = cells.sums(pods) >= cells.quotas
        low, high = np.where(is_enough, middle, low), np.where(is_enough, high, middle)
    pods = _pods_above(high[cells.which], score, slope, slots)
    at_the_edge = _pods_above(low[cells.which], score, slope, slots) > pods
    pods += cells.first_ones(at_the_edge.astype(np.int64), cells.quotas - cells.sums(pods))
    return pods + cells.first_ones(slots - pods, cells.quotas - cells.sums(pods))


def _first_few(score: utilisation_of.Scores, count: int) -> Ints:
    """Return the rows with the ``count`` best scores, in row order, and ties with the last one.

    For a count of 1 it is the first row with the best score only.
    """
    if count == 1:
        return np.array([np.argmax(score)])
    last = np.partition(score, len(score) - count)[len(score) - count]
    better, equal = np.flatnonzero(score > last), np.flatnonzero(score == last)
    return np.sort(np.concatenate([better, equal[:count]]))


def _pods_above(
    limit: float | utilisation_of.Scores,
    score: utilisation_of.Scores,
    slope: utilisation_of.Scores,
    slots: Ints,
) -> Ints:
    pods = np.floor((score - limit) / slope) + 1
    clipped: Ints = np.clip(pods, 0, slots).astype(np.int64)
    return clipped
