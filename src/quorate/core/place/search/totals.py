"""What the nodes of each location, and of each domain, can take of the members without a place.

Added up once over the kinds of nodes of a location. Afterwards the sums follow each assignment,
until members change what others mean to a whole domain.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from operator import add, sub

from quorate.core.place.search.capacities import NodeCapacities, ResourceSlots
from quorate.core.place.search.state import Assignment, BeforeAssignment, State
from quorate.core.place.search.values import (
    Bounds,
    Location,
    LocationCapacity,
    NodeCapacity,
    NodeKind,
    Sums,
    WorkEstimate,
)

_Context = tuple[int, ...]
"""What the capacity of a node depends on beside its kind: the openable classes, and for each of its
shared domains the mask of the classes present there that matter to others; -1: no domain."""


class LocationTotals:
    """Adds capacities up, and remembers those of locations that it has met."""

    def __init__(self, state: State, resource_slots: ResourceSlots, work: WorkEstimate) -> None:
        constraints = state.constraints
        self.of_node = NodeCapacities(state, resource_slots)
        self.has_local = any(counter.topology < 0 for counter in constraints.counters)
        """Whether some counters are local."""
        self._state = state
        self._resource_slots = resource_slots
        self._work = work
        self._matters = [_matters(state, level) for level in range(len(constraints.shared))]
        """By shared topology: mask of the classes whose presence in a domain matters to others."""
        self._locations_in: list[dict[int, list[Location]]] = [{} for _ in constraints.shared]
        for location in state.nodes:
            for level, code in enumerate(location):
                self._locations_in[level].setdefault(code, []).append(location)
        self._by_context: dict[_Context, dict[NodeKind, NodeCapacity]] = {}
        self._most: dict[tuple[_Context, int, int], tuple[int, ...]] = {}
        """By context, facts and present classes of a node: see ``NodeCapacities.most``."""
        self._known: dict[tuple[int, _Context], LocationCapacity] = {}

    def from_scratch(self, openable: int) -> Generator[None, None, Bounds]:
        """Add up all locations. Yields between pieces of work.

        ``openable`` is a mask of the classes for which members to come may open domains.
        """
        by_location = {}
        for location in self._state.nodes:
            by_location[location] = yield from self._add_up(location, openable)
        whole = _sum_of(one.sums for one in by_location.values())
        domains = [
            {
                code: _sum_of(by_location[one].sums for one in inside)
                for code, inside in some.items()
            }
            for some in self._locations_in
        ]
        self._work.done_us += 2 * len(by_location) * (1 + len(domains))
        return Bounds(openable, by_location, whole, domains, [], [], [], [])

    def after(
        self, before: Bounds, assignment: Assignment, undo: BeforeAssignment
    ) -> Generator[None, None, Bounds]:
        """Bring the totals up to date with one assignment. Yields between pieces of work."""
        by_location, whole = before.by_location.copy(), before.whole
        domains = [some.copy() for some in before.domains]
        self._work.done_us += 16 + len(by_location) // 8
        for location in (others := self._touched(assignment, undo)) or (assignment.location,):
            was = by_location[location]
            if others:
                by_location[location] = yield from self._add_up(location, before.openable)
            else:
                by_location[location] = self._follow(was, assignment, before.openable)
            change = tuple(map(sub, by_location[location].sums, was.sums))
            whole = tuple(map(add, whole, change))
            for some, code in zip(domains, location, strict=True):
                some[code] = tuple(map(add, some[code], change))
        return before._replace(by_location=by_location, whole=whole, domains=domains)

    def _touched(self, assignment: Assignment, undo: BeforeAssignment) -> dict[Location, None]:
        """Return the locations in which the pod lets others in or keeps others out."""
        found: dict[Location, None] = {}
        for level, (code, before) in enumerate(zip(assignment.location, undo.present, strict=True)):
            if (self._state.present[level][code] ^ before) & self._matters[level]:
                found |= dict.fromkeys(self._locations_in[level][code])
        return found

    def _context(self, location: Location, openable: int) -> _Context:
        domains = zip(self._state.present, location, self._matters, strict=True)
        return openable, *(some[code] & mask if code >= 0 else -1 for some, code, mask in domains)

    def _add_up(self, location: Location, openable: int) -> Generator[None, None, LocationCapacity]:
        context = self._context(location, openable)
        key = self._state.symmetry.content(location), context
        self._work.done_us += 2
        if key in self._known:
            return self._known[key]
        kinds = self._state.nodes[location]
        self._resource_slots.learn(kind.free for kind in kinds)
        by_kind = self._by_context.setdefault(context, {})
        sums: Sums = (0,) * self.of_node.width
        for kind, count in kinds.items():
            if kind not in by_kind:
                by_kind[kind] = self._capacity(location, kind, context)
                yield
            sums = tuple([a + count * b for a, b in zip(sums, by_kind[kind].sums, strict=True)])
        self._work.done_us += len(kinds) * (1 + len(sums) // 16)
        yield
        minima_max: tuple[int, ...] = ()
        counts_max: tuple[int, ...] = ()
        if self.has_local:
            self._work.done_us += len(kinds)
            here = [by_kind[kind] for kind in kinds]
            minima_max = tuple(map(min, zip(*(one.minima_max for one in here), strict=True)))
            counts_max = tuple(map(max, zip(*(one.counts_max for one in here), strict=True)))
        found = self._known[key] = LocationCapacity(sums, minima_max, counts_max, by_kind, {})
        return found

    def _follow(
        self, before: LocationCapacity, assignment: Assignment, openable: int
    ) -> LocationCapacity:
        """Return what a location can take after an assignment that changes one node of it only."""
        _, location, kind, after = assignment
        by_kind = before.by_kind
        if after not in by_kind:
            by_kind[after] = self._capacity(location, after, self._context(location, openable))
        lost, got = by_kind[kind], by_kind[after]
        sums = tuple(map(add, before.sums, map(sub, got.sums, lost.sums)))
        if not self.has_local:
            return LocationCapacity(sums, (), (), by_kind, {})
        counts_max = tuple(map(max, before.counts_max, got.counts_max))  # no count falls
        minima_max = tuple(
            min(least, new)
            if old > least or new <= least
            else self._least(number, location, by_kind)
            for number, (least, old, new) in enumerate(
                zip(before.minima_max, lost.minima_max, got.minima_max, strict=True)
            )
        )
        return LocationCapacity(sums, minima_max, counts_max, by_kind, {})

    def _least(self, number: int, location: Location, by_kind: dict[NodeKind, NodeCapacity]) -> int:
        kinds = self._state.nodes[location]
        self._work.done_us += len(kinds) // 4
        return min(by_kind[kind].minima_max[number] for kind in kinds)

    def _capacity(self, location: Location, kind: NodeKind, context: _Context) -> NodeCapacity:
        self._work.done_us += self.of_node.work_us
        key = context, kind.facts, kind.present
        if key not in self._most:
            self._work.done_us += 2 * len(self._state.left)
            self._most[key] = self.of_node.most(location, kind, context[0])
        return self.of_node.of(kind, self._most[key])


def _matters(state: State, level: int) -> int:
    """Return the mask of the classes that, once in a domain, let others in or keep them out."""
    found = 0
    constraints = state.constraints
    for apart, affinity in zip(constraints.apart[level], constraints.affinities, strict=True):
        found |= apart
        if affinity is not None and any(at == level for _, at, _ in affinity.terms):
            found |= affinity.classes
    return found


def _sum_of(rows: Iterable[Sums]) -> Sums:
    """Add up column by column."""
    return tuple(map(sum, zip(*rows, strict=True)))
