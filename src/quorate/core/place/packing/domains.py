"""Domains of a topology, and how many pods of one class each gets. Called by ``pack``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import SpreadConstraint
from quorate.core.room.room import Room
from quorate.core.rules.filtering import own_slots
from quorate.core.rules.pods import inter_pod_affinity, pod_topology_spread

_ENDLESS = 2**40


def domain_codes(topology: str, room: Room) -> Ints:
    """Return int64[n]: numbers of the domains in the order of their first nodes; -1: none.

    The label's own codes depend on when it was first read, and no plan may depend on that.
    """
    codes = room.snapshot.label(topology).codes[: len(room.free)].astype(np.int64)
    values, first, which = np.unique(codes, return_index=True, return_inverse=True)
    present = values >= 0
    numbers = np.full(len(values), -1, np.int64)
    numbers[present] = np.argsort(np.argsort(first[present]))
    renumbered: Ints = numbers[which.reshape(-1)]
    return renumbered


class Cells(NamedTuple):
    """Nodes grouped by the values of some labels: ``codes`` int64[n], -1 if one is absent."""

    codes: Ints
    number: int

    @classmethod
    def of(cls, topologies: Sequence[str], room: Room) -> Cells:
        """Return the cells of some labels, one or more."""
        rows = len(room.free)
        whole = np.zeros(rows, np.int64)
        present = np.ones(rows, np.bool_)
        for topology in dict.fromkeys(topologies):
            codes = domain_codes(topology, room)
            present &= codes >= 0
            values, whole = np.unique(
                whole * (codes.max(initial=0) + 2) + codes, return_inverse=True
            )
        codes = np.full(rows, -1, np.int64)
        values, codes[present] = np.unique(whole[present], return_inverse=True)
        return cls(codes, len(values))

    def sums(self, counts: Ints) -> Ints:
        """Return int64[cells]: ``counts`` (int64[n]) summed over each cell."""
        present = self.codes >= 0
        sums = np.bincount(self.codes[present], weights=counts[present], minlength=self.number)
        return sums.astype(np.int64)

    @property
    def is_per_node(self) -> bool:
        """Whether each cell is one node."""
        return bool(np.bincount(self.codes[self.codes >= 0], minlength=1).max() <= 1)


class Levels(NamedTuple):
    """Counts of a spread constraint, int64[cells], and the cells that its minimum is taken over."""

    counts: Ints
    in_minimum: Mask
    max_skew: int
    too_few: bool
    """There are fewer domains than ``minDomains``: the minimum is 0."""


def levels_of(
    constraint: SpreadConstraint, pod_class: PodClass, room: Room, cells: Cells
) -> Levels:
    """Return how many pods the constraint counts in each of its domains, the ``cells``."""
    counted = pod_topology_spread.counted(constraint, pod_class, room).nodes
    pods = np.where(counted, pod_topology_spread.matching(constraint, room), 0)
    in_minimum = cells.sums(counted.astype(np.int64)) > 0
    too_few = int(in_minimum.sum()) < constraint.min_domains
    return Levels(cells.sums(pods), in_minimum, constraint.max_skew, too_few)


def even_quotas(count: int, levels: Levels, slots: Ints) -> Ints:
    """Return int64[cells]: how many of ``count`` pods each domain gets, the emptiest first.

    ``slots`` (int64[cells]) is what each domain takes. No domain exceeds the final count of the
    emptiest one plus the skew. The result equals that of placing pod after pod, always into the
    emptiest domain that has room.
    """
    filled = np.minimum(levels.counts + slots, _ENDLESS)
    lowest = 0
    if not levels.too_few and levels.in_minimum.any():
        lowest = int(filled[levels.in_minimum].min())
    most = np.clip(lowest + levels.max_skew - levels.counts, 0, slots)
    count = min(count, int(most.sum()))
    low, high = 0, int((levels.counts + most).max(initial=0))
    while low < high:  # the lowest level at which all pods have a domain
        middle = (low + high) // 2
        if int(np.clip(middle - levels.counts, 0, most).sum()) >= count:
            high = middle
        else:
            low = middle + 1
    quotas = np.clip(low - 1 - levels.counts, 0, most)
    next_ones = np.flatnonzero(np.clip(low - levels.counts, 0, most) > quotas)
    quotas[next_ones[: count - int(quotas.sum())]] += 1
    dealt: Ints = quotas
    return dealt


def one_by_domain(slots: Ints, cells: Cells, domains: Cells) -> Ints:
    """Return int64[n]: ``slots`` cut to one per cell and domain; uncut where there is no domain."""
    inside = np.flatnonzero((slots > 0) & (cells.codes >= 0) & (domains.codes >= 0))
    pairs = cells.codes[inside] * domains.number + domains.codes[inside]
    left = np.where(domains.codes < 0, slots, 0)
    left[inside[np.unique(pairs, return_index=True)[1]]] = 1
    return left


def most_by_cell(cells: Cells, slots: Ints, domains: Cells, levels: Levels) -> Ints:
    """Return int64[cells]: how many pods ``even_quotas`` places in each cell, if all go there.

    ``slots`` is int64[n], ``domains`` and ``levels`` are those of the spread constraint.
    """
    inside = np.flatnonzero((slots > 0) & (cells.codes >= 0) & (domains.codes >= 0))
    codes = cells.codes[inside] * domains.number + domains.codes[inside]
    pairs, which = np.unique(codes, return_inverse=True)
    room = np.bincount(which, weights=slots[inside], minlength=len(pairs)).astype(np.int64)
    cell, domain = pairs // max(domains.number, 1), pairs % max(domains.number, 1)
    counts = levels.counts[domain]
    lowest = np.zeros(cells.number, np.int64)
    if not levels.too_few and levels.in_minimum.any():
        lowest = _lowest_outside(cell, domain, cells.number, levels)
        is_counted = levels.in_minimum[domain]
        np.minimum.at(lowest, cell[is_counted], (counts + room)[is_counted])
    most = np.clip(lowest[cell] + levels.max_skew - counts, 0, room)
    return np.bincount(cell, weights=most, minlength=cells.number).astype(np.int64)


def _lowest_outside(cell: Ints, domain: Ints, cells: int, levels: Levels) -> Ints:
    """Return int64[cells]: the count of the emptiest domain that has no node in the cell."""
    emptiest = np.argsort(np.where(levels.in_minimum, levels.counts, _ENDLESS), kind="stable")
    emptiest = emptiest[: int(levels.in_minimum.sum())]
    rank = np.full(len(levels.counts), len(emptiest))
    rank[emptiest] = np.arange(len(emptiest))
    order = np.lexsort((rank[domain], cell))
    place = np.arange(len(order)) - np.searchsorted(cell[order], cell[order])
    covered = np.bincount(cell[order][rank[domain][order] == place], minlength=cells)
    # ``covered``: how many of the emptiest domains, in order, meet the cell; the next does not.
    lowest: Ints = np.append(levels.counts[emptiest], _ENDLESS)[np.minimum(covered, len(emptiest))]
    return lowest


def fixed_slots(pod_class: PodClass, room: Room, movers: Sequence[PodClass]) -> Ints:
    """Return int64[n]: slots by all rules that placing pods of the ``movers`` cannot relax.

    It leaves out affinity to the movers and spread constraints that count them.
    """
    slots = own_slots(pod_class, room)
    for one in pod_topology_spread.hard_ones(pod_class):
        slots[~room.has_label(one.topology_key)] = 0
        if not any(pod_topology_spread.counts_pods_of(one, mover, room) for mover in movers):
            slots[pod_topology_spread.is_skewed(one, pod_class, room)] = 0
    slots[inter_pod_affinity.repelled(pod_class, room) > 0] = 0
    terms = pod_class.spec.affinity
    for term in terms:
        slots[~room.has_label(term.topology_key)] = 0
    if terms and not any(inter_pod_affinity.attracts(pod_class, mover, room) for mover in movers):
        slots[~inter_pod_affinity.attracted(pod_class, room)] = 0
    return slots
