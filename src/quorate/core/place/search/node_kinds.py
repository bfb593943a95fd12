"""The topologies that members' rules name, and the nodes sorted into kinds.

Two nodes are of one kind if the members of a gang can never tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.place.packing.domains import domain_codes
from quorate.core.place.search.values import Location, NodeFacts, NodeKind
from quorate.core.room.room import Room

_Table = npt.NDArray[np.integer]


class Topologies:
    """Codes of domains, by label. ``rows`` is int64[m]: the nodes that matter."""

    def __init__(self, room: Room, rows: Ints) -> None:
        self._room = room
        self._rows = rows
        self._codes: dict[str, Ints] = {}
        self._within: dict[tuple[str, str, bool], bool] = {}
        self.shared: list[str] = []
        """Labels with several nodes that matter in one domain; those with few domains first."""
        self.local: list[str] = []
        """The other labels."""
        self.location_codes: list[Ints] = []
        """By shared topology: int64[m], the domain of each node that matters."""
        self.is_nested = True
        """Whether each domain of a shared topology lies within one domain of the one before."""

    def codes(self, key: str) -> Ints:
        """Return int64[n]: the domain of each node; -1: none."""
        found = self._codes.get(key)
        if found is None:
            found = self._codes[key] = domain_codes(key, self._room)
        return found

    def sort(self, keys: set[str]) -> None:
        """Tell shared topologies from local ones, and find out whether they are nested."""
        sizes = {}
        for key in sorted(keys):
            codes = self.codes(key)[self._rows]
            values, nodes = np.unique(codes[codes >= 0], return_counts=True)
            if np.any(nodes > 1):
                sizes[key] = len(values)
        self.shared = sorted(sizes, key=lambda key: (sizes[key], key))
        self.local = sorted(keys - sizes.keys())
        whole = np.zeros(len(self._rows), np.int64)
        for key in self.shared:
            codes = self.codes(key)[self._rows]
            codes = np.where(codes < 0, -1 - whole, codes)  # no domain: one of its own in each
            pairs = np.unique(np.stack([codes, whole]), axis=1)
            self.is_nested &= len(np.unique(pairs[0])) == pairs.shape[1]
            _, whole = np.unique(np.stack([whole, codes]), axis=1, return_inverse=True)
            whole = whole.reshape(-1)
            self.location_codes.append(codes)

    def index(self, key: str) -> int:
        """Return the index of a shared topology; -1: it is local."""
        return self.shared.index(key) if key in self.shared else -1

    def lies_within(self, inner: str, outer: str, *, whole: bool = False) -> bool:
        """Whether each domain of ``inner`` lies within one domain of ``outer``.

        Or, unless ``whole``, in none at all.
        """
        key = inner, outer, whole
        if key not in self._within:
            has = self.codes(inner) >= 0
            pairs = np.unique(np.stack([self.codes(inner)[has], self.codes(outer)[has]]), axis=1)
            self._within[key] = inner == outer or (
                len(np.unique(pairs[0])) == pairs.shape[1] and not (whole and (pairs[1] < 0).any())
            )
        return self._within[key]


class Masks(NamedTuple):
    """What tells nodes apart, as lists of bool[m]. Bits of ``NodeFacts`` are in the same order."""

    allowed: list[Mask]
    labelled: list[Mask]
    """By local topology: whether the node has the label."""
    near: list[Mask]
    counted: list[Mask]
    in_minimum: list[Mask]
    has_domain_for: list[Mask]


def facts_of(
    masks: Masks, on_node: Sequence[int], along_local: Sequence[Sequence[int] | None]
) -> tuple[list[NodeFacts], Ints]:
    """Return the different facts, and int64[m]: the index of each node's.

    ``on_node`` is by class a mask of those with which it shares no node. ``along_local`` is the
    same for each local topology, where nodes have the label (None: nobody keeps apart along it).
    """
    flat = np.stack([mask for some in masks for mask in some], axis=1)
    widths = np.cumsum([len(some) for some in masks])[:-1]
    groups, index = _alike(np.packbits(flat, axis=1))
    found = []
    for group in groups:
        allowed, labelled, *others = map(_mask_of, np.split(flat[group[0]], widths))
        apart = list(on_node)
        for bit, more in enumerate(along_local):
            if labelled >> bit & 1 and more is not None:
                apart = [mine | other for mine, other in zip(apart, more, strict=True)]
        found.append(NodeFacts(allowed, tuple(apart), *others))
    return found, index


def rows_by_kind(
    rows: Ints, facts: Ints, free: Ints, counts: Sequence[Ints], location_codes: Sequence[Ints]
) -> dict[tuple[Location, NodeKind], list[int]]:
    """Return the rows of each kind, by location. All but ``free`` (int64[m, columns]) are int64[m].

    ``counts`` are those of the local counters.
    """
    table = np.column_stack([facts, free, *counts, *location_codes])
    groups, _ = _alike(table)
    found: dict[tuple[Location, NodeKind], list[int]] = {}
    free_end = 1 + free.shape[1]
    counts_end = free_end + len(counts)
    numbers = rows.tolist()
    for group, row in zip(groups, table[[group[0] for group in groups]].tolist(), strict=True):
        kind = NodeKind(row[0], tuple(row[1:free_end]), 0, tuple(row[free_end:counts_end]))
        found[tuple(row[counts_end:]), kind] = [numbers[index] for index in group]
    return found


def _alike(table: _Table) -> tuple[list[list[int]], Ints]:
    """Return groups of the indices of rows that are equal, in the order of what is in them.

    And int64[rows]: the group of each.
    """
    order = np.lexsort(table.T[::-1])
    ordered = table[order]
    begins = np.ones(len(table), np.bool_)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group_of = np.empty(len(table), np.int64)
    group_of[order] = np.cumsum(begins) - 1
    indices, bounds = order.tolist(), [*np.flatnonzero(begins).tolist(), len(table)]
    return [indices[start:end] for start, end in pairwise(bounds)], group_of


def _mask_of(bits: Mask) -> int:
    return sum(1 << index for index in np.flatnonzero(bits).tolist())
