"""Which locations, and which states, differ only by exchanging what is alike.

Each location has a number for what is on its nodes. Where topologies are nested, each domain has
one too, made of the numbers of the domains right below it. A number changes with what it stands
for. So one assignment costs as many numbers as there are topologies, however many nodes there are.
"""

from __future__ import annotations

from hashlib import blake2b

from quorate.core.place.search.constraints import Constraints
from quorate.core.place.search.values import Location, NodeKind


class Symmetry:
    """Numbers the contents of ``nodes``, ``present`` and ``counts``, which ``State`` changes."""

    def __init__(
        self,
        constraints: Constraints,
        nodes: dict[Location, dict[NodeKind, int]],
        present: list[dict[int, int]],
        counts: list[dict[int, int]],
    ) -> None:
        self._nodes, self._present, self._counts = nodes, present, counts
        self._number_of: dict[NodeKind, int] = {}
        self._sums: dict[Location, int] = {
            location: sum(n * self._kind(kind) for kind, n in kinds.items())
            for location, kinds in nodes.items()
        }
        """By location: the sum of the numbers of its nodes and of its roots."""
        levels = len(constraints.shared) if constraints.is_nested else 0
        self._counters_at = [
            [(n, one.in_minimum) for n, one in enumerate(constraints.counters) if one.topology == i]
            for i in range(levels)
        ]
        # A domain is known by the codes of those that hold it, and its own.
        self._below: list[dict[Location, list[Location]]] = [{} for _ in range(levels)]
        """By level: the domains right below each domain of the level above."""
        self._contents: list[dict[Location, int]] = [{} for _ in range(levels)]
        """By level and domain: the number of what is in it."""
        self._sums_below: list[dict[Location, int]] = [{} for _ in range(levels + 1)]
        """By level and domain of the level above: the sum of the numbers right below it."""
        for level in range(levels, 0, -1):
            above, here = self._sums_below[level - 1], self._sums_below[level]
            for domain in dict.fromkeys(location[:level] for location in nodes):
                within = here[domain] if level < levels else self._sums[domain]
                number = _digest((self._own(level - 1, domain[-1]), within))
                self._contents[level - 1][domain] = number
                self._below[level - 1].setdefault(domain[:-1], []).append(domain)
                above[domain[:-1]] = above.get(domain[:-1], 0) + number

    def swap(self, location: Location, source: NodeKind, target: NodeKind) -> None:
        """Note that a node of the location has become another kind."""
        self._sums[location] += self._kind(target) - self._kind(source)

    def add_root(self, index: int, location: Location, count: int) -> None:
        """Note ``count`` more roots (or fewer, below 0) of a class in the location.

        Two locations of which only one has its root are not alike. On which of its nodes the root
        is makes no difference: ``ordering`` may begin with any pod of the class there.
        """
        self._sums[location] += count * _digest((index,))

    def renumber(self, location: Location) -> tuple[int, ...]:
        """Number anew the domains of a location that has changed; return the numbers before."""
        before = tuple(some[location[: level + 1]] for level, some in enumerate(self._contents))
        within = self._sums[location]
        for level in reversed(range(len(before))):
            number = _digest((self._own(level, location[level]), within))
            self._put(level, location, number)
            within = self._sums_below[level][location[:level]]
        return before

    def restore(self, location: Location, before: tuple[int, ...]) -> None:
        """Set the numbers of the location's domains to what they were."""
        for level, number in enumerate(before):
            self._put(level, location, number)

    def content(self, location: Location) -> int:
        """Return a number for the nodes of a location."""
        return self._sums[location]

    def whole(self) -> int:
        """Return a number for all that members have changed."""
        if self._contents:
            return self._sums_below[0][()]
        domains = tuple(tuple(some.items()) for some in (*self._present, *self._counts))
        return _digest((tuple(self._sums.values()), domains))

    def distinct_locations(self) -> list[Location]:
        """Return one location of each set of interchangeable ones."""
        if not self._contents:
            return list(self._nodes)
        domains: list[Location] = [()]
        for level, contents in enumerate(self._contents):
            domains = [
                one
                for domain in domains
                for one in {contents[one]: one for one in self._below[level][domain]}.values()
            ]
        return domains

    def _put(self, level: int, location: Location, number: int) -> None:
        domain = location[: level + 1]
        self._sums_below[level][location[:level]] += number - self._contents[level][domain]
        self._contents[level][domain] = number

    def _kind(self, kind: NodeKind) -> int:
        found = self._number_of.get(kind)
        if found is None:
            found = self._number_of[kind] = _digest(tuple(kind))
        return found

    def _own(self, level: int, code: int) -> tuple[int, ...]:
        """Return what is known of a domain itself, besides its nodes."""
        if code < 0:
            return ()
        return self._present[level][code], *[
            2 * self._counts[number][code] + (code in in_minimum)
            for number, in_minimum in self._counters_at[level]
        ]


def _digest(what: object) -> int:
    """Return 128 bits for what is made of integers: equal ones stand for equal things.

    The chance that it is not so is far below that of a broken machine. Sums of such numbers stand
    for collections.
    """
    return int.from_bytes(blake2b(repr(what).encode(), digest_size=16).digest())
