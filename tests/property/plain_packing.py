"""Packing by domain as it reads: domain after domain, cell after cell, pod after pod. And slow."""

import numpy as np

from quorate.core.place.packing.domains import Cells, domain_codes, even_quotas, levels_of
from quorate.core.place.packing.fill import fill
from quorate.core.place.packing.pack import (
    _apart_by,
    _is_along_one_topology,
    _is_per_node,
    _spread_over,
)
from quorate.core.rules.scoring import standing_score


class _Plain:
    """Pods by domain, of a spread constraint."""

    def __init__(self, cells, levels):
        self.codes, self.levels = cells.codes, levels
        self.counts = levels.counts.copy()

    def pods(self, row):
        return int(self.counts[self.codes[row]])

    def accepts(self, row):
        counted = self.counts[self.levels.in_minimum]
        lowest = 0 if self.levels.too_few or not len(counted) else int(counted.min())
        return self.pods(row) + 1 - lowest <= self.levels.max_skew


def place_one_by_one(count, slots, order, spread, apart):
    """As ``place.packing.one_by_one.place_one_by_one``: for each pod, look at every cell."""
    counts = [_Plain(cells, levels) for cells, levels in spread]
    per_node = [one for one, (cells, _) in zip(counts, spread, strict=True) if cells.is_per_node]
    shared = [cells.codes for cells, _ in spread if not cells.is_per_node]
    codes = [*shared, *(cells.codes for cells in apart)]
    left, taken = slots.copy(), set()
    groups, pods = {}, np.zeros(len(slots), np.int64)
    for row in order.tolist():
        groups.setdefault(tuple(int(one[row]) for one in codes), []).append(row)

    def level(row):
        return sum(one.pods(row) for one in per_node)

    def is_accepted(row):
        is_taken = any((i, int(cells.codes[row])) in taken for i, cells in enumerate(apart))
        return not is_taken and all(one.accepts(row) for one in counts)

    for _ in range(count):
        for group in groups.values():
            group.sort(key=level)  # it keeps the order of those of the same level
        may = [group for group in groups.values() if group and is_accepted(group[0])]
        if not may:
            break
        group = min(may, key=lambda one: [count.pods(one[0]) for count in counts])
        row = group[0]
        pods[row] += 1
        left[row] -= 1
        for one in counts:
            one.counts[one.codes[row]] += 1
        taken |= {(i, int(c.codes[row])) for i, c in enumerate(apart) if c.codes[row] >= 0}
        if per_node or not left[row]:
            group.remove(row)
            group += [row] if left[row] else []
    return pods


def fill_cells(pod_class, quotas, codes, slots, room, packing):
    """As ``place.packing.fill.fill_cells``: one cell after the other."""
    pods = np.zeros(len(slots), np.int64)
    for cell, quota in enumerate(quotas.tolist()):
        pods += fill(pod_class, quota, np.where(codes == cell, slots, 0), room, packing)
    return pods


def _one_for_each(topology, pod_class, slots, room, packing):
    codes = domain_codes(topology, room)
    if _is_per_node(topology, room):
        return np.where(codes >= 0, np.minimum(slots, 1), slots)
    left = np.where(codes < 0, slots, 0)
    for code in np.unique(codes[(codes >= 0) & (slots > 0)]).tolist():
        left += fill(pod_class, 1, np.where(codes == code, slots, 0), room, packing)
    return left


def _deal_out(pod_class, count, slots, room):
    spread, apart = [], []
    for one in _spread_over(pod_class, room):
        cells = Cells.of([one.topology_key], room)
        spread.append((cells, levels_of(one, pod_class, room, cells)))
    for topology in sorted(_apart_by(pod_class, room)):
        if _is_per_node(topology, room):
            slots = np.where(room.has_label(topology), np.minimum(slots, 1), slots)
        else:
            apart.append(Cells.of([topology], room))
    score = standing_score(pod_class, room, slots > 0)
    order = np.argsort(-score, kind="stable")
    return place_one_by_one(count, slots, order[slots[order] > 0], spread, apart)


def spread_out(pod_class, count, slots, room, packing):
    """As ``place.packing.pack._spread_out``."""
    if not _is_along_one_topology(pod_class, room):
        return _deal_out(pod_class, count, slots, room)
    for topology in sorted(_apart_by(pod_class, room)):
        slots = _one_for_each(topology, pod_class, slots, room, packing)
    spread = _spread_over(pod_class, room)
    if not spread:
        return fill(pod_class, count, slots, room, packing)
    cells = Cells.of([spread[0].topology_key], room)
    levels = levels_of(spread[0], pod_class, room, cells)
    quotas = even_quotas(count, levels, cells.sums(slots))
    if cells.is_per_node:
        return np.append(quotas, 0)[cells.codes]
    return fill_cells(pod_class, quotas, cells.codes, slots, room, packing)


def together(pod_class, count, slots, room, packing):
    """As ``pack._together``: try every cell that could take more than the best so far."""
    cells = Cells.of([term.topology_key for term in pod_class.spec.affinity], room)
    has = cells.sums(slots)
    sign = np.where((has >= count) & (packing == "most-allocated"), 1, -1)
    best = np.zeros(len(slots), np.int64)
    for cell in np.lexsort((sign * has, has < count)).tolist():
        if has[cell] <= best.sum():
            break
        inside = np.where(cells.codes == cell, slots, 0)
        pods = spread_out(pod_class, count, inside, room, packing)
        if pods.sum() > best.sum():
            best = pods
    return best
