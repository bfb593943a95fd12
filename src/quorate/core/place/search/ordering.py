"""In which order the pods of a placement can be placed so that each obeys every rule, if any.

Called by ``joint`` for a whole placement that keeps all rules that know no order. What is
left are affinity, for which somebody has to come first, and spread, whose minimum rises. Pods of
one class on nodes that are alike are one choice, and pods that do not get in one another's way
are placed together.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence

from quorate.core.model import policy
from quorate.core.place.search.state import Move, State, Undo
from quorate.core.place.search.values import Cell, Kind, Work

Placed = tuple[int, Cell, Kind, int]
"""A pod: its class, the cell and kind of its node before the first pod, and the node."""
_Group = tuple[int, int]
"""Pods that are alike here: their class, and one of their nodes."""
_Place = tuple[int, int]
"""A meter, and the domain that it counts in: the node if it is a local one."""
_Rank = tuple[bool, bool, bool, bool, int]


class Order:
    """Looks for an order on a state before the first pod, and leaves that as it was.

    ``roots`` are classes and cells: any pod of the class there may come as the first of its group.
    Not only the one that was chosen as such: the search keeps apart no states that differ in which
    of them it was. ``highest`` are the minima in the end.
    """

    def __init__(
        self,
        state: State,
        work: Work,
        placed: Sequence[Placed],
        roots: Collection[tuple[int, Cell]],
        highest: list[int],
    ) -> None:
        self._state = state
        self._work = work
        self._highest = highest
        self._rows: dict[_Group, list[int]] = {}
        """The nodes of the pods to come."""
        self._kinds = {row: kind for _, _, kind, row in placed}
        self._cells = {row: cell for _, cell, _, row in placed}
        self._roots = frozenset(roots)
        self._on: dict[int, int] = {}
        """By node: the classes that it has in the end."""
        groups: dict[object, _Group] = {}
        for who, cell, kind, row in placed:
            node = row if state.ties.minds_nodes >> who & 1 else -1
            group = groups.setdefault((who, cell, kind.static, node), (who, row))
            self._rows.setdefault(group, []).append(row)
            self._on[row] = self._on.get(row, 0) | 1 << who
        self._seen: set[object] = set()
        self._made: list[list[tuple[_Group, int, Move, Undo]]] = []
        self._failures = 0
        work.done += 2 * len(placed)

    @property
    def is_sure(self) -> bool:
        """Whether all orders have been tried, if none was found."""
        return self._failures < policy.ORDER_FAILURES_MAX

    def find(self) -> Generator[None, None, list[tuple[int, int]] | None]:
        """Return an order as pairs of class and node, or None. Yields between pieces."""
        choices = [self._choices()]
        while self._rows and choices and self.is_sure:
            batch = next(choices[-1], None)
            if batch is not None:
                self._made.append([self._make(group) for group in batch])
                choices.append(self._choices())
            else:
                choices.pop()
                self._failures += 1
                self._unmake()
            yield
        order = [(group[0], row) for batch in self._made for group, row, _, _ in batch]
        is_found = not self._rows
        while self._made:
            self._unmake()
        return order if is_found else None

    def _choices(self) -> Iterator[list[_Group]]:
        """Yield pods that may come next together. In any order that there is one of them does."""
        left = tuple(sorted((group, len(rows)) for group, rows in self._rows.items()))
        self._work.done += 6 * len(left)
        if left in self._seen or any(self._is_late(group) for group, _ in left):
            return
        self._seen.add(left)
        lowest = self._state.lowest()
        may = [group for group, _ in left if self._may(group, lowest)]
        tightest = self._tightest(lowest)
        is_even = self._state.ties.is_even
        if is_even and not any(self._is_root(group) for group, _ in left):
            harmless = [group for group in may if tightest.keys().isdisjoint(self._adds_to(group))]
            if harmless:
                yield [group for group in harmless for _ in self._rows[group]]
                return
        ranked = sorted((self._rank(group, tightest), group) for group in may)
        together = self._together(ranked) if is_even else []
        if len(together) > 1:
            yield together
        for _, group in ranked:
            yield [group]

    def _together(self, ranked: list[tuple[_Rank, _Group]]) -> list[_Group]:
        """Return those of the first rank that do not change what the others of them meet."""
        found: list[_Group] = []
        changed: set[_Place] = set()
        for rank, group in ranked:
            if rank != ranked[0][0] or self._is_root(group):
                break
            places = self._adds_to(group)
            if changed.isdisjoint((*places, *self._limited_in(group))):
                found.append(group)
                changed.update(places)
        return found

    def _is_late(self, group: _Group) -> bool:
        """Whether the pod's domain holds more already than the minimum will ever allow."""
        who, cell, kind = self._next_of(group)
        return any(
            self._state.count(meter, cell, kind) + itself - max_skew
            > (0 if too_few else self._highest[meter])
            for meter, max_skew, itself, too_few in self._state.ties.limits[who]
        )

    def _tightest(self, lowest: list[int]) -> dict[_Place, int]:
        """Return by place: how many it may count for all that have yet to come there."""
        found: dict[_Place, int] = {}
        for group in self._rows:
            limits = self._state.ties.limits[group[0]]
            for place, limit in zip(self._limited_in(group), limits, strict=True):
                least = 0 if limit.too_few else lowest[limit.meter]
                most = limit.max_skew - limit.itself + least
                found[place] = min(found.get(place, most), most)
        return found

    def _place(self, meter: int, group: _Group) -> _Place:
        level = self._state.ties.meters[meter].topology
        return meter, self._cells[group[1]][level] if level >= 0 else group[1]

    def _adds_to(self, group: _Group) -> list[_Place]:
        """Return where such a pod is counted."""
        meters = self._state.ties.meters
        places = [self._place(n, group) for n, one in enumerate(meters) if one.by >> group[0] & 1]
        return [(meter, where) for meter, where in places if where >= 0]

    def _limited_in(self, group: _Group) -> list[_Place]:
        """Return by limit of the class where it counts for such a pod."""
        return [self._place(one.meter, group) for one in self._state.ties.limits[group[0]]]

    def _is_root(self, group: _Group) -> bool:
        """Whether the pod may come as the first of its group."""
        who, row = group
        return (who, self._cells[row]) in self._roots and self._state.may_begin(who)

    def _is_let_in(self, group: _Group) -> bool:
        """Whether its node gets a pod that may come first and attracts it."""
        who, row = group
        ties = self._state.ties
        pull = ties.pulls[who]
        return pull is not None and bool(self._on[row] & pull.by & ~ties.shadowed[who])

    def _rank(self, group: _Group, tightest: dict[_Place, int]) -> _Rank:
        """Return by what the pod comes: roots first, and those that keep none out of a domain.

        Of the roots first those that no other pod on their node could let in later: one of them has
        to be the first, and on many nodes it would take long to come to it.
        """
        who, cell, kind = self._next_of(group)
        is_root = self._is_root(group)
        keeps_out, full = False, 0
        for place in self._adds_to(group):
            count = self._state.count(place[0], cell, kind)
            full += count
            keeps_out |= place in tightest and count + 1 > tightest[place]
        may_wait = is_root and self._is_let_in(group)
        return not is_root, may_wait, keeps_out, not self._state.ties.limits[who], full

    def _may(self, group: _Group, lowest: list[int]) -> bool:
        who, cell, kind = self._next_of(group)
        first = self._is_root(group)
        return self._state.accepts_now(who, cell, kind, lowest, may_begin=first)

    def _next_of(self, group: _Group) -> tuple[int, Cell, Kind]:
        row = self._rows[group][-1]
        return group[0], self._cells[row], self._kinds[row]

    def _make(self, group: _Group) -> tuple[_Group, int, Move, Undo]:
        who, cell, kind = self._next_of(group)
        row = self._rows[group].pop()
        if not self._rows[group]:
            del self._rows[group]
        move = Move(who, cell, kind, self._state.after(who, kind))
        self._kinds[row] = move.after
        self._work.done += 12
        return group, row, move, self._state.make(move)

    def _unmake(self) -> None:
        for group, row, move, undo in reversed(self._made.pop() if self._made else ()):
            self._state.undo(move, undo)
            self._kinds[row] = move.kind
            self._rows.setdefault(group, []).append(row)
            self._work.done += 12
