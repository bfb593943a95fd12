"""The state of the joint search: the nodes by kind, and what members are in each domain."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from quorate.core.place.search.constraints import Constraints
from quorate.core.place.search.symmetry import Symmetry
from quorate.core.place.search.values import MANY, Bounds, Location, NodeFacts, NodeKind


class Assignment(NamedTuple):
    """One pod of a class goes to a node of a kind in a location; the node becomes another kind."""

    who: int
    location: Location
    kind: NodeKind
    after: NodeKind


class BeforeAssignment(NamedTuple):
    """What an assignment has changed."""

    present: tuple[int, ...]
    """The masks of the location's shared domains before it."""
    numbers: tuple[int, ...]
    """The numbers that ``Symmetry`` had for these domains before it."""


class State:
    """What members have changed so far. ``assign`` changes it, ``undo`` changes it back."""

    def __init__(
        self, constraints: Constraints, left: list[int], demand: list[tuple[int, ...]]
    ) -> None:
        """Begin with ``left`` pods of each class to place; ``demand`` is by class and column."""
        self.constraints = constraints
        self.left = list(left)
        """By class: pods that have no place yet."""
        self.demand = demand
        self.nodes: dict[Location, dict[NodeKind, int]] = {}
        """By location: how many nodes there are of each kind."""
        for (location, kind), rows in constraints.rows_of.items():
            self.nodes.setdefault(location, {})[kind] = len(rows)
        self.present: list[dict[int, int]] = [
            dict.fromkeys(sorted({location[level] for location in self.nodes}), 0)
            for level in range(len(constraints.shared))
        ]
        """By shared topology and domain: mask of the classes that have a member there."""
        self.counts = [dict(counter.counts) for counter in constraints.counters]
        """By shared counter and domain: the pods that it counts."""
        self.attractors = [0] * len(left)
        """By class: members with a place to which it is attracted."""
        self._nodes_around: dict[tuple[int, ...], Counter[Location]] = {}
        self.roots: list[tuple[int, Location]] = []
        """Classes and locations of the pods that were placed as the first of their groups."""
        self.roots_open = False
        """Whether further roots may be placed."""
        self.symmetry = Symmetry(constraints, self.nodes, self.present, self.counts)
        self.begin(left)

    def begin(self, left: list[int]) -> None:
        """Set which pods are to be placed, before the first of them is."""
        self.left = list(left)
        self.roots_open = any(n > 0 and self.may_be_first(i) for i, n in enumerate(left))

    # Rules

    def is_within_final_limits(
        self, index: int, location: Location, kind: NodeKind, bounds: Bounds
    ) -> bool:
        """Whether spread allows one more pod of the class there in a complete placement."""
        counted = self.constraints.facts[kind.facts].counted
        for final in self.constraints.final_limits[index]:
            if not counted >> final.minimum_of & 1:
                continue
            adds = self.constraints.counters[final.minimum_of].classes >> index & 1
            minima_max = bounds.minima_max_later if adds else bounds.minima_max
            minimum = 0 if final.minimum_is_zero else minima_max[final.minimum_of]
            count = self.count(final.counted_by, location, kind)
            if count + final.self_match > minimum + final.max_skew:
                return False
        return True

    def is_allowed_now(
        self, index: int, location: Location, kind: NodeKind, minima: list[int], *, as_root: bool
    ) -> bool:
        """Whether a pod of the class may go there as the next one.

        ``minima`` is by counter. ``as_root``: also as the first of its group.
        """
        facts = self.constraints.facts[kind.facts]
        if any(f < d for f, d in zip(kind.free, self.demand[index], strict=True)):
            return False
        if not self.has_no_conflict(index, location, kind, facts):
            return False
        is_root = as_root and self.may_be_first(index)
        if not is_root and not self.affinity_is_met(index, location, kind, facts):
            return False
        for counter, max_skew, self_match, minimum_is_zero in self.constraints.limits[index]:
            minimum = 0 if minimum_is_zero else minima[counter]
            if self.count(counter, location, kind) + self_match - minimum > max_skew:
                return False
        return True

    def has_no_conflict(
        self, index: int, location: Location, kind: NodeKind, facts: NodeFacts
    ) -> bool:
        """Whether the node's facts, and members from which it keeps apart, let the class in."""
        if not facts.allowed >> index & 1 or kind.present & facts.apart[index]:
            return False
        for level, apart in enumerate(self.constraints.apart):
            if location[level] >= 0 and self.present[level][location[level]] & apart[index]:
                return False
        return True

    def affinity_is_met(
        self, index: int, location: Location, kind: NodeKind, facts: NodeFacts
    ) -> bool:
        """Whether each affinity term of the class finds a pod in the node's domain."""
        affinity = self.constraints.affinities[index]
        if affinity is None:
            return True
        for number, level, _ in affinity.terms:
            members = kind.present if level < 0 else self.present[level][location[level]]
            if not (facts.near >> number & 1 or members & affinity.classes):
                return False
        return True

    def count(self, number: int, location: Location, kind: NodeKind) -> int:
        """Return what the counter counts in the node's domain."""
        counter = self.constraints.counters[number]
        if counter.topology < 0:
            return kind.counts[counter.local_index]
        return self.counts[number][location[counter.topology]]

    def minima(self) -> list[int]:
        """Return by counter: the fewest pods in a domain that the minimum is over."""
        found = []
        for number, counter in enumerate(self.constraints.counters):
            if counter.topology >= 0:
                here = (n for d, n in self.counts[number].items() if d in counter.in_minimum)
            else:
                here = (
                    kind.counts[counter.local_index]
                    for kinds in self.nodes.values()
                    for kind in kinds
                    if self.constraints.facts[kind.facts].in_minimum >> number & 1
                )
            found.append(min(min(here, default=MANY), counter.minimum_elsewhere))
        return found

    # Affinity to members to come

    def may_be_first(self, index: int) -> bool:
        """Whether a pod of the class may be a root: the first of its group, anywhere."""
        affinity = self.constraints.affinities[index]
        return affinity is not None and affinity.may_be_first and not self.attractors[index]

    def openers(self, index: int) -> int:
        """Return how many members to come may open a domain to the class by being there."""
        affinity = self.constraints.affinities[index]
        if affinity is None:
            return 0
        classes = affinity.classes & ~self.constraints.dominated[index]
        return sum(count for other, count in enumerate(self.left) if classes >> other & 1)

    # Assignments

    def after(self, index: int, kind: NodeKind) -> NodeKind:
        """Return what a node of the kind becomes with one more pod of the class."""
        counts = kind.counts
        if counts:
            counted, changed = self.constraints.facts[kind.facts].counted, list(counts)
            for number, counter in enumerate(self.constraints.counters):
                is_local = counter.topology < 0
                if is_local and counter.classes >> index & 1 and counted >> number & 1:
                    changed[counter.local_index] += 1
            counts = tuple(changed)
        free = tuple(f - d for f, d in zip(kind.free, self.demand[index], strict=True))
        return NodeKind(kind.facts, free, kind.present | 1 << index, counts)

    def cost(self, index: int, location: Location, kind: NodeKind) -> tuple[int, int]:
        """Return what to keep low: pods that spread counts there, then (of a root) less room."""
        limits = self.constraints.limits[index]
        pods = sum(self.count(limit.counter, location, kind) for limit in limits)
        affinity = self.constraints.affinities[index]
        if affinity is None or self.attractors[index]:
            return pods, 0
        levels = tuple(level for _, level, _ in affinity.terms if level >= 0)
        return pods, -self._nodes_in_domains(levels, location)

    def _nodes_in_domains(self, levels: tuple[int, ...], location: Location) -> int:
        """Return how many nodes share the location's domains of these topologies."""
        if levels not in self._nodes_around:
            nodes = self._nodes_around[levels] = Counter[Location]()
            for other, kinds in self.nodes.items():
                nodes[tuple(other[level] for level in levels)] += sum(kinds.values())
        return self._nodes_around[levels][tuple(location[level] for level in levels)]

    def add_root(self, index: int, location: Location) -> None:
        """Note that a pod of the class in the location may be the first of its group."""
        self.roots.append((index, location))
        self.symmetry.add_root(index, location, 1)

    def drop_root(self) -> None:
        """Forget the last root. To be called before its assignment is undone."""
        index, location = self.roots.pop()
        self.symmetry.add_root(index, location, -1)

    def assign(self, assignment: Assignment) -> BeforeAssignment:
        """Place the pod; return what ``undo`` needs."""
        index, location, kind, after = assignment
        self._swap(location, kind, after)
        self.left[index] -= 1
        masks = tuple(some[code] for some, code in zip(self.present, location, strict=True))
        for some, code in zip(self.present, location, strict=True):
            some[code] |= 1 << index
        self._count(index, location, self.constraints.facts[kind.facts], 1)
        return BeforeAssignment(masks, self.symmetry.renumber(location))

    def undo(self, assignment: Assignment, before: BeforeAssignment) -> None:
        """Take the pod of the last assignment away."""
        index, location, kind, after = assignment
        self._swap(location, after, kind)
        self.left[index] += 1
        for some, code, mask in zip(self.present, location, before.present, strict=True):
            some[code] = mask
        self._count(index, location, self.constraints.facts[kind.facts], -1)
        self.symmetry.restore(location, before.numbers)

    def _count(self, index: int, location: Location, facts: NodeFacts, sign: int) -> None:
        for number, counter in enumerate(self.constraints.counters):
            is_shared = counter.topology >= 0
            if is_shared and counter.classes >> index & 1 and facts.counted >> number & 1:
                self.counts[number][location[counter.topology]] += sign
        for other, affinity in enumerate(self.constraints.affinities):
            if affinity is None or not affinity.classes >> index & 1:
                continue
            if facts.has_domain_for >> other & 1:
                self.attractors[other] += sign

    def _swap(self, location: Location, source: NodeKind, target: NodeKind) -> None:
        kinds = self.nodes[location]
        kinds[source] -= 1
        if not kinds[source]:
            del kinds[source]
        kinds[target] = kinds.get(target, 0) + 1
        self.symmetry.swap(location, source, target)

    def signature(self) -> object:
        """Return a value that two states share only if they differ by exchanging what is alike."""
        return self.roots_open, tuple(self.left), self.symmetry.whole()
