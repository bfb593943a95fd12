"""Whether the pods of a placement can be placed in some order in which each obeys every rule.

Called by ``plan.search`` for a whole placement that keeps all rules that know no order. What is
left are affinity, for which somebody has to come first, and spread, whose minimum rises.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.core.plan.search_state import Move, State
from quorate.core.plan.ties import Cell, Kind

_TRIED_MAX = 300

Placed = tuple[int, Cell, Kind, int]
"""A pod: its class, the cell and kind of its node, and the node."""


def has_order(state: State, placed: Sequence[Placed], roots: int) -> tuple[bool | None, int]:
    """Return whether there is an order, and the steps taken; None: not all were tried.

    ``state`` is that before the first pod, and is used up. The first ``roots`` come first, as they
    are.
    """
    order = _Order(state, placed)
    return order.run(roots), order.steps


class _Order:
    def __init__(self, state: State, placed: Sequence[Placed]) -> None:
        self._state = state
        self._placed = placed
        self._kinds = {row: kind for _, _, kind, row in placed}
        self._left: dict[tuple[int, int], int] = {}
        self._cells = {row: cell for _, cell, _, row in placed}
        for who, _, _, row in placed:
            self._left[who, row] = self._left.get((who, row), 0) + 1
        self._seen: set[tuple[tuple[tuple[int, int], int], ...]] = set()
        self._tried = 0
        self.steps = 0

    def run(self, roots: int) -> bool | None:
        for who, _, _, row in self._placed[:roots]:
            if not self._may(who, row, self._state.lowest(), first=True):
                break
            self._make(who, row)
        if self._go():
            return True
        return None if self._tried >= _TRIED_MAX else False

    def _go(self) -> bool:
        if not self._left:
            return True
        self._tried += 1
        left = tuple(sorted(self._left.items()))
        if left in self._seen or self._tried >= _TRIED_MAX:
            return False
        self._seen.add(left)
        self.steps += 4 * len(self._left)
        lowest = self._state.lowest()
        may = [pair for pair in self._left if self._may(*pair, lowest)]
        harmless = [pair for pair in may if not self._is_counted(pair[0])]
        if harmless:
            made = [(pair, *self._make(*pair)) for pair in harmless]
            if self._go():
                return True
            for pair, move, undo in reversed(made):
                self._unmake(*pair, move, undo)
            return False
        for _, who, row in sorted((self._rank(*pair), *pair) for pair in may):
            move, undo = self._make(who, row)
            if self._go():
                return True
            self._unmake(who, row, move, undo)
        return False

    def _is_counted(self, who: int) -> bool:
        """Whether spread may refuse others once such a pod is placed."""
        return any(meter.by >> who & 1 for meter in self._state.ties.meters)

    def _rank(self, who: int, row: int) -> tuple[int, int]:
        """Return a number by which the pod comes: limited ones while they may, emptiest first."""
        state, cell, kind = self._state, self._cells[row], self._kinds[row]
        ties = state.ties
        full = sum(
            state.count(number, cell, kind)
            for number, meter in enumerate(ties.meters)
            if meter.by >> who & 1 and (meter.topology < 0 or cell[meter.topology] >= 0)
        )
        return (0 if ties.limits[who] else 1), full

    def _may(self, who: int, row: int, lowest: list[int], *, first: bool = False) -> bool:
        cell, kind = self._cells[row], self._kinds[row]
        return self._state.accepts_now(who, cell, kind, lowest, may_begin=first)

    def _make(self, who: int, row: int) -> tuple[Move, tuple[int, ...]]:
        state, kind = self._state, self._kinds[row]
        move = Move(who, self._cells[row], kind, state.after(who, kind))
        undo = state.make(move)
        self._kinds[row] = move.after
        self._left[who, row] -= 1
        if not self._left[who, row]:
            del self._left[who, row]
        return move, undo

    def _unmake(self, who: int, row: int, move: Move, undo: tuple[int, ...]) -> None:
        self._state.undo(move, undo)
        self._kinds[row] = move.kind
        self._left[who, row] = self._left.get((who, row), 0) + 1
