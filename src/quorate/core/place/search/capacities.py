"""What one node of a kind has for members to come, as ``place.search.bounds`` adds it up."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from quorate.core.model import policy
from quorate.core.place.search.state import State
from quorate.core.place.search.values import Ceiling, Cell, Kind, Share

MANY = 2**40


class Sizes(NamedTuple):
    """The classes that ask for one column, the largest first: ``order``.

    The k-th size, or more, is asked for by the first ``ends[k]`` of them.
    """

    column: int
    order: list[int]
    sizes: list[int]
    ends: list[int]


class Fits:
    """How many pods of each class have room on a node, by its free amounts alone."""

    def __init__(self, demand: list[tuple[int, ...]]) -> None:
        self._demand = np.array(demand, np.int64)
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}

    def of(self, free: tuple[int, ...]) -> tuple[int, ...]:
        """Return it by class."""
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


class Shares:
    """Knows where what begins in ``Share.sums``: slots at 0, and the rest by name."""

    def __init__(self, state: State, fits: Fits) -> None:
        self._state = state
        self._fits = fits
        ties, classes = state.ties, len(state.left)
        ceilings = (one for some in ties.ceilings for one in some)
        self.ceilings: list[Ceiling] = list(dict.fromkeys(ceilings))
        self.sizes = [_sizes(column, state.demand) for column in range(len(ties.columns))]
        self.free = classes
        self.nodes = self.free + len(ties.columns)
        self.large = self.nodes + len(ties.cliques)
        self.alone = self.large + sum(len(one.sizes) for one in self.sizes)
        self.width = self.alone + classes
        self._cliques = [
            ([i for i in range(classes) if clique >> i & 1], clique, level)
            for clique, level in ties.cliques
        ]
        self.work_of_one = 6 + self.width // 4
        """Of one call, as ``Work`` counts it."""

    def most(self, cell: Cell, kind: Kind, opens: int) -> tuple[int, ...]:
        """Return how many pods of each class a node takes, if it has room for them.

        ``opens`` are the classes for which members to come may open domains. Of the kind only the
        facts matter, and the classes that are present.
        """
        state = self._state
        static = state.ties.statics[kind.static]
        most = []
        for i, apart in enumerate(static.apart):
            may = opens >> i & 1 or state.is_near(i, cell, kind, static)
            if may and state.is_apart(i, cell, kind, static):
                most.append(1 if apart >> i & 1 else MANY)
            else:
                most.append(0)
        return tuple(most)

    def of(self, kind: Kind, most: tuple[int, ...]) -> Share:
        """Return what one node of the kind has, where ``most`` says what it may take."""
        static = self._state.ties.statics[kind.static]
        takes = tuple(map(min, self._fits.of(kind.free), most))
        free = kind.free
        nodes, large = [0] * len(self._cliques), [0] * (self.alone - self.large)
        if any(takes):
            large = [
                min(free[one.column] // size, upto[end - 1])
                for one in self.sizes
                for upto in [list(accumulate(takes[i] for i in one.order))]
                for size, end in zip(one.sizes, one.ends, strict=True)
            ]
            for number, (members, clique, level) in enumerate(self._cliques):
                if any(takes[i] for i in members):
                    keeps = level >= 0 or all(static.apart[i] & clique == clique for i in members)
                    nodes[number] = 1 if keeps else MANY
        else:
            free = (0,) * len(free)
        sums = (*takes, *free, *nodes, *large, *self._alone_on(kind))
        return Share(sums, *self._on_meters(kind, takes))

    def _on_meters(
        self, kind: Kind, takes: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        ties = self._state.ties
        if not kind.meters:
            return (), ()
        static = ties.statics[kind.static]
        lowest, tallest = [MANY] * len(ties.meters), [0] * len(self.ceilings)
        for number, meter in enumerate(ties.meters):
            if meter.topology < 0 and static.in_minimum >> number & 1:
                lowest[number] = kind.meters[meter.place]
                if static.counted >> number & 1:
                    lowest[number] += sum(n for i, n in enumerate(takes) if meter.by >> i & 1)
        for number, ceiling in enumerate(self.ceilings):
            counter = ties.meters[ceiling.counter]
            if counter.topology < 0 and kind.present & counter.by:
                tallest[number] = kind.meters[counter.place]
        return tuple(lowest), tuple(tallest)

    def _alone_on(self, kind: Kind) -> list[int]:
        """Return by class whether its pods on the node still wait for one that attracts them."""
        ties = self._state.ties
        alone = [0] * len(ties.pulls)
        near = ties.statics[kind.static].near
        for i, pull in enumerate(ties.pulls if kind.present else ()):
            if pull is not None and kind.present >> i & 1:
                others = kind.present & pull.by & ~ties.shadowed[i]
                waits = any(level < 0 and not near >> n & 1 for n, level, _ in pull.terms)
                alone[i] = int(waits and not others)
        return alone


def _sizes(column: int, demand: list[tuple[int, ...]]) -> Sizes:
    order = sorted(
        (i for i, one in enumerate(demand) if one[column]), key=lambda i: -demand[i][column]
    )
    sizes = sorted({demand[i][column] for i in order}, reverse=True)
    if len(sizes) > policy.SEARCH_SIZES_MAX:
        step = len(sizes) / policy.SEARCH_SIZES_MAX
        sizes = [sizes[int((number + 1) * step) - 1] for number in range(policy.SEARCH_SIZES_MAX)]
    ends = [sum(demand[i][column] >= size for i in order) for size in sizes]
    return Sizes(column, order, sizes, ends)
