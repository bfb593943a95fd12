"""The state of ``plan.search``: which kinds of nodes are left where, and what is in each domain."""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.plan.ties import Cell, Kind, Static, Ties

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
        self.signatures = {cell: frozenset(kinds.items()) for cell, kinds in self.cells.items()}
        self._paths: dict[Cell, object] = {}

    # Rules

    def accepts(self, index: int, cell: Cell, kind: Kind, lowest: list[int]) -> bool:
        """Whether a pod of the class may go there now; ``lowest`` is each meter's minimum."""
        static = self.ties.statics[kind.static]
        if not self.has_room(index, cell, kind, static):
            return False
        if not self.is_near(index, cell, kind, static) and not self._may_begin(index):
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
        for number, level in pull.terms:
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

    # Order

    def is_settled(self) -> bool:
        """Whether from here on members only take choices from one another.

        So it is without spread that counts members, once no affinity can open another domain.
        """
        if self.ties.meters:
            return False
        return all(
            pull is None or not self.left[index] or not self.may_open(index)
            for index, pull in enumerate(self.ties.pulls)
        )

    def may_open(self, index: int) -> bool:
        """Whether members to come may let a class into domains that its affinity refuses now."""
        pull = self.ties.pulls[index]
        if pull is None:
            return False
        if self._may_begin(index):
            return True
        alike = self.ties.is_alike[index]
        # A class with the same terms comes only where the terms are satisfied already.
        return any(
            count and pull.by >> other & 1 and (not alike >> other & 1 or self._may_begin(other))
            for other, count in enumerate(self.left)
        )

    def _may_begin(self, index: int) -> bool:
        """Whether the class may be placed as the first of its group."""
        pull = self.ties.pulls[index]
        return pull is not None and pull.is_first and not self.seen[index]

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

    def cost(self, move: Move, *, roomiest: bool) -> tuple[object, ...]:
        """Return what a move costs: even spread first, then nodes that few others use."""
        static = self.ties.statics[move.kind.static]
        full = sum(
            self.count(limit.meter, move.cell, move.kind) for limit in self.ties.limits[move.who]
        )
        roomy = 0
        if self.ties.pulls[move.who] is not None and not self.seen[move.who]:
            roomy = -self._room_around(move)
        sign = -1 if roomiest else 1
        free = tuple(sign * amount for amount in move.after.free)
        return full, roomy, static.allowed.bit_count(), free

    def _room_around(self, move: Move) -> int:
        """Return how many nodes are in the domains on which the first pod of a group decides."""
        pull = self.ties.pulls[move.who]
        levels = [level for _, level in pull.terms if level >= 0] if pull else []
        return sum(
            sum(kinds.values())
            for cell, kinds in self.cells.items()
            if all(cell[level] == move.cell[level] for level in levels)
        )

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
        return before

    def undo(self, move: Move, before: tuple[int, ...]) -> None:
        """Take the pod of the last move away."""
        index, cell, kind, after = move
        self._swap(cell, after, kind)
        self.left[index] += 1
        for some, code, mask in zip(self.present, cell, before, strict=True):
            some[code] = mask
        self._count(index, cell, self.ties.statics[kind.static], -1)

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
        self.signatures[cell] = frozenset(kinds.items())

    # Symmetry

    def signature(self) -> object:
        """Return a value that two states share only if they differ by exchanging what is alike."""
        levels = len(self.ties.shared)
        if not self.ties.is_nested:
            self._paths = {cell: cell for cell in self.cells}
            domains = tuple(tuple(some.items()) for some in (*self.present, *self.counts))
            return tuple(self.left), tuple(self.signatures.items()), domains
        content: dict[Cell, object] = dict(self.signatures)
        around: list[dict[Cell, object]] = []
        for level in range(levels - 1, -1, -1):
            inside: dict[Cell, dict[object, int]] = {}
            for cell, what in content.items():
                alike = inside.setdefault(cell[: level + 1], {})
                alike[what] = alike.get(what, 0) + 1
            content = {
                cell: (self._own(level, cell[level]), frozenset(alike.items()))
                for cell, alike in inside.items()
            }
            around.append(content)
        self._paths = {
            cell: (
                self.signatures[cell],
                *(some[cell[: levels - depth]] for depth, some in enumerate(around)),
            )
            for cell in self.cells
        }
        whole: dict[object, int] = {}
        for what in content.values():
            whole[what] = whole.get(what, 0) + 1
        return tuple(self.left), frozenset(whole.items())

    def _own(self, level: int, code: int) -> tuple[object, ...]:
        """Return what is known of a domain itself, besides its nodes."""
        counts = (
            (self.counts[number][code], code in meter.in_minimum)
            for number, meter in enumerate(self.ties.meters)
            if meter.topology == level and code >= 0
        )
        return (code >= 0, self.present[level][code] if code >= 0 else 0, *counts)

    def distinct_cells(self) -> list[Cell]:
        """Return one of each sort of cells that are alike; after ``signature``."""
        first: dict[object, Cell] = {}
        for cell in self.cells:
            first.setdefault(self._paths[cell], cell)
        return list(first.values())
