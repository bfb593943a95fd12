"""When a state of ``plan.search`` cannot be completed: cheap bounds that are never too low."""

from __future__ import annotations

from quorate.core.plan.search_state import State
from quorate.core.plan.ties import Cell, Kind


def lacks(state: State) -> list[int] | None:
    """Return for each class how many slots it has to spare at most; None: some class lacks slots.

    Each class is looked at as if the others were not there; and each set of classes that all keep
    apart, as needing a domain for each of its pods.
    """
    spare = []
    for index, count in enumerate(state.left):
        slots = _slots(state, index) if count else 0
        if slots < count:
            return None
        spare.append(slots - count)
    return None if _too_few_domains(state) or _too_little_in_sum(state) else spare


def _slots(state: State, index: int) -> int:
    """Return how many more pods of the class all nodes take at most."""
    ties, total = state.ties, 0
    opens = state.may_open(index)
    itself = [apart[index] >> index & 1 for apart in ties.apart]
    level = itself.index(1) if 1 in itself else -1
    used: set[int] = set()
    for cell, kinds in state.cells.items():
        for kind, nodes in kinds.items():
            each = _each(state, index, cell, kind, opens=opens)
            if not each:
                continue
            if level >= 0 and cell[level] >= 0:
                used.add(cell[level])
            else:
                total += each * nodes
    return total + len(used)


def _each(state: State, index: int, cell: Cell, kind: Kind, *, opens: bool) -> int:
    """Return how many pods of the class one node of the kind takes at most."""
    static = state.ties.statics[kind.static]
    if not state.has_room(index, cell, kind, static):
        return 0
    if not opens and not state.is_near(index, cell, kind, static):
        return 0
    if static.apart[index] >> index & 1:
        return 1
    demand = state.demand[index]
    most = min(f // d for f, d in zip(kind.free, demand, strict=True) if d)
    return min(most, state.left[index])


def _too_few_domains(state: State) -> bool:
    """Whether classes that all keep apart have more pods than there are domains for them."""
    for clique, level in state.ties.cliques:
        left = sum(count for i, count in enumerate(state.left) if clique >> i & 1)
        if not left:
            continue
        members = [i for i, count in enumerate(state.left) if count and clique >> i & 1]
        domains = 0
        used: set[int] = set()
        for cell, kinds in state.cells.items():
            if level >= 0 and cell[level] < 0:
                domains = left  # no domain, so nothing keeps them apart
            for kind, nodes in kinds.items():
                static = state.ties.statics[kind.static]
                if not any(state.has_room(i, cell, kind, static) for i in members):
                    continue
                if level >= 0:
                    used.add(cell[level])
                elif all(static.apart[i] & clique == clique for i in members):
                    domains += nodes
                else:
                    domains = left
        if domains + len(used) < left:
            return True
    return False


def _too_little_in_sum(state: State) -> bool:
    """Whether the pods that are left ask for more than all nodes together have free."""
    width = len(state.ties.columns)
    asked = [
        sum(n * d[column] for n, d in zip(state.left, state.demand, strict=True))
        for column in range(width)
    ]
    for kinds in state.cells.values():
        for kind, nodes in kinds.items():
            asked = [a - nodes * f for a, f in zip(asked, kind.free, strict=True)]
            if all(a <= 0 for a in asked):
                return False
    return any(a > 0 for a in asked)
