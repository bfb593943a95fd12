"""What the joint search knows before its first pod: the nodes, and rules among the members.

In: the classes of the members, and the room. Out: tables by class and by node. A *level* is a
topology that rules of members name. Level 0 is the node itself: host ports, and labels of which no
two nodes share a value. What is known of a domain stands at each of its nodes. Classes are indices
from 0, and so are the nodes that matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.labels.neighbours import Column, Key
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import PodSelector, PodTerm, SpreadConstraint, all_of
from quorate.core.place.packing.domains import domain_codes, fixed_slots
from quorate.core.room.room import Room
from quorate.core.rules.pods import inter_pod_affinity, pod_topology_spread
from quorate.core.rules.resources import node_ports

MANY = 2**40
"""More pods than any cluster has."""
Hashes = npt.NDArray[np.uint64]


class Term(NamedTuple):
    """Required affinity to members along one level."""

    level: int
    near: Mask
    """bool[nodes]: where running pods satisfy it."""
    users: Mask
    """bool[classes]: those that have it."""
    classes: Mask
    """bool[classes]: those that satisfy it, with all other terms of its users."""
    openers: Mask
    """bool[classes]: those of them that may come into a domain before all users."""
    has_root: bool
    """Whether a user may come first of all, as it satisfies its own and no running pod does."""


class Limit(NamedTuple):
    """A spread constraint, as kube-scheduler applies it to each pod in its turn.

    The count in the pod's domain plus ``self_match`` is at most the minimum plus ``max_skew``.
    """

    level: int
    nodes: Mask
    """bool[nodes]: those whose pods count."""
    base: Ints
    """int64[nodes]: the running pods that count in the domain."""
    in_minimum: Mask
    """bool[nodes]: whether the minimum is over the domain."""
    fewest_elsewhere: int
    """The fewest pods in a domain where no member can be placed; 0 if ``minDomains`` asks so."""
    max_skew: int
    self_match: int
    """1 if the users are counted themselves, else 0."""
    classes: Mask
    """bool[classes]: those that are counted."""
    users: Mask
    """bool[classes]: those that have the constraint."""
    finally_counted: Mask
    """bool[classes]: a domain has, in the end, at most the final minimum plus ``max_skew`` of
    these and of running pods, whatever the order: the last of them saw all others. Pods that no
    limit, or a wider one, holds back may come after them."""


def hashed(table: npt.NDArray[np.int64 | np.bool_]) -> Hashes:
    """Return uint64[rows]: equal numbers for equal rows, and for others different ones.

    The chance that it is not so is far below that of a broken machine.
    """
    return mixed(table.astype(np.uint64) @ mixed(np.arange(1, table.shape[1] + 1, dtype=np.uint64)))


def mixed(numbers: Hashes) -> Hashes:
    """Scatter numbers over 64 bits, so that sums of the results stand for collections of them."""
    for shift, factor in (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB):
        numbers = (numbers + (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


class Tables:
    """The tables of one search. Nothing of the room is kept: it changes while a search goes on."""

    def __init__(self, counts: Sequence[tuple[PodClass, int]], room: Room) -> None:
        """Make the tables for so many members of each class."""
        self.classes = [pod_class for pod_class, _ in counts]
        self._room, self._codes_of = room, dict[str, Ints]()
        slots = np.stack([fixed_slots(c, room, self.classes) for c in self.classes], axis=1)
        self.counts_max = np.minimum([count for _, count in counts], slots.sum(axis=0))
        """int64[classes]: how many may be chosen. More of them never have a slot."""
        self.rows = np.flatnonzero(slots.any(axis=1))
        """int64[nodes]: their rows in the room."""
        self.allowed = slots[self.rows] > 0
        """bool[nodes, classes]: where all other rules let a class in."""
        self._note_resources()
        self._affinity = [pod_class.spec.affinity for pod_class in self.classes]
        self._number_levels()
        self.apart = self._pairs_apart()
        """bool[levels, classes, classes]: those that may not share a domain."""
        roots = map(self._may_be_first, self.classes, self._affinity)
        self.roots = np.array(list(roots))
        """bool[classes]: one pod of it may be the first of all that satisfy its affinity."""
        self.terms = self._terms()
        self.limits = self._limits()
        self.has_domain = np.zeros_like(self.allowed)
        """bool[nodes, classes]: whether the affinity of a class looks at the pods there."""
        for index, terms in enumerate(self._affinity):
            for term in terms:
                self.has_domain[:, index] |= self._codes(term.topology_key)[self.rows] >= 0
        flags = self.allowed, self.has_domain, self.labelled, *(term.near for term in self.terms)
        counts_of = [
            part for limit in self.limits for part in (limit.nodes, limit.base, limit.in_minimum)
        ]
        domains = () if self.is_nested else (self.codes,)
        self.facts = hashed(np.column_stack([*flags, *counts_of, *domains]))
        """uint64[nodes]: equal where only free capacity, and the domain, tell nodes apart."""
        del self._room, self._codes_of

    def _note_resources(self) -> None:
        columns = sorted({column for pod_class in self.classes for column in pod_class.columns})
        self.demand = np.zeros((len(self.classes), len(columns)), np.int64)
        """int64[classes, columns]: what a pod asks for."""
        for amounts, pod_class in zip(self.demand, self.classes, strict=True):
            for column, amount in pod_class.demands:
                amounts[columns.index(column)] = amount
        # Free capacity that all these members together cannot use does not tell nodes apart; nor
        # does how far others overcommitted a node in what these members do not ask for.
        most = self.counts_max @ self.demand
        units = np.maximum(np.gcd.reduce(self.demand, axis=0), 1)
        self.free = np.clip(self._room.free[self.rows][:, columns], 0, most) // units * units
        """int64[nodes, columns]"""

    # Levels

    def _number_levels(self) -> None:
        """Number the levels: first the node, then those with many domains."""
        specs = [
            (pod_class.spec.anti_affinity, pod_class.spread, pod_class.spec.affinity)
            for pod_class in self.classes
        ]
        keys = {rule.topology_key for rules in specs for some in rules for rule in some}
        domains = {}
        for key in sorted(keys):
            codes = self._codes(key)[self.rows]
            if len(np.unique(codes)) < len(codes) or (codes < 0).any():
                domains[key] = len(np.unique(codes))
        self._keys = ["", *sorted(domains, key=lambda key: (-domains[key], key))]
        self._level_of = dict.fromkeys(keys, 0) | {k: n for n, k in enumerate(self._keys)}
        nodes = np.arange(len(self.rows))
        codes = np.stack([nodes, *(self._codes(k)[self.rows] for k in self._keys[1:])], axis=1)
        self.labelled = codes >= 0
        """bool[nodes, levels]"""
        self.codes = np.where(self.labelled, codes, codes.max(initial=0) + 1 + nodes[:, None])
        """int64[nodes, levels]: domains; a node without the label is one of its own."""
        self.is_first = np.zeros_like(self.codes)
        """int64[nodes, levels]: 1 at one node of each domain, so that it is added up once."""
        for level, column in enumerate(self.codes.T):
            self.is_first[np.unique(column, return_index=True)[1], level] = 1
        pairs = zip(self.codes.T[1:], self.codes.T[2:], strict=False)
        self.is_nested = all(_are_within(inner, outer) for inner, outer in pairs)
        """Whether each domain lies in one of the next level, so that domains can be alike."""

    def _codes(self, key: str) -> Ints:
        """Return int64[n]: the domain of each node of the room; -1: none."""
        if key not in self._codes_of:
            self._codes_of[key] = domain_codes(key, self._room)
        return self._codes_of[key]

    def _lies_within(self, inner: str, outer: str) -> bool:
        """Whether each domain of ``inner`` lies within one domain of ``outer``."""
        has_label = self._codes(inner) >= 0
        codes, around = self._codes(inner)[has_label], self._codes(outer)[has_label]
        return _are_within(codes, around) and not (around < 0).any()

    def in_domains(self, level: int, nodes: Mask) -> Mask:
        """Return bool[nodes]: those that share a domain of the level with one of ``nodes``."""
        codes = self.codes[:, level]
        has_some = np.zeros(int(codes.max(initial=0)) + 1, np.bool_)
        has_some[codes[nodes]] = True
        return has_some[codes]

    # Who concerns whom

    def _may_be_first(self, pod_class: PodClass, terms: Sequence[PodTerm]) -> bool:
        return bool(terms) and inter_pod_affinity.is_first(pod_class, self._room)

    def _nobody(self) -> Mask:
        return np.zeros(len(self.classes), np.bool_)

    def _matched_by(self, selector: PodSelector) -> Mask:
        number = self._room.snapshot.neighbours.selector_id(selector)
        return np.array([number in pod_class.matched for pod_class in self.classes])

    def _pairs_apart(self) -> Mask:
        size = len(self.classes)
        apart = np.zeros((len(self._keys), size, size), np.bool_)
        for index, mask in enumerate(node_ports.apart([c.spec.host_ports for c in self.classes])):
            apart[0, index] = [mask >> other & 1 for other in range(size)]
        for index, pod_class in enumerate(self.classes):
            for term in pod_class.spec.anti_affinity:
                against = self._matched_by(term.selector)
                level = self._level_of[term.topology_key]
                apart[level, index] |= against
                apart[level, :, index] |= against
        return apart

    def _terms(self) -> list[Term]:
        """Return the affinity that members satisfy; classes that have the same share it."""
        users: dict[tuple[PodSelector, str], Mask] = {}
        for index, terms in enumerate(self._affinity):
            for term in terms:
                key = all_of(terms), term.topology_key
                users.setdefault(key, self._nobody())[index] = True
        return [
            self._term(*key, mask) for key, mask in users.items() if self._matched_by(key[0]).any()
        ]

    def _term(self, selector: PodSelector, key: str, users: Mask) -> Term:
        """Return one term, with who may come into a domain before its users.

        Who is attracted to the same pods, within that domain, needs such a pod there as well; and
        who keeps apart from all users never shares a domain with them.
        """
        room, level, narrower = self._room, self._level_of[key], users.copy()
        for index, terms in enumerate(self._affinity):
            if terms and all_of(terms) == selector:
                narrower[index] |= any(self._lies_within(term.topology_key, key) for term in terms)
        classes, number = self._matched_by(selector), room.snapshot.neighbours.selector_id(selector)
        near = room.domain_sums(key, room.counts(Key(Column.PODS, number)))[self.rows] > 0
        openers = classes & ~narrower & ~self.apart[level][users].all(axis=0)
        return Term(level, near, users, classes, openers, bool((narrower & self.roots).any()))

    def _limits(self) -> list[Limit]:
        """Return the constraints that count members; classes that have the same share them."""
        limits: dict[tuple[object, int, int, int], Limit] = {}
        for index, pod_class in enumerate(self.classes):
            for constraint in pod_topology_spread.hard_ones(pod_class):
                limit = self._limit(constraint, index)
                if limit.classes.any():
                    counter = constraint.topology_key, constraint.selector, limit.nodes.tobytes()
                    key = counter, limit.max_skew, limit.self_match, limit.fewest_elsewhere
                    limits.setdefault(key, limit).users[index] = True
        for (same, max_skew, is_counted, fewest), limit in limits.items():
            for (other, skew, other_is_counted, lowest), narrower in limits.items():
                is_narrower = other == same and skew <= max_skew and lowest <= fewest
                if is_narrower and is_counted and other_is_counted:
                    limit.finally_counted[:] |= narrower.users
        return list(limits.values())

    def _limit(self, constraint: SpreadConstraint, index: int) -> Limit:
        """Return the limit without its users."""
        room, key = self._room, constraint.topology_key
        nodes, domains, _ = pod_topology_spread.counted(constraint, self.classes[index], room)
        nodes, codes = nodes & room.has_label(key), self._codes(key)
        pods = np.where(nodes, pod_topology_spread.matching(constraint, room), 0)
        base = room.domain_sums(key, pods)
        in_minimum = room.domain_sums(key, nodes.astype(np.int64))[self.rows] > 0
        fewest = int(base[nodes & ~np.isin(codes, codes[self.rows])].min(initial=MANY))
        fewest = 0 if domains < constraint.min_domains else fewest
        counts = [
            pod_topology_spread.counts_pods_of(constraint, other, room) for other in self.classes
        ]
        skew, own, nobody = constraint.max_skew, int(counts[index]), self._nobody()
        of_nodes = nodes[self.rows], base[self.rows], in_minimum
        level = self._level_of[key]
        return Limit(level, *of_nodes, fewest, skew, own, np.array(counts), nobody, nobody.copy())


def _are_within(inner: Ints, outer: Ints) -> bool:
    """Whether each code of ``inner`` comes with one of ``outer`` only."""
    pairs = np.unique(np.stack([inner, outer]), axis=1)
    return bool(len(np.unique(pairs[0])) == pairs.shape[1])
