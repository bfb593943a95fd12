"""Whether the pods of a placement can be placed in some order in which each obeys every rule.

Called by ``plan.search`` for a whole placement that keeps all rules that know no order. What is
left are affinity, for which somebody has to come first, and spread, whose minimum rises.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.core.plan.search_facts import Cell, Kind
from quorate.core.plan.search_state import Move, State

_TRIED_MAX = 150

Placed = tuple[int, Cell, Kind, int]
"""A pod: its class, the cell and kind of its node, and the node."""


def has_order(
    state: State, placed: Sequence[Placed], roots: int, highest: list[int]
) -> tuple[bool | None, int]:
    """Return whether there is an order, and the steps taken; None: not all were tried.

    ``state`` is that before the first pod, and is used up. The first ``roots`` pods may each come
    as the first of its group. ``highest`` are the minima in the end.
    """
    order = _Order(state, placed, roots, highest)
    return order.run(), order.steps


class _Order:
    def __init__(
        self, state: State, placed: Sequence[Placed], roots: int, highest: list[int]
    ) -> None:
        self._state = state
        self._highest = highest
        self._placed = placed
        self._kinds = {row: kind for _, _, kind, row in placed}
        self._left: dict[tuple[int, int], int] = {}
        self._cells = {row: cell for _, cell, _, row in placed}
        for who, _, _, row in placed:
            self._left[who, row] = self._left.get((who, row), 0) + 1
        self._seen: set[tuple[tuple[tuple[int, int], int], ...]] = set()
        self._roots = {(who, row) for who, _, _, row in placed[:roots]}
        self._tried = 0
        self.steps = 0

    def run(self) -> bool | None:
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
        if any(self._is_late(*pair) for pair in self._left):
            return False
        lowest = self._state.lowest()
        may = [pair for pair in self._left if self._may(*pair, lowest)]
        harmless = [pair for pair in may if not self._is_counted(pair[0])]
        if harmless and not any(self._is_root(*pair) for pair in self._left):
            made = [(pair, *self._make(*pair)) for pair in harmless]
            if self._go():
                return True
            for pair, move, undo in reversed(made):
                self._unmake(*pair, move, undo)
            return False
        tightest = self._tightest(lowest)
        for _, who, row in sorted((self._rank(*pair, tightest), *pair) for pair in may):
            move, undo = self._make(who, row)
            if self._go():
                return True
            self._unmake(who, row, move, undo)
        return False

    def _is_late(self, who: int, row: int) -> bool:
        """Whether the pod's domain holds more already than the minimum will ever allow."""
        cell, kind = self._cells[row], self._kinds[row]
        return any(
            self._state.count(meter, cell, kind) + itself - max_skew
            > (0 if too_few else self._highest[meter])
            for meter, max_skew, itself, too_few in self._state.ties.limits[who]
        )

    def _tightest(self, lowest: list[int]) -> dict[tuple[int, int], int]:
        """Return by meter and domain: how many it may count for all that have yet to come there."""
        found: dict[tuple[int, int], int] = {}
        for who, row in self._left:
            for meter, max_skew, itself, too_few in self._state.ties.limits[who]:
                key = meter, self._domain(meter, row)
                most = max_skew - itself + (0 if too_few else lowest[meter])
                found[key] = min(found.get(key, most), most)
        return found

    def _domain(self, meter: int, row: int) -> int:
        level = self._state.ties.meters[meter].topology
        return self._cells[row][level] if level >= 0 else row

    def _is_counted(self, who: int) -> bool:
        """Whether spread may refuse others once such a pod is placed."""
        return any(meter.by >> who & 1 for meter in self._state.ties.meters)

    def _is_root(self, who: int, row: int) -> bool:
        """Whether the pod may come as the first of its group."""
        return (who, row) in self._roots and self._state.may_begin(who)

    def _rank(
        self, who: int, row: int, tightest: dict[tuple[int, int], int]
    ) -> tuple[bool, bool, bool, int]:
        """Return by what the pod comes: roots first, and those that keep none out of a domain."""
        state, cell, kind = self._state, self._cells[row], self._kinds[row]
        keeps_out, full = False, 0
        for number, meter in enumerate(state.ties.meters):
            if meter.by >> who & 1 and (meter.topology < 0 or cell[meter.topology] >= 0):
                count = state.count(number, cell, kind)
                full += count
                most = tightest.get((number, self._domain(number, row)))
                keeps_out |= most is not None and count + 1 > most
        return not self._is_root(who, row), keeps_out, not state.ties.limits[who], full

    def _may(self, who: int, row: int, lowest: list[int]) -> bool:
        cell, kind, first = self._cells[row], self._kinds[row], self._is_root(who, row)
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
