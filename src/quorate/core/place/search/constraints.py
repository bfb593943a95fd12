"""What the members of a gang mean to one another, as small tables for ``place.search.joint``.

In: some classes and the room. Out: which classes keep apart along which topology, which seek which,
which pods a spread constraint counts; and the nodes, sorted into kinds. Bit i of a mask is class i.
A topology of whose domains each holds one node that matters is *local*: its state is the node's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.labels.neighbours import Column, Key
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import PodTerm, all_of
from quorate.core.place.packing.domains import domain_codes
from quorate.core.place.search.values import Ceiling, Cell, Kind, Limit, Meter, Pull, Static
from quorate.core.plan.filters import inter_pod_affinity, node_ports, pod_topology_spread
from quorate.core.room.room import Room

Table = npt.NDArray[np.integer]


class _Counted(NamedTuple):
    key: str
    by: int
    counted: Mask
    pods: Ints


class Ties:
    """The tables. ``rows_of`` says which rows are of which kind, by cell."""

    def __init__(
        self,
        classes: Sequence[PodClass],
        room: Room,
        in_all: Ints,
        units: Ints,
        slots: Ints,
    ) -> None:
        """Make the tables. ``slots`` is int64[n, classes], by the rules that members do not relax.

        ``in_all`` is int64[columns]: what all the members ask for; ``units`` is what each asks for
        a multiple of. Nothing of the room is kept: it changes while a search goes on.
        """
        self.classes = classes
        self.columns = sorted({c for pod_class in classes for c in pod_class.columns})
        self._room = room
        self._known_codes: dict[str, Ints] = {}
        self._known_within: dict[tuple[str, str, bool], bool] = {}
        self._apart: dict[str, list[int]] = {"": self._apart_by_ports()}
        self._counted: list[_Counted] = []
        self.limits: list[list[Limit]] = [[] for _ in classes]
        self._note_anti_affinity()
        self._note_spread()
        self.ceilings: list[list[Ceiling]] = [[] for _ in classes]
        """By class: which ceilings one more pod of it comes closer to."""
        self._note_ceilings()
        pulls = [self._affinity(one) for one in classes]
        self._rows = np.flatnonzero(slots.any(axis=1))
        keys = {term.topology_key for terms, _ in pulls for term in terms}
        keys |= {one.key for one in self._counted} | self._apart.keys() - {""}
        self._sort_topologies(keys)
        self.apart = [self._apart.get(key, [0] * len(classes)) for key in self.shared]
        self.pulls: list[Pull | None] = []
        self._near: list[Mask] = []
        self._number_pulls(pulls)
        self.meters: list[Meter] = []
        for one in self._counted:
            self._number_meter(one)
        self._sort_nodes(slots, in_all, units)
        self.shadowed = [self._shadowed(i) for i in range(len(classes))]
        self.cliques = self._cliques()
        self.is_even = not any(
            {"NodePorts", "InterPodAffinity"} & set(one.profile.disabled) for one in classes
        )
        """Whether of two classes that keep apart both do, so that none may come first."""
        self.minds_nodes = self._minds_nodes()
        """Classes for whose order not only the domain matters, but the node."""
        del self._room, self._rows, self._counted, self._near, self._known_codes

    # Who concerns whom

    def _mask(self, selector: int) -> int:
        return sum(1 << i for i, one in enumerate(self.classes) if selector in one.matched)

    def _apart_by_ports(self) -> list[int]:
        found = node_ports.apart([one.shape.host_ports for one in self.classes])
        return [
            0 if "NodePorts" in one.profile.disabled else mask
            for one, mask in zip(self.classes, found, strict=True)
        ]

    def _note_anti_affinity(self) -> None:
        number = self._room.snapshot.neighbours.selector_id
        for i, pod_class in enumerate(self.classes):
            for term in pod_class.shape.anti_affinity:
                against = self._mask(number(term.selector))
                if not against:
                    continue
                apart = self._apart.setdefault(term.topology_key, [0] * len(self.classes))
                if not inter_pod_affinity.is_disabled(pod_class):
                    apart[i] |= against
                for j, other in enumerate(self.classes):
                    if not inter_pod_affinity.is_disabled(other):
                        apart[j] |= (against >> j & 1) << i

    def _affinity(self, pod_class: PodClass) -> tuple[tuple[PodTerm, ...], int]:
        """Return the terms that members may satisfy, and which classes do."""
        terms = pod_class.shape.affinity
        if not terms or inter_pod_affinity.is_disabled(pod_class):
            return (), 0
        by = self._mask(self._room.snapshot.neighbours.selector_id(all_of(terms)))
        return (terms, by) if by else ((), 0)

    def _note_spread(self) -> None:
        """Number what is counted: classes with the same constraint share a meter."""
        room, known = self._room, dict[tuple[object, ...], int]()
        for i, pod_class in enumerate(self.classes):
            for one in pod_topology_spread.hard_ones(pod_class):
                by = sum(
                    1 << j
                    for j, other in enumerate(self.classes)
                    if pod_topology_spread.counts_pods_of(one, other, room)
                )
                if not by:
                    continue
                counted = pod_topology_spread.counted(one, pod_class, room).nodes
                domains = room.snapshot.label(one.topology_key).codes[: len(counted)][counted]
                same = one.topology_key, one.selector, counted.tobytes()
                meter = known.setdefault(same, len(self._counted))
                if meter == len(self._counted):
                    pods = np.where(counted, pod_topology_spread.matching(one, room), 0)
                    self._counted.append(_Counted(one.topology_key, by, counted, pods))
                too_few = len(np.unique(domains)) < one.min_domains
                self.limits[i].append(Limit(meter, one.max_skew, by >> i & 1, too_few))

    def _note_ceilings(self) -> None:
        """Derive what must hold in the end from what must hold at each pod's turn.

        Of the classes that one minimum limits at least as narrowly as class i, the pod that comes
        last into a domain sees them all. So no domain may hold more of them than the minimum in the
        end, plus i's skew. A pod that does not count itself may come first.
        """
        for i, limits in enumerate(self.limits):
            for meter, max_skew, itself, too_few in limits:
                alike = itself * sum(
                    1 << j
                    for j, others in enumerate(self.limits)
                    for one in others
                    if one.meter == meter and one.itself and one.max_skew <= max_skew
                    if one.too_few or not too_few
                )
                whole = self._counted[meter]
                counter = next(
                    number
                    for number, one in enumerate([*self._counted, whole._replace(by=alike)])
                    if one.by == alike and one.counted is whole.counted
                )
                if counter == len(self._counted):
                    self._counted.append(whole._replace(by=alike))
                ceiling = Ceiling(counter, meter, max_skew, itself, too_few)
                for j in range(len(self.classes)):
                    if (alike >> j & 1 or j == i) and ceiling not in self.ceilings[j]:
                        self.ceilings[j].append(ceiling)

    def _shadowed(self, index: int) -> int:
        """Return the classes that do not let the class in where it may not come already.

        They are attracted to the same pods, from within as small domains or smaller ones: only the
        first of them may. Or they keep apart from the class in one of the domains that it shares.
        """
        mine = self.pulls[index]
        if mine is None:
            return 0
        keys = [term.topology_key for term in self.classes[index].shape.affinity]
        return sum(
            1 << j
            for j, other in enumerate(self.pulls)
            if (
                other is not None
                and other.selector == mine.selector
                and all(
                    any(self._lies_within(term.topology_key, key) for term in theirs)
                    for key in keys
                    for theirs in [self.classes[j].shape.affinity]
                )
            )
            or any(
                apart[index] >> j & 1
                and any(self._lies_within(key, wide, whole=True) for key in keys)
                for wide, apart in self._apart.items()
                if wide
            )
        )

    def _lies_within(self, inner: str, outer: str, *, whole: bool = False) -> bool:
        """Whether each domain of the one topology is within one domain of the other.

        Or, but if ``whole``, in none at all.
        """
        key = inner, outer, whole
        if key not in self._known_within:
            has = self._codes(inner) >= 0
            pairs = np.unique(np.stack([self._codes(inner)[has], self._codes(outer)[has]]), axis=1)
            self._known_within[key] = inner == outer or (
                len(np.unique(pairs[0])) == pairs.shape[1] and not (whole and (pairs[1] < 0).any())
            )
        return self._known_within[key]

    def _minds_nodes(self) -> int:
        if not self.is_even:
            return (1 << len(self.classes)) - 1
        found = 0
        for i, (limits, pull) in enumerate(zip(self.limits, self.pulls, strict=True)):
            if any(self.meters[limit.meter].topology < 0 for limit in limits):
                found |= 1 << i
            if pull is not None and any(level < 0 for _, level, _ in pull.terms):
                found |= 1 << i | pull.by
        for meter in self.meters:
            found |= meter.by if meter.topology < 0 else 0
        return found

    def _cliques(self) -> list[tuple[int, int]]:
        """Return sets of classes that all keep apart, themselves too, with the shared topology.

        -1 stands for the node: its local topologies and host ports.
        """
        tables = [(level, apart) for level, apart in enumerate(self.apart)]
        tables += [(-1, self._apart[key]) for key in ("", *self.local) if key in self._apart]
        found = set()
        for level, apart in tables:
            for first in range(len(self.classes)):
                clique = 0
                for i in (first, *range(len(self.classes))):
                    if apart[i] >> i & 1 and apart[i] & clique == clique:
                        clique |= 1 << i
                if clique >> first & 1:
                    found.add((clique, level))
        return sorted(found)

    # Topologies

    def _codes(self, key: str) -> Ints:
        found = self._known_codes.get(key)
        if found is None:
            found = self._known_codes[key] = domain_codes(key, self._room)
        return found

    def _sort_topologies(self, keys: set[str]) -> None:
        """Tell shared topologies from local ones, and find out whether they are nested."""
        sizes = {}
        for key in sorted(keys):
            codes = self._codes(key)[self._rows]
            values, nodes = np.unique(codes[codes >= 0], return_counts=True)
            if np.any(nodes > 1):
                sizes[key] = len(values)
        self.shared = sorted(sizes, key=lambda key: (sizes[key], key))
        self.local = sorted(keys - sizes.keys())
        whole = np.zeros(len(self._rows), np.int64)
        self.cells: list[Ints] = []
        self.is_nested = True
        for key in self.shared:
            codes = self._codes(key)[self._rows]
            codes = np.where(codes < 0, -1 - whole, codes)  # no domain: one of its own in each
            pairs = np.unique(np.stack([codes, whole]), axis=1)
            self.is_nested &= len(np.unique(pairs[0])) == pairs.shape[1]
            _, whole = np.unique(np.stack([whole, codes]), axis=1, return_inverse=True)
            whole = whole.reshape(-1)
            self.cells.append(codes)

    def _place_of(self, key: str) -> int:
        return self.shared.index(key) if key in self.shared else -1

    # Numbers

    def _number_pulls(self, pulls: list[tuple[tuple[PodTerm, ...], int]]) -> None:
        room = self._room
        for pod_class, (terms, by) in zip(self.classes, pulls, strict=True):
            if not terms:
                self.pulls.append(None)
                continue
            selector = room.snapshot.neighbours.selector_id(all_of(pod_class.shape.affinity))
            counts = room.counts(Key(Column.PODS, selector))
            numbered = []
            for term in terms:
                near = room.domain_sums(term.topology_key, counts) > 0
                level, codes = self._place_of(term.topology_key), self._codes(term.topology_key)
                domains = frozenset(np.unique(codes[near]).tolist()) if level >= 0 else frozenset()
                numbered.append((len(self._near), level, domains))
                self._near.append(near)
            is_first = inter_pod_affinity.is_first(pod_class, room)
            self.pulls.append(Pull(tuple(numbered), by, selector, is_first))

    def _number_meter(self, one: _Counted) -> None:
        topology = self._place_of(one.key)
        place = sum(meter.topology < 0 for meter in self.meters)
        codes = self._codes(one.key)
        sums = np.bincount(codes[one.counted], weights=one.pods[one.counted]).astype(np.int64)
        here = set(codes[self._rows].tolist())
        domains = np.unique(codes[one.counted]).tolist()
        elsewhere = min((int(sums[d]) for d in domains if d not in here), default=2**40)
        counts = {d: int(sums[d]) if d < len(sums) else 0 for d in here if d >= 0 and topology >= 0}
        self.meters.append(Meter(topology, one.by, place, elsewhere, counts, frozenset(domains)))

    # Nodes

    def _sort_nodes(self, slots: Ints, in_all: Ints, units: Ints) -> None:
        """Sort the nodes into kinds: alike in all that these pods could tell them apart by."""
        rows = self._rows
        # Room that all these pods together cannot use does not tell nodes apart; nor does how far
        # others overcommitted a node in what these pods do not ask for.
        free = np.clip(self._room.free[rows][:, self.columns], 0, in_all) // units * units
        local = [m for m in range(len(self.meters)) if self.meters[m].topology < 0]
        own = [
            self._room.domain_sums(self._counted[m].key, self._counted[m].pods)[rows] for m in local
        ]
        facts = [
            [slots[rows, i] > 0 for i in range(len(self.classes))],
            [self._codes(key)[rows] >= 0 for key in self.local],
            [near[rows] for near in self._near],
            [one.counted[rows] for one in self._counted],
            [self._in_minimum(m) for m in range(len(self.meters))],
            [self._sees(i) for i in range(len(self.classes))],
        ]
        widths = np.cumsum([len(masks) for masks in facts])[:-1]
        flat = np.stack([mask for masks in facts for mask in masks], axis=1)
        groups, static_of = _alike(np.packbits(flat, axis=1))
        self.statics = [
            self._static(*map(_mask_of, np.split(flat[group[0]], widths))) for group in groups
        ]
        table = np.column_stack([static_of, free, *own, *self.cells])
        groups, _ = _alike(table)
        self.rows_of: dict[tuple[Cell, Kind], list[int]] = {}
        width, meter_end = 1 + len(self.columns), 1 + len(self.columns) + len(local)
        numbers = rows.tolist()
        for group, row in zip(groups, table[[group[0] for group in groups]].tolist(), strict=True):
            kind = Kind(row[0], tuple(row[1:width]), 0, tuple(row[width:meter_end]))
            self.rows_of[tuple(row[meter_end:]), kind] = [numbers[index] for index in group]

    def _in_minimum(self, meter: int) -> Mask:
        codes = self._codes(self._counted[meter].key)[self._rows]
        return np.isin(codes, list(self.meters[meter].in_minimum))

    def _sees(self, index: int) -> Mask:
        seen = np.zeros(len(self._rows), np.bool_)
        for term in self.classes[index].shape.affinity:
            seen |= self._codes(term.topology_key)[self._rows] >= 0
        return seen

    def _static(
        self, allowed: int, labels: int, near: int, counted: int, in_minimum: int, seen: int
    ) -> Static:
        apart = list(self._apart[""])
        for bit, key in enumerate(self.local):
            if labels >> bit & 1 and key in self._apart:
                apart = [mine | more for mine, more in zip(apart, self._apart[key], strict=True)]
        return Static(allowed, tuple(apart), near, counted, in_minimum, seen)


def _alike(table: Table) -> tuple[list[list[int]], Ints]:
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
