"""When a state of ``plan.search`` cannot be completed: cheap bounds that are never too low."""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.plan.search_state import State
from quorate.core.plan.ties import Cell, Kind

_MANY = 2**40

_Domains = dict[int, list[int]]
"""Slots by class in each domain of one shared topology."""


class _Inside(NamedTuple):
    """What the nodes of a cell have: slots by class, free room by column, nodes by clique."""

    slots: tuple[int, ...]
    free: tuple[int, ...]
    nodes: tuple[int, ...]
    large: tuple[int, ...]
    """How many pods at least as large in one column fit, by ``Bounds.sizes``."""


class Bounds:
    """Keeps what it found of each cell: most cells are as they were a step ago."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[object, _Inside] = {}
        self._sizes = [
            (column, size, [i for i, demand in enumerate(state.demand) if demand[column] >= size])
            for column in range(len(state.ties.columns))
            for size in sorted({demand[column] for demand in state.demand if demand[column]})
        ]
        """Classes that ask for at least as much of a column."""
        self.looked_at = 0
        """How many kinds of nodes have been looked at."""

    def spare(self) -> list[int] | None:
        """Return for each class how many slots it has to spare at most; None: some lacks slots.

        Each class is looked at as if the others were not there; each set of classes that all keep
        apart as needing a domain for each of its pods; and the pods that one spread constraint
        limits as filling no domain above the highest minimum that can be.
        """
        state = self._state
        opens = sum(state.may_open(i) << i for i in range(len(state.left)))
        inside = {cell: self._inside(cell, opens) for cell in state.cells}
        slots = [sum(one) for one in zip(*(cell.slots for cell in inside.values()), strict=True)]
        if any(n < count for n, count in zip(slots, state.left, strict=True)):
            return None
        if self._too_little(list(inside.values())) or self._too_few_nodes(inside):
            return None
        for level in range(len(state.ties.shared)):
            domains: _Domains = {}
            for cell, found in inside.items():
                here = domains.setdefault(cell[level], [0] * len(state.left))
                for i, n in enumerate(found.slots):
                    here[i] += n
            at_most = self._in_domains(level, domains)
            if at_most is None:
                return None
            slots = [min(pair) for pair in zip(slots, at_most, strict=True)]
        left = state.left
        if any(n < count for n, count in zip(slots, left, strict=True)):
            return None
        return [n - count for n, count in zip(slots, left, strict=True)]

    def _inside(self, cell: Cell, opens: int) -> _Inside:
        state = self._state
        presents = tuple(some[code] for some, code in zip(state.present, cell, strict=True))
        key = state.signatures[cell], presents, opens, tuple(code >= 0 for code in cell)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._look(cell, opens)
        return found

    def _look(self, cell: Cell, opens: int) -> _Inside:
        state, ties = self._state, self._state.ties
        slots = [0] * len(state.left)
        free = [0] * len(ties.columns)
        nodes = [0] * len(ties.cliques)
        large = [0] * len(self._sizes)
        for kind, count in state.cells[cell].items():
            takes = self._takes(cell, kind, opens)
            if not any(takes):
                continue
            slots = [total + count * n for total, n in zip(slots, takes, strict=True)]
            free = [total + count * f for total, f in zip(free, kind.free, strict=True)]
            for number, (column, size, members) in enumerate(self._sizes):
                most = min(kind.free[column] // size, sum(takes[i] for i in members))
                large[number] += count * most
            apart = ties.statics[kind.static].apart
            for number, (clique, level) in enumerate(ties.cliques):
                members = [i for i in range(len(slots)) if clique >> i & 1]
                if any(takes[i] for i in members):
                    keeps = level >= 0 or all(apart[i] & clique == clique for i in members)
                    nodes[number] += count if keeps else _MANY
        return _Inside(tuple(slots), tuple(free), tuple(nodes), tuple(large))

    def _takes(self, cell: Cell, kind: Kind, opens: int) -> list[int]:
        """Return how many pods of each class one node of the kind takes at most."""
        state = self._state
        static = state.ties.statics[kind.static]
        self.looked_at += 1
        takes = []
        for i, demand in enumerate(state.demand):
            most = 0
            may = opens >> i & 1 or state.is_near(i, cell, kind, static)
            if may and state.has_room(i, cell, kind, static):
                each = (f // d for f, d in zip(kind.free, demand, strict=True) if d)
                most = 1 if static.apart[i] >> i & 1 else min(each, default=_MANY)
            takes.append(most)
        return takes

    def _in_domains(self, level: int, domains: _Domains) -> list[int] | None:
        """Return slots by class, looking at one topology; None: classes together lack slots."""
        ties, classes = self._state.ties, range(len(self._state.left))
        caps: list[dict[int, int]] = [{} for _ in classes]
        for i in classes:
            if ties.apart[level][i] >> i & 1:
                caps[i] = {code: 1 for code in domains if code >= 0}
        for number, meter in enumerate(ties.meters):
            if meter.topology == level and not self._limit(number, domains, caps):
                return None
        return [
            sum(min(slots[i], caps[i].get(code, _MANY)) for code, slots in domains.items())
            for i in classes
        ]

    def _limit(self, number: int, domains: _Domains, caps: list[dict[int, int]]) -> bool:
        """Lower ``caps`` to what spread allows; whether it leaves room for all it limits."""
        state, ties = self._state, self._state.ties
        highest = self._highest_minimum(number, domains)
        together: dict[int, int] = {}
        members = set()
        for i, limits in enumerate(ties.limits):
            for one in limits:
                if one.meter != number:
                    continue
                top = (0 if one.too_few else highest) + one.max_skew
                for code in domains:
                    n = state.counts[number].get(code, 0)
                    quota = max(top - n, 0) if one.itself else _MANY * (n <= top)
                    caps[i][code] = min(caps[i].get(code, _MANY), quota)
                    if one.itself:
                        together[code] = max(together.get(code, 0), quota)
                        members.add(i)
        room = sum(min(most, sum(domains[c][i] for i in members)) for c, most in together.items())
        return room >= sum(state.left[i] for i in members)

    def _highest_minimum(self, number: int, domains: _Domains) -> int:
        """Return the highest that a meter's minimum can get."""
        state, meter = self._state, self._state.ties.meters[number]
        highest = meter.elsewhere
        for code, count in state.counts[number].items():
            if code not in meter.in_minimum:
                continue
            slots = domains.get(code, ())
            more = (
                min(n, left)
                for i, (n, left) in enumerate(zip(slots, state.left, strict=False))
                if meter.by >> i & 1
            )
            highest = min(highest, count + sum(more))
        return highest

    def _too_few_nodes(self, inside: dict[Cell, _Inside]) -> bool:
        """Whether classes that all keep apart have more pods than there are domains for them."""
        state = self._state
        for number, (clique, level) in enumerate(state.ties.cliques):
            left = sum(count for i, count in enumerate(state.left) if clique >> i & 1)
            nodes, used = 0, set()
            for cell, found in inside.items():
                if not found.nodes[number]:
                    continue
                if level >= 0 and cell[level] >= 0:
                    used.add(cell[level])
                else:
                    nodes += found.nodes[number] if level < 0 else left
            if nodes + len(used) < left:
                return True
        return False

    def _too_little(self, inside: list[_Inside]) -> bool:
        """Whether the pods that are left, or the large ones, ask for more than there is in sum."""
        state = self._state
        free = [sum(one) for one in zip(*(cell.free for cell in inside), strict=True)]
        asked = [
            sum(n * demand[column] for n, demand in zip(state.left, state.demand, strict=True))
            for column in range(len(free))
        ]
        if any(a > f for a, f in zip(asked, free, strict=True)):
            return True
        large = [sum(one) for one in zip(*(cell.large for cell in inside), strict=True)]
        return any(
            sum(state.left[i] for i in members) > n
            for (_, _, members), n in zip(self._sizes, large, strict=True)
        )
