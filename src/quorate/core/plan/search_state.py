"""The state of ``plan.search``: which kinds of nodes are left where, and what is in each domain."""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.plan.search_facts import Cell, Kind, Static
from quorate.core.plan.ties import Ties

_NEVER = 2**40


class Move(NamedTuple):
    """One pod of a class goes to a node of a kind in a cell, and makes it another kind."""

    who: int
    cell: Cell
    kind: Kind
    after: Kind


class State:
    """Changed by ``make``, and back by ``undo``."""

    def __init__(self, ties: Ties, left: list[int], demand: list[tuple[int, ...]]) -> None:
        self.ties = ties
        self.left = list(left)
        """Pods that have no place yet, by class."""
        self.demand = demand
        self.cells: dict[Cell, dict[Kind, int]] = {}
        for (cell, kind), rows in ties.rows_of.items():
            self.cells.setdefault(cell, {})[kind] = len(rows)
        domains = [
            sorted({cell[level] for cell in self.cells}) for level in range(len(ties.shared))
        ]
        self.present: list[dict[int, int]] = [dict.fromkeys(some, 0) for some in domains]
        """Classes of members in each shared domain, as masks."""
        self.counts = [dict(meter.counts) for meter in ties.meters]
        """What shared meters count, by domain."""
        self.seen = [0] * len(left)
        """Members placed that a class is attracted to."""
        self._around: dict[tuple[Cell, Cell], int] = {}
        self._ids: dict[object, int] = {}
        """Small numbers of what was met, to compare by."""
        self.signatures: dict[Cell, int] = {}
        """A number for the nodes of each cell."""
        self.roots: list[tuple[int, Cell]] = []
        """Classes and cells of the pods that were placed as the first of their groups."""
        self.is_rooting = any(self.may_begin(i) for i in range(len(left)))
        """Whether the first pods of groups may still be placed."""
        self._inside: list[dict[Cell, dict[Cell, None]]] = []
        self._contents: list[dict[Cell, int]] = []
        """By level and domain (as the start of its cells' codes): a number for what is in it."""
        self._begin_contents()

    # Rules

    def is_below(self, index: int, cell: Cell, kind: Kind, highest: list[int]) -> bool:
        """Whether spread lets a pod of the class be there in the end.

        ``highest`` is what each meter's minimum can reach at most.
        """
        counted = self.ties.statics[kind.static].counted
        return all(
            self.count(one.counter, cell, kind) + one.itself
            <= one.max_skew + (0 if one.too_few else highest[one.meter])
            for one in self.ties.ceilings[index]
            if counted >> one.meter & 1
        )

    def accepts_now(
        self, index: int, cell: Cell, kind: Kind, lowest: list[int], *, may_begin: bool
    ) -> bool:
        """Whether a pod of the class may go there now.

        ``lowest`` is each meter's minimum; ``may_begin``: as the first of its group, too.
        """
        static = self.ties.statics[kind.static]
        if not self.has_room(index, cell, kind, static):
            return False
        begins = may_begin and self.may_begin(index)
        if not begins and not self.is_near(index, cell, kind, static):
            return False
        for meter, max_skew, itself, too_few in self.ties.limits[index]:
            least = 0 if too_few else lowest[meter]
            if self.count(meter, cell, kind) + itself - least > max_skew:
                return False
        return True

    def has_room(self, index: int, cell: Cell, kind: Kind, static: Static) -> bool:
        """Whether resources, and what keeps pods apart, let one more pod of the class in."""
        if not static.allowed >> index & 1 or kind.present & static.apart[index]:
            return False
        if any(f < d for f, d in zip(kind.free, self.demand[index], strict=True)):
            return False
        for level, apart in enumerate(self.ties.apart):
            if cell[level] >= 0 and self.present[level][cell[level]] & apart[index]:
                return False
        return True

    def is_near(self, index: int, cell: Cell, kind: Kind, static: Static) -> bool:
        """Whether each affinity term of the class finds a pod in the node's domain."""
        pull = self.ties.pulls[index]
        if pull is None:
            return True
        for number, level, _ in pull.terms:
            members = kind.present if level < 0 else self.present[level][cell[level]]
            if not (static.near >> number & 1 or members & pull.by):
                return False
        return True

    def count(self, meter: int, cell: Cell, kind: Kind) -> int:
        """Return what the meter counts in the node's domain."""
        level, _, place, *_ = self.ties.meters[meter]
        return kind.meters[place] if level < 0 else self.counts[meter][cell[level]]

    def lowest(self) -> list[int]:
        """Return each meter's minimum over the domains that it counts."""
        found = []
        for index, meter in enumerate(self.ties.meters):
            if meter.topology >= 0:
                here = (n for d, n in self.counts[index].items() if d in meter.in_minimum)
            else:
                here = (
                    kind.meters[meter.place]
                    for kinds in self.cells.values()
                    for kind in kinds
                    if self.ties.statics[kind.static].in_minimum >> index & 1
                )
            found.append(min(min(here, default=_NEVER), meter.elsewhere))
        return found

    # Affinity to members to come

    def may_begin(self, index: int) -> bool:
        """Whether the class may be placed as the first of its group."""
        pull = self.ties.pulls[index]
        return pull is not None and pull.is_first and not self.seen[index]

    def openers(self, index: int) -> int:
        """Return how many members to come may let a class into domains that refuse it now."""
        pull = self.ties.pulls[index]
        if pull is None:
            return 0
        by = pull.by & ~self.ties.shadowed[index]
        return sum(count for other, count in enumerate(self.left) if by >> other & 1)

    # Moves

    def after(self, index: int, kind: Kind) -> Kind:
        """Return what a node of the kind becomes with one more pod of the class."""
        static = self.ties.statics[kind.static]
        meters = kind.meters
        if meters:
            changed = list(meters)
            for number, meter in enumerate(self.ties.meters):
                if meter.topology < 0 and meter.by >> index & 1 and static.counted >> number & 1:
                    changed[meter.place] += 1
            meters = tuple(changed)
        free = tuple(f - d for f, d in zip(kind.free, self.demand[index], strict=True))
        return Kind(kind.static, free, kind.present | 1 << index, meters)

    def cost(self, index: int, cell: Cell, kind: Kind, *, roomiest: bool) -> tuple[object, ...]:
        """Return what a place costs: even spread first, then nodes that few others use."""
        full = sum(self.count(limit.meter, cell, kind) for limit in self.ties.limits[index])
        roomy = 0
        if self.ties.pulls[index] is not None and not self.seen[index]:
            roomy = -self._room_around(index, cell)
        free = tuple(-amount for amount in kind.free) if roomiest else kind.free
        return full, roomy, free

    def _room_around(self, index: int, cell: Cell) -> int:
        """Return how many nodes are in the domains on which the first pod of a group decides."""
        pull = self.ties.pulls[index]
        levels = [level for _, level, _ in pull.terms if level >= 0] if pull else []
        key = tuple(levels), tuple(cell[level] for level in levels)
        found = self._around.get(key)
        if found is None:
            found = self._around[key] = sum(
                sum(kinds.values())
                for other, kinds in self.cells.items()
                if all(other[level] == cell[level] for level in levels)
            )
        return found

    def make(self, move: Move) -> tuple[int, ...]:
        """Place the pod; return what ``undo`` needs."""
        index, cell, kind, after = move
        static = self.ties.statics[kind.static]
        self._swap(cell, kind, after)
        self.left[index] -= 1
        before = tuple(some[code] for some, code in zip(self.present, cell, strict=True))
        for some, code in zip(self.present, cell, strict=True):
            some[code] |= 1 << index
        self._count(index, cell, static, 1)
        self._update(cell)
        return before

    def undo(self, move: Move, before: tuple[int, ...]) -> None:
        """Take the pod of the last move away."""
        index, cell, kind, after = move
        self._swap(cell, after, kind)
        self.left[index] += 1
        for some, code, mask in zip(self.present, cell, before, strict=True):
            some[code] = mask
        self._count(index, cell, self.ties.statics[kind.static], -1)
        self._update(cell)

    def _count(self, index: int, cell: Cell, static: Static, sign: int) -> None:
        for number, meter in enumerate(self.ties.meters):
            if meter.topology >= 0 and meter.by >> index & 1 and static.counted >> number & 1:
                self.counts[number][cell[meter.topology]] += sign
        for other, pull in enumerate(self.ties.pulls):
            if pull is not None and pull.by >> index & 1 and static.seen >> other & 1:
                self.seen[other] += sign

    def _swap(self, cell: Cell, source: Kind, target: Kind) -> None:
        kinds = self.cells[cell]
        kinds[source] -= 1
        if not kinds[source]:
            del kinds[source]
        kinds[target] = kinds.get(target, 0) + 1

    # Symmetry

    def _number(self, what: object) -> int:
        return self._ids.setdefault(what, len(self._ids))

    def _begin_contents(self) -> None:
        levels = len(self.ties.shared) if self.ties.is_nested else 0
        self._inside = [{} for _ in range(levels + 1)]
        self._contents = [{} for _ in range(levels)]
        for cell in self.cells:
            for level in range(levels):
                self._inside[level].setdefault(cell[:level], {})[cell[: level + 1]] = None
        for cell in self.cells:
            self._update(cell)

    def _update(self, cell: Cell) -> None:
        """Number anew what is in a cell that has changed, and in the domains that hold it."""
        what = self.signatures[cell] = self._number(frozenset(self.cells[cell].items()))
        for level in range(len(self._contents) - 1, -1, -1):
            domain = cell[: level + 1]
            if level + 1 < len(self._contents):
                inner = self._contents[level + 1]
                within = [inner.get(one, -1) for one in self._inside[level + 1][domain]]
                what = self._number(tuple(sorted(within)))
            self._contents[level][domain] = self._number((self._own(level, cell[level]), what))

    def signature(self) -> object:
        """Return a value that two states share only if they differ by exchanging what is alike."""
        first = self.is_rooting, tuple(self.roots), tuple(self.left)
        if self._contents:
            return first, tuple(sorted(self._contents[0].values()))
        domains = tuple(tuple(some.items()) for some in (*self.present, *self.counts))
        return first, tuple(self.signatures.values()), domains

    def _own(self, level: int, code: int) -> tuple[object, ...]:
        """Return what is known of a domain itself, besides its nodes."""
        counts = (
            (self.counts[number][code], code in meter.in_minimum)
            for number, meter in enumerate(self.ties.meters)
            if meter.topology == level and code >= 0
        )
        return (code >= 0, self.present[level][code] if code >= 0 else 0, *counts)

    def distinct_cells(self) -> list[Cell]:
        """Return one of each sort of cells that are alike."""
        if not self._contents:
            return list(self.cells)
        domains: list[Cell] = [()]
        for level, contents in enumerate(self._contents):
            domains = [
                one
                for domain in domains
                for one in {contents[one]: one for one in self._inside[level][domain]}.values()
            ]
        return domains
