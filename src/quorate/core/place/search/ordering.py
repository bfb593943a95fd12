"""An order of the pods of a complete placement in which each obeys every rule in its turn, if any.

The placement keeps all rules that know no order. Two depend on it: affinity, for which another pod
has to come first, and spread, whose minimum rises. Pods of one class on interchangeable nodes are
one choice. Pods that do not change what others of them meet come together.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence

from quorate.core.model import policy
from quorate.core.place.search.state import Assignment, BeforeAssignment, State
from quorate.core.place.search.values import Location, NodeKind, WorkEstimate

Placed = tuple[int, Location, NodeKind, int]
"""A pod: its class, the location and the first kind of its node, and the node's row."""
_Group = tuple[int, int]
"""Interchangeable pods: their class, and the row of one of their nodes."""
_Counted = tuple[int, int]
"""A counter and a domain of it: the row of the node if the counter is local."""
_Rank = tuple[bool, bool, bool, bool, int]


class Order:
    """Searches depth first on a state before the first pod, and leaves that as it was."""

    def __init__(
        self,
        state: State,
        work: WorkEstimate,
        placed: Sequence[Placed],
        roots: Collection[tuple[int, Location]],
        minima_max: list[int],
    ) -> None:
        """Prepare for the ``placed`` pods.

        ``roots`` are classes and locations: any pod of the class there may come as the first of its
        group, as the search does not tell apart which of them does. ``minima_max`` is by counter:
        the minima in the end.
        """
        self._state = state
        self._work = work
        self._minima_max = minima_max
        self._rows: dict[_Group, list[int]] = {}
        """The rows of the pods that have not come yet."""
        self._kinds = {row: kind for _, _, kind, row in placed}
        self._locations = {row: location for _, location, _, row in placed}
        self._roots = frozenset(roots)
        self._on: dict[int, int] = {}
        """By row: mask of the classes that the node has in the end."""
        groups: dict[object, _Group] = {}
        for who, location, kind, row in placed:
            node = row if state.constraints.node_matters_to >> who & 1 else -1
            group = groups.setdefault((who, location, kind.facts, node), (who, row))
            self._rows.setdefault(group, []).append(row)
            self._on[row] = self._on.get(row, 0) | 1 << who
        self._tried: set[object] = set()
        self._assigned: list[list[tuple[_Group, int, Assignment, BeforeAssignment]]] = []
        self._failures = 0
        work.done_us += 2 * len(placed)

    @property
    def is_complete(self) -> bool:
        """Whether all orders were tried, if none was found."""
        return self._failures < policy.ORDER_FAILURES_MAX

    def find(self) -> Generator[None, None, list[tuple[int, int]] | None]:
        """Return an order as pairs of class and row, or None. Yields between pieces of work."""
        choices = [self._choices()]
        while self._rows and choices and self.is_complete:
            batch = next(choices[-1], None)
            if batch is not None:
                self._assigned.append([self._assign(group) for group in batch])
                choices.append(self._choices())
            else:
                choices.pop()
                self._failures += 1
                self._unassign()
            yield
        order = [(group[0], row) for batch in self._assigned for group, row, _, _ in batch]
        is_found = not self._rows
        while self._assigned:
            self._unassign()
        return order if is_found else None

    def _choices(self) -> Iterator[list[_Group]]:
        """Yield groups whose pods may come next together. Every order begins with one of these."""
        left = tuple(sorted((group, len(rows)) for group, rows in self._rows.items()))
        self._work.done_us += 6 * len(left)
        if left in self._tried or any(self._is_late(group) for group, _ in left):
            return
        self._tried.add(left)
        minima = self._state.minima()
        may = [group for group, _ in left if self._may(group, minima)]
        tightest = self._tightest(minima)
        if not any(self._is_root(group) for group, _ in left):
            harmless = [group for group in may if tightest.keys().isdisjoint(self._adds_to(group))]
            if harmless:
                yield [group for group in harmless for _ in self._rows[group]]
                return
        ranked = sorted((self._rank(group, tightest), group) for group in may)
        together = self._together(ranked)
        if len(together) > 1:
            yield together
        for _, group in ranked:
            yield [group]

    def _together(self, ranked: list[tuple[_Rank, _Group]]) -> list[_Group]:
        """Return groups of the best rank that do not change what the others of them meet."""
        found: list[_Group] = []
        changed: set[_Counted] = set()
        for rank, group in ranked:
            if rank != ranked[0][0] or self._is_root(group):
                break
            places = self._adds_to(group)
            if changed.isdisjoint((*places, *self._limited_in(group))):
                found.append(group)
                changed.update(places)
        return found

    def _is_late(self, group: _Group) -> bool:
        """Whether a pod's domain counts more already than the minimum will ever allow."""
        who, location, kind = self._next_of(group)
        for counter, max_skew, self_match, minimum_is_zero in self._state.constraints.limits[who]:
            minimum = 0 if minimum_is_zero else self._minima_max[counter]
            if self._state.count(counter, location, kind) + self_match - max_skew > minimum:
                return True
        return False

    def _tightest(self, minima: list[int]) -> dict[_Counted, int]:
        """Return how much may be counted, by domain, before one more keeps some pod out."""
        found: dict[_Counted, int] = {}
        for group in self._rows:
            limits = self._state.constraints.limits[group[0]]
            for place, limit in zip(self._limited_in(group), limits, strict=True):
                least = 0 if limit.minimum_is_zero else minima[limit.counter]
                most = limit.max_skew - limit.self_match + least
                found[place] = min(found.get(place, most), most)
        return found

    def _domain(self, counter: int, group: _Group) -> _Counted:
        level = self._state.constraints.counters[counter].topology
        return counter, self._locations[group[1]][level] if level >= 0 else group[1]

    def _adds_to(self, group: _Group) -> list[_Counted]:
        """Return where such a pod is counted."""
        counters = self._state.constraints.counters
        places = [
            self._domain(n, group) for n, one in enumerate(counters) if one.classes >> group[0] & 1
        ]
        return [(counter, where) for counter, where in places if where >= 0]

    def _limited_in(self, group: _Group) -> list[_Counted]:
        """Return by limit of the class where it counts for such a pod."""
        return [
            self._domain(one.counter, group) for one in self._state.constraints.limits[group[0]]
        ]

    def _is_root(self, group: _Group) -> bool:
        """Whether a pod of the group may come as a root."""
        who, row = group
        return (who, self._locations[row]) in self._roots and self._state.may_be_first(who)

    def _is_let_in(self, group: _Group) -> bool:
        """Whether its node gets another pod that attracts it and may come before it."""
        who, row = group
        constraints = self._state.constraints
        affinity = constraints.affinities[who]
        if affinity is None:
            return False
        return bool(self._on[row] & affinity.classes & ~constraints.dominated[who])

    def _rank(self, group: _Group, tightest: dict[_Counted, int]) -> _Rank:
        """Return what decides which group is tried first, the lowest first.

        Roots come first; of these, the ones that no other pod on their node can let in later: one
        of them has to be the first, and on many nodes it would take long to come to it. Then groups
        that keep no other out of a domain.
        """
        who, location, kind = self._next_of(group)
        is_root = self._is_root(group)
        keeps_out, full = False, 0
        for place in self._adds_to(group):
            count = self._state.count(place[0], location, kind)
            full += count
            keeps_out |= place in tightest and count + 1 > tightest[place]
        may_wait = is_root and self._is_let_in(group)
        return not is_root, may_wait, keeps_out, not self._state.constraints.limits[who], full

    def _may(self, group: _Group, minima: list[int]) -> bool:
        who, location, kind = self._next_of(group)
        return self._state.is_allowed_now(who, location, kind, minima, as_root=self._is_root(group))

    def _next_of(self, group: _Group) -> tuple[int, Location, NodeKind]:
        row = self._rows[group][-1]
        return group[0], self._locations[row], self._kinds[row]

    def _assign(self, group: _Group) -> tuple[_Group, int, Assignment, BeforeAssignment]:
        who, location, kind = self._next_of(group)
        row = self._rows[group].pop()
        if not self._rows[group]:
            del self._rows[group]
        assignment = Assignment(who, location, kind, self._state.after(who, kind))
        self._kinds[row] = assignment.after
        self._work.done_us += 12
        return group, row, assignment, self._state.assign(assignment)

    def _unassign(self) -> None:
        batch = self._assigned.pop() if self._assigned else []
        for group, row, assignment, undo in reversed(batch):
            self._state.undo(assignment, undo)
            self._kinds[row] = assignment.kind
            self._rows.setdefault(group, []).append(row)
            self._work.done_us += 12
