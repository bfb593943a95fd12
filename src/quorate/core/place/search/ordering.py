"""An order of the pods of a complete placement in which each obeys every rule in its turn, if any.

The placement keeps all rules that know no order. Two depend on it: affinity, for which another pod
has to come first, and spread, whose minimum rises.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.model import policy
from quorate.core.place.search.state import State
from quorate.core.place.search.tables import Limit

Pod = tuple[int, int]
"""A node and a class."""


class Order:
    """A depth-first search for one order of the pods that a state has placed.

    Masks are bool[nodes, classes].
    """

    def __init__(self, state: State, placed: Sequence[Pod]) -> None:
        """Take the pods ``placed``, all that the state has, away; ``find`` places them again."""
        self._state, tables = state, state.tables
        self._minima_at_end = [
            self._minimum(*each) for each in zip(tables.limits, state.counts, strict=True)
        ]
        self._may_begin = tables.allowed & tables.roots
        """Those that may come first of all that satisfy their affinity."""
        self._ends_roots = np.zeros(tables.apart.shape[1:], np.int64)
        """By class: the classes of which none is the first once it is there."""
        self._stranded = state.attracted()[0]
        """By term, bool[nodes]: where nobody can come before the users, so one has to be first."""
        for term, stranded in zip(tables.terms, self._stranded, strict=True):
            if stranded.any():
                self._may_begin &= stranded[:, None] | ~term.users
            self._ends_roots |= np.outer(term.classes, term.users)
        self._left: Ints = np.zeros(tables.allowed.shape, np.int64)
        """int64[nodes, classes]: the pods that have not come yet."""
        self._count(placed, -1)
        levels = {term.level for term in tables.terms}
        levels |= {limit.level for limit in tables.limits}
        facts = np.column_stack([tables.facts.astype(np.int64), tables.codes[:, sorted(levels)]])
        self._group = np.unique(facts, axis=0, return_inverse=True)[1].reshape(-1)
        """int64[nodes]: equal for nodes that these rules cannot tell apart."""
        self._tried: set[bytes] = set()
        self._failures = 0

    @property
    def is_complete(self) -> bool:
        """Whether all orders were tried, if there is none."""
        return self._failures < policy.ORDER_FAILURES_MAX

    def find(self) -> Generator[int, None, list[Pod] | None]:
        """Return an order, or None. Yields after each step its work, in microseconds."""
        order: list[list[Pod]] = []
        choices = [self._choices()]
        while self._left.any() and choices and self.is_complete:
            if choices[-1]:
                order.append(choices[-1].pop())
                self._count(order[-1], 1)
                choices.append(self._choices())
            else:
                choices.pop()
                self._failures += 1
                self._count(order.pop() if order else [], -1)
            yield 150 + self._left.size // 10
        missing = self._all_of(self._left > 0)
        self._count(missing, 1)
        return None if missing else [pod for pods in order for pod in pods]

    def _count(self, pods: Sequence[Pod], sign: int) -> None:
        for node, index in pods:
            self._left[node, index] -= sign
            self._state.count(node, index, sign)

    def _all_of(self, which: Mask) -> list[Pod]:
        """Return all pods that are left of these."""
        pods = np.argwhere(which).tolist()
        return [(node, index) for node, index in pods for _ in range(self._left[node, index])]

    @staticmethod
    def _minimum(limit: Limit, counts: Ints) -> int:
        return int(counts[limit.in_minimum].min(initial=limit.fewest_elsewhere))

    def _choices(self) -> list[list[Pod]]:
        """Return which pods may come next together, the best last. Every order begins with some."""
        state, tables, left = self._state, self._state.tables, self._left > 0
        by_group = np.zeros_like(self._left)
        np.add.at(by_group, self._group, self._left)
        if by_group.tobytes() in self._tried:
            return []
        self._tried.add(by_group.tobytes())
        may, keeps_out, is_limited = left.copy(), np.zeros_like(left), np.zeros_like(left)
        has_limit, fullness = np.zeros_like(left), np.zeros_like(self._left)
        for limit, counts, at_end in zip(
            tables.limits, state.counts, self._minima_at_end, strict=True
        ):
            has_users = np.any(left & limit.users, axis=1)
            at_most = self._minimum(limit, counts) + limit.max_skew - limit.self_match
            if (counts[has_users] > at_end + limit.max_skew - limit.self_match).any():
                return []
            has_limit |= limit.users
            may &= ~limit.users | (counts <= at_most)[:, None]
            is_counted = limit.nodes[:, None] & limit.classes
            fullness += is_counted * counts[:, None]
            is_counted &= tables.in_domains(limit.level, has_users)[:, None]
            is_limited |= is_counted
            keeps_out |= is_counted & (counts >= at_most)[:, None]
        ended = (state.members[0] @ self._ends_roots > 0) & tables.has_domain
        is_root = left & self._may_begin & ~ended.any(axis=0)
        for term, stranded in zip(tables.terms, self._stranded, strict=True):
            is_met = term.near | state.members[term.level][:, term.classes].any(axis=1)
            may &= is_met[:, None] | ~term.users | is_root
            if (stranded & ~is_met).any():  # whoever ends the roots has to wait
                ends_roots = np.all(tables.has_domain[:, term.users], axis=1, keepdims=True)
                may &= stranded[:, None] | ~(term.classes & ends_roots)
        if not is_root.any() and (may & ~is_limited).any():
            return [self._all_of(may & ~is_limited)]
        ranks = np.stack([fullness, ~has_limit, keeps_out, ~is_root])[:, may]
        best_last = np.argwhere(may)[np.lexsort(ranks)[::-1]].tolist()
        alike = {(self._group[node], index): (node, index) for node, index in best_last}
        return [[pod] for pod in alike.values()]
