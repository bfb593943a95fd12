"""The state of the search: which kinds of nodes are left where, and what is in each domain."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from typing import NamedTuple

from quorate.core.place.search.constraints import Ties
from quorate.core.place.search.values import Cell, Kind, Outlook, Static

_NEVER = 2**40


class Move(NamedTuple):
    """One pod of a class goes to a node of a kind in a cell, and makes it another kind."""

    who: int
    cell: Cell
    kind: Kind
    after: Kind


class Undo(NamedTuple):
    """What a move has changed."""

    masks: tuple[int, ...]
    """The classes that were present in each shared domain of the cell."""
    numbers: tuple[int, ...]
    """What ``State`` called the contents of these domains."""


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
        self._around: dict[tuple[int, ...], Counter[Cell]] = {}
        self.roots: list[tuple[int, Cell]] = []
        """Classes and cells of the pods that were placed as the first of their groups."""
        self.is_rooting = False
        """Whether the first pods of groups may still be placed."""
        self._weights: dict[Kind, int] = {}
        self._nodes: dict[Cell, int] = {}
        """By cell: the sum of the numbers of its nodes' kinds, and of its roots."""
        self._inside: list[dict[Cell, list[Cell]]] = []
        """By level and domain (as the start of its cells' codes): the domains right below it."""
        self._contents: list[dict[Cell, int]] = []
        """By level and domain: a number for what is in it."""
        self._within: list[dict[Cell, int]] = []
        """By level and domain: the sum of the numbers of the domains right below it."""
        self._meters_at = [
            [(n, one.in_minimum) for n, one in enumerate(ties.meters) if one.topology == level]
            for level in range(len(ties.shared))
        ]
        self._number_contents()
        self.begin(left)

    def begin(self, left: list[int]) -> None:
        """Set which pods are to be placed, before the first of them is."""
        self.left = list(left)
        self.is_rooting = any(n > 0 and self.may_begin(i) for i, n in enumerate(left))

    # Rules

    def is_below(self, index: int, cell: Cell, kind: Kind, outlook: Outlook) -> bool:
        """Whether spread lets one more pod of the class be there in the end."""
        counted = self.ties.statics[kind.static].counted
        for counter, meter, max_skew, itself, too_few in self.ties.ceilings[index]:
            if not counted >> meter & 1:
                continue
            adds = self.ties.meters[meter].by >> index & 1
            least = (outlook.later if adds else outlook.highest)[meter]
            if self.count(counter, cell, kind) + itself > max_skew + (0 if too_few else least):
                return False
        return True

    def accepts_now(
        self, index: int, cell: Cell, kind: Kind, lowest: list[int], *, may_begin: bool
    ) -> bool:
        """Whether a pod of the class may go there now.

        ``lowest`` is each meter's minimum; ``may_begin``: as the first of its group, too.
        """
        static = self.ties.statics[kind.static]
        if any(f < d for f, d in zip(kind.free, self.demand[index], strict=True)):
            return False
        if not self.is_apart(index, cell, kind, static):
            return False
        begins = may_begin and self.may_begin(index)
        if not begins and not self.is_near(index, cell, kind, static):
            return False
        for meter, max_skew, itself, too_few in self.ties.limits[index]:
            least = 0 if too_few else lowest[meter]
            if self.count(meter, cell, kind) + itself - least > max_skew:
                return False
        return True

    def is_apart(self, index: int, cell: Cell, kind: Kind, static: Static) -> bool:
        """Whether the node's facts, and the pods from which it keeps apart, let the class in."""
        if not static.allowed >> index & 1 or kind.present & static.apart[index]:
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

    def cost(self, index: int, cell: Cell, kind: Kind) -> tuple[int, int]:
        """Return what a place costs: even spread first, then domains that few others use."""
        full = sum(self.count(limit.meter, cell, kind) for limit in self.ties.limits[index])
        roomy = 0
        if self.ties.pulls[index] is not None and not self.seen[index]:
            roomy = -self._room_around(index, cell)
        return full, roomy

    def _room_around(self, index: int, cell: Cell) -> int:
        """Return how many nodes are in the domains on which the first pod of a group decides."""
        pull = self.ties.pulls[index]
        levels = tuple(level for _, level, _ in pull.terms if level >= 0) if pull else ()
        if levels not in self._around:
            nodes = self._around[levels] = Counter[Cell]()
            for other, kinds in self.cells.items():
                nodes[tuple(other[level] for level in levels)] += sum(kinds.values())
        return self._around[levels][tuple(cell[level] for level in levels)]

    def add_root(self, index: int, cell: Cell) -> None:
        """Note that a pod of the class in the cell, whichever, may come first of its group.

        It is part of what is in the cell: two domains, or two states, of which only one has its
        first pod here are not alike. On which node of the cell is not noted, as orders do not mind.
        """
        self.roots.append((index, cell))
        self._nodes[cell] += _digest((index,))

    def drop_root(self) -> None:
        """Forget the last of them. To be called before its move is undone."""
        index, cell = self.roots.pop()
        self._nodes[cell] -= _digest((index,))

    def make(self, move: Move) -> Undo:
        """Place the pod; return what ``undo`` needs."""
        index, cell, kind, after = move
        self._swap(cell, kind, after)
        self.left[index] -= 1
        masks = tuple(some[code] for some, code in zip(self.present, cell, strict=True))
        for some, code in zip(self.present, cell, strict=True):
            some[code] |= 1 << index
        self._count(index, cell, self.ties.statics[kind.static], 1)
        return Undo(masks, self._number(cell))

    def undo(self, move: Move, before: Undo) -> None:
        """Take the pod of the last move away."""
        index, cell, kind, after = move
        self._swap(cell, after, kind)
        self.left[index] += 1
        for some, code, mask in zip(self.present, cell, before.masks, strict=True):
            some[code] = mask
        self._count(index, cell, self.ties.statics[kind.static], -1)
        for level, number in enumerate(before.numbers):
            self._put_number(level, cell, number)

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
        self._nodes[cell] += self._weight(target) - self._weight(source)

    # Symmetry

    def _weight(self, kind: Kind) -> int:
        found = self._weights.get(kind)
        if found is None:
            found = self._weights[kind] = _digest(tuple(kind))
        return found

    def _number_contents(self) -> None:
        levels = len(self.ties.shared) if self.ties.is_nested else 0
        self._inside = [{} for _ in range(levels)]
        self._contents = [{} for _ in range(levels)]
        self._within = [{} for _ in range(levels + 1)]
        for cell, kinds in self.cells.items():
            self._nodes[cell] = sum(n * self._weight(kind) for kind, n in kinds.items())
        for level in range(levels, 0, -1):
            outer, here = self._within[level - 1], self._within[level]
            for domain in dict.fromkeys(cell[:level] for cell in self.cells):
                within = here[domain] if level < levels else self._nodes[domain]
                number = _digest((self._own(level - 1, domain[-1]), within))
                self._contents[level - 1][domain] = number
                self._inside[level - 1].setdefault(domain[:-1], []).append(domain)
                outer[domain[:-1]] = outer.get(domain[:-1], 0) + number

    def _number(self, cell: Cell) -> tuple[int, ...]:
        """Number anew what is in the domains of a cell that has changed; return what they were."""
        before = tuple(some[cell[: level + 1]] for level, some in enumerate(self._contents))
        within = self._nodes[cell]
        for level in reversed(range(len(before))):
            self._put_number(level, cell, _digest((self._own(level, cell[level]), within)))
            within = self._within[level][cell[:level]]
        return before

    def _put_number(self, level: int, cell: Cell, number: int) -> None:
        domain = cell[: level + 1]
        self._within[level][cell[:level]] += number - self._contents[level][domain]
        self._contents[level][domain] = number

    def content(self, cell: Cell) -> int:
        """Return a number for the nodes of a cell."""
        return self._nodes[cell]

    def signature(self) -> object:
        """Return a value that two states share only if they differ by exchanging what is alike."""
        first = self.is_rooting, tuple(self.left)
        if self._contents:
            return first, self._within[0][()]
        domains = tuple(tuple(some.items()) for some in (*self.present, *self.counts))
        return first, _digest((tuple(self._nodes.values()), domains))

    def _own(self, level: int, code: int) -> tuple[int, ...]:
        """Return what is known of a domain itself, besides its nodes."""
        if code < 0:
            return ()
        return self.present[level][code], *[
            2 * self.counts[number][code] + (code in in_minimum)
            for number, in_minimum in self._meters_at[level]
        ]

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


def _digest(what: object) -> int:
    """Return 128 bits for what is made of integers: so many that no two will ever be the same.

    Sums of them stand for collections, so that one change costs the same however large they are.
    """
    return int.from_bytes(blake2b(repr(what).encode(), digest_size=16).digest())
