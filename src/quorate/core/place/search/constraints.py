"""What the members of a gang mean to one another, as small tables, and their nodes by kind.

In: the classes of the members, and the room. Out: which classes keep apart along which topology,
which attract which, and which pods a spread constraint counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.labels.neighbours import Column, Key
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import PodTerm, all_of
from quorate.core.place.search.node_kinds import Masks, Topologies, facts_of, rows_by_kind
from quorate.core.place.search.values import (
    MANY,
    Affinity,
    FinalLimit,
    Location,
    NodeKind,
    SkewLimit,
    SpreadCounter,
)
from quorate.core.room.room import Room
from quorate.core.rules.pods import inter_pod_affinity, pod_topology_spread
from quorate.core.rules.resources import node_ports


class _Counted(NamedTuple):
    """A spread counter in the making."""

    key: str
    classes: int
    counted: Mask
    """bool[n]: nodes whose pods are counted."""
    pods: Ints
    """int64[n]: running pods that are counted."""


class Constraints:
    """The tables, by index of a class, a counter or a shared topology."""

    def __init__(
        self, classes: Sequence[PodClass], room: Room, demand: Ints, units: Ints, slots: Ints
    ) -> None:
        """Make the tables. Nothing of the room is kept, as it changes while a search goes on.

        ``slots`` is int64[n, classes], by the rules that members do not relax. ``demand`` is
        int64[columns], of all members together; each member's is a multiple of ``units``.
        """
        self.classes = classes
        self.columns = sorted({c for pod_class in classes for c in pod_class.columns})
        self._room = room
        self._rows = np.flatnonzero(slots.any(axis=1))
        self._topologies = Topologies(room, self._rows)
        self._apart: dict[str, list[int]] = {"": self._apart_by_ports()}
        """By label ("": the node): by class a mask of those with which it shares no domain."""
        self._counted: list[_Counted] = []
        self.limits: list[list[SkewLimit]] = [[] for _ in classes]
        """By class."""
        self._note_anti_affinity()
        self._note_spread()
        self.final_limits: list[list[FinalLimit]] = [[] for _ in classes]
        """By class: the limits that one more pod of it comes closer to."""
        self._note_final_limits()
        terms = [self._terms_among_members(one) for one in classes]
        keys = {term.topology_key for some, _ in terms for term in some}
        keys |= {one.key for one in self._counted} | self._apart.keys() - {""}
        self._topologies.sort(keys)
        self.shared = self._topologies.shared
        self.is_nested = self._topologies.is_nested
        self.apart = [self._apart.get(key, [0] * len(classes)) for key in self.shared]
        """By shared topology and class: mask of the classes with which it shares no domain."""
        self._near: list[Mask] = []
        self.affinities = [self._affinity(*some) for some in zip(classes, terms, strict=True)]
        self.counters: list[SpreadCounter] = []
        for one in self._counted:
            self.counters.append(self._counter(one))
        self._sort_nodes(slots, demand, units)
        self.dominated = [self._dominated(i) for i in range(len(classes))]
        """By class: mask of the classes that open no domain to it."""
        self.cliques = self._cliques()
        self.node_matters_to = self._node_matters_to()
        """Mask of the classes for whose order the node matters, not only the domain."""
        del self._room, self._rows, self._topologies, self._counted, self._near

    # Who concerns whom

    def _mask(self, selector: int) -> int:
        return sum(1 << i for i, one in enumerate(self.classes) if selector in one.matched)

    def _apart_by_ports(self) -> list[int]:
        return node_ports.apart([one.spec.host_ports for one in self.classes])

    def _note_anti_affinity(self) -> None:
        number = self._room.snapshot.neighbours.selector_id
        for i, pod_class in enumerate(self.classes):
            for term in pod_class.spec.anti_affinity:
                against = self._mask(number(term.selector))
                if not against:
                    continue
                apart = self._apart.setdefault(term.topology_key, [0] * len(self.classes))
                apart[i] |= against
                for j in range(len(self.classes)):
                    apart[j] |= (against >> j & 1) << i

    def _terms_among_members(self, pod_class: PodClass) -> tuple[tuple[PodTerm, ...], int]:
        """Return the affinity terms that members may satisfy, and the mask of those who do."""
        terms = pod_class.spec.affinity
        if not terms:
            return (), 0
        classes = self._mask(self._room.snapshot.neighbours.selector_id(all_of(terms)))
        return (terms, classes) if classes else ((), 0)

    def _note_spread(self) -> None:
        """Note what is counted: classes with the same constraint share a counter."""
        room, known = self._room, dict[tuple[object, ...], int]()
        for i, pod_class in enumerate(self.classes):
            for one in pod_topology_spread.hard_ones(pod_class):
                classes = sum(
                    1 << j
                    for j, other in enumerate(self.classes)
                    if pod_topology_spread.counts_pods_of(one, other, room)
                )
                if not classes:
                    continue
                counted = pod_topology_spread.counted(one, pod_class, room).nodes
                domains = room.snapshot.label(one.topology_key).codes[: len(counted)][counted]
                same = one.topology_key, one.selector, counted.tobytes()
                counter = known.setdefault(same, len(self._counted))
                if counter == len(self._counted):
                    pods = np.where(counted, pod_topology_spread.matching(one, room), 0)
                    self._counted.append(_Counted(one.topology_key, classes, counted, pods))
                is_zero = len(np.unique(domains)) < one.min_domains
                limit = SkewLimit(counter, one.max_skew, classes >> i & 1, is_zero)
                self.limits[i].append(limit)

    def _note_final_limits(self) -> None:
        """Derive what must hold in the end from what must hold at each pod's turn.

        Of the classes that one minimum limits at least as narrowly as class i, the pod that comes
        last into a domain sees them all. So no domain may hold more of them than the minimum in the
        end, plus i's skew. A pod that does not count itself may come first.
        """
        for i, limits in enumerate(self.limits):
            for minimum_of, max_skew, self_match, is_zero in limits:
                narrower = self_match * sum(
                    1 << j
                    for j, others in enumerate(self.limits)
                    for one in others
                    if one.counter == minimum_of and one.self_match and one.max_skew <= max_skew
                    if one.minimum_is_zero or not is_zero
                )
                counted_by = self._counter_of(narrower, self._counted[minimum_of])
                final = FinalLimit(counted_by, minimum_of, max_skew, self_match, is_zero)
                for j in range(len(self.classes)):
                    if (narrower >> j & 1 or j == i) and final not in self.final_limits[j]:
                        self.final_limits[j].append(final)

    def _counter_of(self, classes: int, whole: _Counted) -> int:
        """Return the counter that counts these classes where ``whole`` counts."""
        for number, one in enumerate(self._counted):
            if one.classes == classes and one.counted is whole.counted:
                return number
        self._counted.append(whole._replace(classes=classes))
        return len(self._counted) - 1

    def _dominated(self, index: int) -> int:
        """Return the mask of the classes that open no domain to the class.

        They are attracted to the same pods, from domains that lie within its own: only the first of
        them may be where the class may not. Or they keep apart from it in a domain that it shares.
        """
        mine = self.affinities[index]
        if mine is None:
            return 0
        keys = [term.topology_key for term in self.classes[index].spec.affinity]
        lies_within = self._topologies.lies_within
        found = 0
        for j, (other, pod_class) in enumerate(zip(self.affinities, self.classes, strict=True)):
            theirs = [term.topology_key for term in pod_class.spec.affinity]
            is_narrower = (
                other is not None
                and other.selector == mine.selector
                and all(any(lies_within(one, key) for one in theirs) for key in keys)
            )
            keeps_apart = any(
                apart[index] >> j & 1 and any(lies_within(key, wide, whole=True) for key in keys)
                for wide, apart in self._apart.items()
                if wide
            )
            found |= (is_narrower or keeps_apart) << j
        return found

    def _node_matters_to(self) -> int:
        found = 0
        for i, (limits, affinity) in enumerate(zip(self.limits, self.affinities, strict=True)):
            if any(self.counters[limit.counter].topology < 0 for limit in limits):
                found |= 1 << i
            if affinity is not None and any(level < 0 for _, level, _ in affinity.terms):
                found |= 1 << i | affinity.classes
        for counter in self.counters:
            found |= counter.classes if counter.topology < 0 else 0
        return found

    def _cliques(self) -> list[tuple[int, int]]:
        """Return masks of classes that all keep apart, themselves too, with the shared topology.

        -1 stands for the node: its local topologies and host ports.
        """
        tables = [(level, apart) for level, apart in enumerate(self.apart)]
        on_node = ("", *self._topologies.local)
        tables += [(-1, self._apart[key]) for key in on_node if key in self._apart]
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

    # Numbers

    def _affinity(
        self, pod_class: PodClass, found: tuple[tuple[PodTerm, ...], int]
    ) -> Affinity | None:
        terms, classes = found
        if not terms:
            return None
        room, topologies = self._room, self._topologies
        selector = room.snapshot.neighbours.selector_id(all_of(pod_class.spec.affinity))
        counts = room.counts(Key(Column.PODS, selector))
        numbered = []
        for term in terms:
            near = room.domain_sums(term.topology_key, counts) > 0
            level, codes = topologies.index(term.topology_key), topologies.codes(term.topology_key)
            domains = frozenset(np.unique(codes[near]).tolist()) if level >= 0 else frozenset()
            numbered.append((len(self._near), level, domains))
            self._near.append(near)
        may_be_first = inter_pod_affinity.is_first(pod_class, room)
        return Affinity(tuple(numbered), classes, selector, may_be_first)

    def _counter(self, one: _Counted) -> SpreadCounter:
        topology, codes = self._topologies.index(one.key), self._topologies.codes(one.key)
        index = sum(counter.topology < 0 for counter in self.counters)
        sums = np.bincount(codes[one.counted], weights=one.pods[one.counted]).astype(np.int64)
        here = set(codes[self._rows].tolist())
        domains = np.unique(codes[one.counted]).tolist()
        elsewhere = min((int(sums[d]) for d in domains if d not in here), default=MANY)
        counts = {d: int(sums[d]) if d < len(sums) else 0 for d in here if d >= 0 and topology >= 0}
        return SpreadCounter(topology, one.classes, index, elsewhere, counts, frozenset(domains))

    # Nodes

    def _sort_nodes(self, slots: Ints, demand: Ints, units: Ints) -> None:
        """Sort the nodes into kinds: ``facts``, and ``rows_of`` by location and kind."""
        rows, codes, local = self._rows, self._topologies.codes, self._topologies.local
        masks = Masks(
            [slots[rows, i] > 0 for i in range(len(self.classes))],
            [codes(key)[rows] >= 0 for key in local],
            [near[rows] for near in self._near],
            [one.counted[rows] for one in self._counted],
            [
                np.isin(codes(one.key)[rows], list(counter.in_minimum))
                for one, counter in zip(self._counted, self.counters, strict=True)
            ],
            [self._has_domain_for(one) for one in self.classes],
        )
        along_local = [self._apart.get(key) for key in local]
        self.facts, facts = facts_of(masks, self._apart[""], along_local)
        # Free capacity that all these members together cannot use does not tell nodes apart; nor
        # does how far others overcommitted a node in what these members do not ask for.
        free = np.clip(self._room.free[rows][:, self.columns], 0, demand) // units * units
        counts = [
            self._room.domain_sums(one.key, one.pods)[rows]
            for one, counter in zip(self._counted, self.counters, strict=True)
            if counter.topology < 0
        ]
        self.rows_of: dict[tuple[Location, NodeKind], list[int]] = rows_by_kind(
            rows, facts, free, counts, self._topologies.location_codes
        )

    def _has_domain_for(self, pod_class: PodClass) -> Mask:
        found = np.zeros(len(self._rows), np.bool_)
        for term in pod_class.spec.affinity:
            found |= self._topologies.codes(term.topology_key)[self._rows] >= 0
        return found
