"""The state of the joint search: where members are so far, and what the others can still have.

It says where pods are in the end, not in which order they came. No bound is ever too low: a state
that is given up cannot be completed. What is known of a domain stands at each of its nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.model import policy
from quorate.core.place.search.tables import MANY, Hashes, Limit, Tables, mixed


class DeadEndError(Exception):
    """The state cannot be completed."""


class Bounds(NamedTuple):
    """Upper bounds on what members without a place can still have."""

    slots: Ints
    """int64[nodes, classes]: pods that the node takes, at most all that are left."""
    sums: Ints
    """int64[levels, nodes, classes]: the same added up over the node's domain."""
    totals: Ints
    """int64[classes]"""
    waiting: list[Mask]
    """By term, bool[nodes]: where users are, and nobody who may come before them."""
    closed: list[Mask]
    """By term, bool[nodes]: where no pod is that satisfies it, nor a user."""


class State:
    """Where members are. ``count`` and ``ban`` change it, and change it back."""

    def __init__(self, tables: Tables, left: Ints) -> None:
        """Begin with ``left`` pods of each class without a place."""
        self.tables = tables
        self.left = left.copy()
        self._free = tables.free.copy()
        self._slots = self._fit(slice(None), self._free)
        self._banned = np.zeros_like(tables.allowed)
        self.members = np.zeros((len(tables.apart), *tables.allowed.shape), np.int64)
        """int64[levels, nodes, classes]: the members in the node's domain."""
        self.counts = [limit.base.copy() for limit in tables.limits]
        """By limit, int64[nodes]: the pods that count in the node's domain."""
        self._final_counts = [limit.base.copy() for limit in tables.limits]
        """The same of those whose number is limited in the end."""
        thresholds = [
            (column, size)
            for column, sizes in enumerate(np.unique(some) for some in tables.demand.T)
            for size in sizes[:: len(sizes) // policy.SEARCH_SIZES_MAX + 1]
            if size
        ]
        self._columns, self._sizes = np.array(thresholds, np.int64).reshape(-1, 2).T
        self._is_large = tables.demand[:, self._columns] >= self._sizes
        """bool[classes, sizes]: which ask for so much of a column, or more."""

    def _fit(self, nodes: slice | Ints, free: Ints) -> Ints:
        """Return int64[nodes, classes]: how many pods ``free`` (int64[nodes, columns]) holds."""
        demand = self.tables.demand
        each = np.where(demand > 0, free[:, None, :] // np.maximum(demand, 1), MANY)
        slots: Ints = each.min(axis=2, initial=MANY) * self.tables.allowed[nodes]
        return slots

    # Changes

    def count(self, node: int, index: int, sign: int) -> None:
        """Place a pod of the class on the node, or with ``sign`` -1 take it away."""
        tables, nodes = self.tables, slice(node, node + 1)
        self.left[index] -= sign
        self._free[node] -= sign * tables.demand[index]
        self._slots[node] = self._fit(nodes, self._free[nodes])[0]
        is_near = tables.codes == tables.codes[node]
        self.members[:, :, index] += sign * is_near.T
        for number, limit in enumerate(tables.limits):
            if limit.nodes[node] and limit.classes[index]:
                self.counts[number] += sign * is_near[:, limit.level]
            if limit.nodes[node] and limit.finally_counted[index]:
                self._final_counts[number] += sign * is_near[:, limit.level]

    def ban(self, nodes: Ints, index: int, *, is_banned: bool) -> None:
        """Note whether no more pods of the class can go to the nodes."""
        self._banned[nodes, index] = is_banned

    # Symmetry

    def hashes(self) -> Hashes:
        """Return uint64[nodes]: equal for nodes that differ only by exchanging what is alike."""
        tables = self.tables
        content = np.hstack([self._free, self.members[0]]).astype(np.uint64)
        columns = np.arange(content.shape[1], dtype=np.uint64)
        hashes = mixed(tables.facts + content @ mixed(columns + np.uint64(2**32)))
        for codes in tables.codes.T[1:] if tables.is_nested else ():
            domains = np.zeros(int(codes.max()) + 1, np.uint64)
            np.add.at(domains, codes, hashes)
            hashes = mixed(hashes + mixed(domains[codes]))
        return hashes

    # Bounds

    def attracted(self) -> tuple[list[Mask], list[Mask]]:
        """Return ``waiting`` and ``closed`` of ``Bounds``."""
        waiting, closed = [], []
        for term in self.tables.terms:
            members = self.members[term.level]
            is_open = term.near | members[:, term.openers].any(axis=1)
            has_users = members[:, term.users].any(axis=1)
            waiting.append(has_users & ~is_open)
            closed.append(~(is_open | has_users | members[:, term.classes].any(axis=1)))
        return waiting, closed

    def bounds(self) -> Bounds:
        """Return the bounds. Raises DeadEndError."""
        slots = np.minimum(self._slots, self.left)
        slots[self._banned] = 0
        for level, apart in enumerate(self.tables.apart):
            if apart.any():
                is_repelled = self.members[level] @ apart > 0
                slots[is_repelled & self.tables.labelled[:, level, None]] = 0
        sums, totals = np.zeros_like(self.members), slots.sum(axis=0)
        bounds = Bounds(slots, sums, totals, *self.attracted())
        roots = self._root_nodes(bounds.waiting)
        for level in range(len(self.members)):
            self._bound_along(level, bounds, roots)
        if (totals < self.left).any() or self._lacks_capacity(slots):
            raise DeadEndError
        return bounds

    def _root_nodes(self, waiting: Sequence[Mask]) -> dict[bytes, Mask]:
        """Return by who satisfies a term, bool[nodes]: where the first of all these can be.

        Where more domains wait than others can open, it is in one of these.
        """
        roots: dict[bytes, Mask] = {}
        for term, is_waiting in zip(self.tables.terms, waiting, strict=True):
            mask = roots.setdefault(term.classes.tobytes(), np.ones(len(self._free), np.bool_))
            domains = self.tables.is_first[:, term.level] @ is_waiting
            if domains > self.left[term.openers].sum() and self.tables.labelled.all():
                mask &= is_waiting
        return roots

    def _bound_along(self, level: int, bounds: Bounds, roots: dict[bytes, Mask]) -> None:
        """Lower the bounds by the rules along one level."""
        tables, sums = self.tables, bounds.sums[level]
        sums[:] = self._sums(level, bounds.slots)
        is_first = tables.is_first[:, level]
        is_one = tables.labelled[:, level, None] & tables.apart[level].diagonal()
        caps = np.where(is_one, 1, MANY)
        for number, limit in enumerate(tables.limits):
            if limit.level == level:
                self._cap_by_spread(number, limit, sums, caps)
        spares = {
            number: self._cap_by_affinity(number, bounds, caps, roots[term.classes.tobytes()])
            for number, term in enumerate(tables.terms)
            if term.level == level
        }
        np.minimum(sums, caps, out=sums)
        totals = is_first @ sums
        for number, spare in spares.items():
            users = tables.terms[number].users
            slots = np.sort(sums[bounds.closed[number] & (is_first > 0)][:, users], axis=0)
            totals[users] -= slots[: max(len(slots) - spare, 0)].sum(axis=0)
        np.minimum(bounds.totals, totals, out=bounds.totals)
        np.minimum(bounds.slots, caps, out=bounds.slots)

    def _sums(self, level: int, slots: Ints) -> Ints:
        """Add slots up over each node's domain."""
        if not level:
            return slots
        classes, codes = slots.shape[1], self.tables.codes[:, level]
        cells = (codes[:, None] * classes + np.arange(classes)).ravel()
        sums = np.bincount(cells, slots.ravel()).astype(np.int64)
        return sums.reshape(-1, classes)[codes]

    def _cap_by_spread(self, number: int, limit: Limit, sums: Ints, caps: Ints) -> None:
        """Lower ``caps`` so that no domain exceeds the highest minimum that can be."""
        is_first = self.tables.is_first[:, limit.level]
        minimum, in_minimum = limit.fewest_elsewhere, limit.in_minimum & (is_first > 0)
        if in_minimum.any():
            counts, coming = self.counts[number][in_minimum], self.left[limit.classes]
            most = counts + np.minimum(sums[in_minimum][:, limit.classes], coming).sum(axis=1)
            # the emptiest domains are filled first
            filled = coming.sum() + np.cumsum(np.sort(counts))
            level = (filled // np.arange(1, len(counts) + 1)).min()
            minimum = min(minimum, int(most.min()), int(level))
        concerned = limit.users | limit.finally_counted
        quota = limit.max_skew + minimum - self._final_counts[number]
        is_over = quota < 0
        if self.members[limit.level][is_over][:, concerned].any():
            raise DeadEndError
        caps[is_over[:, None] & concerned] = 0
        if limit.self_match:
            quota[is_over] = 0
            caps[:, concerned] = np.minimum(caps[:, concerned], quota[:, None])
            slots = is_first @ np.minimum(quota, sums[:, concerned].sum(axis=1))
            if slots < self.left[concerned].sum():
                raise DeadEndError

    def _cap_by_affinity(self, number: int, bounds: Bounds, caps: Ints, roots: Mask) -> int:
        """Lower ``caps`` where no pod can come that satisfies a term.

        Return how many domains members to come can open to its users, besides those that wait.
        """
        term = self.tables.terms[number]
        closed, waiting = bounds.closed[number], bounds.waiting[number]
        is_first = self.tables.is_first[:, term.level]
        is_rooted = self.tables.in_domains(term.level, roots) & term.has_root
        is_out_of_reach = ~bounds.sums[term.level][:, term.openers].any(axis=1)
        needs_root = waiting & is_out_of_reach
        spare = int(self.left[term.openers].sum() - is_first @ waiting)
        spare += bool((is_rooted & (waiting | closed)).any())
        if spare < 0 or is_first @ needs_root > (is_rooted & needs_root).any():
            raise DeadEndError
        if needs_root.any():
            is_rooted[:] = False
        is_shut = closed & is_out_of_reach & ~is_rooted if spare else closed
        caps[is_shut[:, None] & term.users] = 0
        return spare

    def _lacks_capacity(self, slots: Ints) -> bool:
        """Whether pods ask for more of a column than the nodes can give.

        All together, or those that are as large as one of them, or larger.
        """
        free = self._free * np.any(slots, axis=1, keepdims=True)
        is_short = free.sum(axis=0) < self.left @ self.tables.demand
        fits = np.minimum(free[:, self._columns] // self._sizes, slots @ self._is_large)
        is_short_of_large = fits.sum(axis=0) < self.left @ self._is_large
        return bool(is_short.any() or is_short_of_large.any())

    # Choices

    def best_node(self, index: int, bounds: Bounds, *, worst_fit: bool) -> int:
        """Return where a pod of the class leaves most to the others.

        Of equally good nodes the fullest, or with ``worst_fit`` the emptiest.
        """
        tables, nodes = self.tables, np.flatnonzero(bounds.slots[:, index])
        scarcity = self.left / np.maximum(bounds.totals, 1)
        slots, free = bounds.slots[nodes], self._free[nodes] - tables.demand[index]
        kept = np.minimum(slots, self._fit(nodes, free))
        kept[:, tables.apart[0, index]] = 0
        kept[:, index] = slots[:, index]
        score = (slots - kept) @ scarcity
        for term, closed in zip(tables.terms, bounds.closed, strict=True):
            if term.classes[index]:  # it lets in the users
                lets_in = np.minimum(bounds.sums[term.level, nodes], self.left)[:, term.users]
                score -= closed[nodes] * (lets_in @ scarcity[term.users])
        spread = np.zeros(len(nodes), np.int64)
        for limit, counts in zip(tables.limits, self.counts, strict=True):
            spread += counts[nodes] * limit.users[index]
        fullness = (free / np.maximum(tables.free.max(axis=0), 1)).sum(axis=1)
        return int(nodes[np.lexsort((-fullness if worst_fit else fullness, spread, score))[0]])
