"""What one node can take of the members without a place, as sums and maxima that add up."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from quorate.core.model import policy
from quorate.core.place.search.state import State
from quorate.core.place.search.values import MANY, FinalLimit, Location, NodeCapacity, NodeKind


class ResourceSlots:
    """How many pods of each class a node's free capacity holds, other rules left aside."""

    def __init__(self, demand: list[tuple[int, ...]]) -> None:
        self._demand = np.array(demand, np.int64)
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}

    def of(self, free: tuple[int, ...]) -> tuple[int, ...]:
        """Return slots by class; ``free`` is by column."""
        if free not in self._known:
            self.learn([free])
        return self._known[free]

    def learn(self, frees: Iterable[tuple[int, ...]]) -> None:
        """Find out many at once."""
        new = [free for free in dict.fromkeys(frees) if free not in self._known]
        if new:
            table = np.array(new, np.int64).reshape(len(new), 1, -1)
            each = np.where(self._demand > 0, table // np.maximum(self._demand, 1), MANY)
            found = each.min(axis=2, initial=MANY).tolist()
            self._known.update(zip(new, map(tuple, found), strict=True))


class Sizes(NamedTuple):
    """The sizes of pods by one column, the largest first."""

    column: int
    order: list[int]
    """The classes that ask for the column, the largest first."""
    sizes: list[int]
    """Amounts; of too many different ones only some."""
    ends: list[int]
    """By size: how many classes of ``order`` ask for as much or more."""


class NodeCapacities:
    """Computes what a node can take, and knows the layout of ``NodeCapacity.sums``.

    These are slots by class (from 0 on), free capacity by column (from ``free`` on), nodes by
    clique (from ``nodes`` on), pods of each size or larger (from ``large`` on), and by class
    whether pods on the node wait for an attractor (from ``waiting`` on).
    """

    def __init__(self, state: State, resource_slots: ResourceSlots) -> None:
        self._state = state
        self._resource_slots = resource_slots
        constraints, classes = state.constraints, len(state.left)
        final_limits = (one for some in constraints.final_limits for one in some)
        self.final_limits: list[FinalLimit] = list(dict.fromkeys(final_limits))
        self.free = classes
        self.nodes = self.free + len(constraints.columns)
        self.large = self.nodes + len(constraints.cliques)
        self.sizes = [_sizes(column, state.demand) for column in range(len(constraints.columns))]
        self.waiting = self.large + sum(len(one.sizes) for one in self.sizes)
        self.width = self.waiting + classes
        self._cliques = [
            ([i for i in range(classes) if clique >> i & 1], clique, level)
            for clique, level in constraints.cliques
        ]
        self.work_us = 6 + self.width // 4
        """What one call of ``of`` takes."""

    def most(self, location: Location, kind: NodeKind, openable: int) -> tuple[int, ...]:
        """Return by class how many pods the rules allow on a node, its free capacity left aside.

        ``openable``: mask of the classes for which members to come may open domains. Of the kind
        only ``facts`` and ``present`` matter.
        """
        state = self._state
        facts = state.constraints.facts[kind.facts]
        most = []
        for i, apart in enumerate(facts.apart):
            may = openable >> i & 1 or state.affinity_is_met(i, location, kind, facts)
            if may and state.has_no_conflict(i, location, kind, facts):
                most.append(1 if apart >> i & 1 else MANY)
            else:
                most.append(0)
        return tuple(most)

    def of(self, kind: NodeKind, most: tuple[int, ...]) -> NodeCapacity:
        """Return what one node of the kind can take; ``most`` is what the rules allow, by class."""
        facts = self._state.constraints.facts[kind.facts]
        slots = tuple(map(min, self._resource_slots.of(kind.free), most))
        free = kind.free if any(slots) else (0,) * len(kind.free)
        nodes = [0] * len(self._cliques)
        for number, (members, clique, level) in enumerate(self._cliques):
            if any(slots[i] for i in members):
                is_one = level >= 0 or all(facts.apart[i] & clique == clique for i in members)
                nodes[number] = 1 if is_one else MANY
        sums = (*slots, *free, *nodes, *self._large_on(free, slots), *self._waiting_on(kind))
        if not kind.counts:
            return NodeCapacity(sums, (), ())
        return NodeCapacity(sums, self._minima_max(kind, slots), self._counts_max(kind))

    def _large_on(self, free: tuple[int, ...], slots: tuple[int, ...]) -> list[int]:
        """Return how many pods of each size, or larger, the node can take together."""
        if not any(slots):
            return [0] * (self.waiting - self.large)
        found = []
        for one in self.sizes:
            so_far = list(accumulate(slots[i] for i in one.order))
            for size, end in zip(one.sizes, one.ends, strict=True):
                found.append(min(free[one.column] // size, so_far[end - 1]))
        return found

    def _minima_max(self, kind: NodeKind, slots: tuple[int, ...]) -> tuple[int, ...]:
        constraints = self._state.constraints
        facts = constraints.facts[kind.facts]
        found = [MANY] * len(constraints.counters)
        for number, counter in enumerate(constraints.counters):
            if counter.topology < 0 and facts.in_minimum >> number & 1:
                found[number] = kind.counts[counter.local_index]
                if facts.counted >> number & 1:
                    found[number] += sum(n for i, n in enumerate(slots) if counter.classes >> i & 1)
        return tuple(found)

    def _counts_max(self, kind: NodeKind) -> tuple[int, ...]:
        found = [0] * len(self.final_limits)
        for number, final in enumerate(self.final_limits):
            counter = self._state.constraints.counters[final.counted_by]
            if counter.topology < 0 and kind.present & counter.classes:
                found[number] = kind.counts[counter.local_index]
        return tuple(found)

    def _waiting_on(self, kind: NodeKind) -> list[int]:
        """Return 1 for each class whose pods on the node still need an attractor there, else 0."""
        constraints = self._state.constraints
        waiting = [0] * len(constraints.affinities)
        near = constraints.facts[kind.facts].near
        for i, affinity in enumerate(constraints.affinities if kind.present else ()):
            if affinity is not None and kind.present >> i & 1:
                others = kind.present & affinity.classes & ~constraints.dominated[i]
                waits = any(level < 0 and not near >> n & 1 for n, level, _ in affinity.terms)
                waiting[i] = int(waits and not others)
        return waiting


def _sizes(column: int, demand: list[tuple[int, ...]]) -> Sizes:
    order = [i for i, one in enumerate(demand) if one[column]]
    order.sort(key=lambda i: -demand[i][column])
    sizes = sorted({demand[i][column] for i in order}, reverse=True)
    most = policy.SEARCH_SIZES_MAX
    if len(sizes) > most:
        step = len(sizes) / most
        sizes = [sizes[int((number + 1) * step) - 1] for number in range(most)]
    ends = [sum(demand[i][column] >= size for i in order) for size in sizes]
    return Sizes(column, order, sizes, ends)
