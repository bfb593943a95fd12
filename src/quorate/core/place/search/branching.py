"""Where a pod of a class may go, the best place first: where it leaves most to the others."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from operator import sub
from typing import NamedTuple

from quorate.core.place.search.capacities import MANY, Fits
from quorate.core.place.search.state import Move, State
from quorate.core.place.search.values import Cell, Inside, Kind, Outlook, Work

_AT_ONCE = 500
"""So many kinds of nodes are weighed between two pauses."""


class Habit(NamedTuple):
    """What is tried first. Where one habit errs early and goes on for long, another may not."""

    largest: bool = False
    """The largest pods first, not those with the fewest slots to spare."""
    roomiest: bool = False
    """The roomiest nodes first, not the tightest."""
    root: bool = False
    """With the first pod of a group that is attracted to itself, where it may come later, too."""


class _Choice(NamedTuple):
    """Nodes of a cell from which a pod takes the same. The first fields say what comes first."""

    cost: tuple[float, int, int]
    free: tuple[int, ...]
    cell: Cell
    alike: int
    kinds: list[Kind]


class Moves:
    """Weighs places."""

    def __init__(self, state: State, fits: Fits, work: Work) -> None:
        self._state = state
        self._fits = fits
        self._work = work
        self._alike: list[dict[Kind, int]] = [{} for _ in state.left]
        """By class: a number for kinds that differ only in room that it makes no use of."""
        self._numbers: dict[object, int] = {}
        self._lost: list[tuple[int, ...]] = []
        """By that number: how many slots of each class a pod of the class takes."""

    def of(self, index: int, outlook: Outlook, habit: Habit) -> Iterator[Move | None]:
        """Yield where a pod of the class may go; by habit, where least is lost first.

        None is a pause: it took long to weigh places.
        """
        choices: list[_Choice] = []
        losses: dict[int, float] = {}
        stands: dict[object, tuple[float, int, int] | None] = {}
        at_pause = 0
        for cell in self._state.distinct_cells():
            if len(choices) > at_pause + _AT_ONCE:
                at_pause = len(choices)
                yield None
            alike = yield from self._inside(index, cell, outlook.inside[cell])
            for number, kinds in alike.items():
                kind = kinds[0]
                spot = cell, kind.static, kind.present, kind.meters
                if spot not in stands:
                    stands[spot] = self._stand(index, cell, kind, outlook)
                stand = stands[spot]
                if stand is None:
                    continue
                if number not in losses:
                    losses[number] = self._loss(number, outlook)
                gain, full, roomy = stand
                best = max(kinds) if habit.roomiest else min(kinds)
                free = tuple(-amount for amount in best.free) if habit.roomiest else best.free
                cost = losses[number] - gain, full, roomy
                choices.append(_Choice(cost, free, cell, number, kinds))
        self._work.done += 6 + 3 * len(choices)
        choices.sort()
        for _, _, cell, _, kinds in choices:
            for kind in sorted(kinds, reverse=habit.roomiest):
                yield Move(index, cell, kind, self._state.after(index, kind))

    def _inside(
        self, index: int, cell: Cell, inside: Inside
    ) -> Generator[None, None, dict[int, list[Kind]]]:
        """Return the kinds of nodes in the cell that take a pod of the class, by their numbers."""
        found = inside.alike.get(index)
        if found is None:
            found = inside.alike[index] = {}
            numbers, all_kinds = self._alike[index], self._state.cells[cell]
            kinds = [kind for kind in all_kinds if inside.shares[kind].sums[index]]
            new = [kind for kind in kinds if kind not in numbers]
            for start in range(0, len(new), _AT_ONCE):
                self._learn(index, new[start : start + _AT_ONCE])
                yield
            self._work.done += 1 + (len(all_kinds) + len(kinds)) // 3
            for kind in kinds:
                found.setdefault(numbers[kind], []).append(kind)
        return found

    def _stand(
        self, index: int, cell: Cell, kind: Kind, outlook: Outlook
    ) -> tuple[float, int, int] | None:
        """Return what is gained in a place, and what it costs; None: no pod may be there."""
        self._work.done += 4 + len(self._alike) // 2
        if not self._state.is_below(index, cell, kind, outlook):
            return None
        return self._gain(index, cell, kind, outlook), *self._state.cost(index, cell, kind)

    def _loss(self, number: int, outlook: Outlook) -> float:
        """Return how much of what others have to choose from a pod of the class would take."""
        self._work.done += 1 + len(self._alike) // 8
        return sum(n * scarce for n, scarce in zip(self._lost[number], outlook.scarce, strict=True))

    def _learn(self, index: int, kinds: list[Kind]) -> None:
        """Number kinds of nodes that a pod of the class was not weighed on before."""
        demand = self._state.demand[index]
        after = [tuple(map(sub, kind.free, demand)) for kind in kinds]
        self._fits.learn(after)
        self._work.done += len(kinds) * (3 + len(self._alike) // 4)
        for kind, free in zip(kinds, after, strict=True):
            allowed, apart, *_ = self._state.ties.statics[kind.static]
            lost = tuple(
                0
                if other == index or not allowed >> other & 1
                else _few(before) - (0 if apart[index] >> other & 1 else _few(left))
                for other, (before, left) in enumerate(
                    zip(self._fits.of(kind.free), self._fits.of(free), strict=True)
                )
            )
            what = kind.static, kind.present, kind.meters, lost
            number = self._numbers.setdefault(what, len(self._lost))
            if number == len(self._lost):
                self._lost.append(lost)
            self._alike[index][kind] = number

    def _gain(self, index: int, cell: Cell, kind: Kind, outlook: Outlook) -> float:
        """Return for how many pods to come a pod of the class would satisfy their affinity here."""
        state, gain = self._state, 0.0
        for other, pull in enumerate(state.ties.pulls):
            if pull is None or not (pull.by & ~state.ties.shadowed[other]) >> index & 1:
                continue
            left = state.left[other]
            for _, level, near in pull.terms:
                if level < 0:
                    if kind.present & pull.by or other == index:
                        continue
                    waits = kind.present >> other & 1
                    slots = left > 0 and state.ties.statics[kind.static].allowed >> other & 1
                else:
                    code = cell[level]
                    members = state.present[level].get(code, 0)
                    if code < 0 or code in near or members & pull.by & ~(1 << other):
                        continue
                    waits = members >> other & 1
                    slots = min(outlook.domains[level][code][other], left)
                gain += 64 * waits + slots * outlook.scarce[other]
        return gain


def _few(slots: int) -> int:
    return slots if slots < MANY else 64
