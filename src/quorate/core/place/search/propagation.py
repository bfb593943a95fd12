"""Upper bounds on what the members without a place can have, and whether that is too little.

No bound is ever too low: a state that is given up cannot be completed.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import accumulate
from operator import sub

from quorate.core.place.search.capacities import ResourceSlots
from quorate.core.place.search.state import Assignment, BeforeAssignment, State
from quorate.core.place.search.totals import LocationTotals
from quorate.core.place.search.values import MANY, Affinity, Bounds, FinalLimit, Sums, WorkEstimate


class Propagation:
    """Computes the bounds of one state after the other."""

    def __init__(self, state: State, resource_slots: ResourceSlots, work: WorkEstimate) -> None:
        self._state = state
        self._work = work
        self._classes = range(len(state.left))
        self._totals = LocationTotals(state, resource_slots, work)
        self._at = self._totals.of_node
        self.blamed: list[int] = []
        """The classes that lacked slots when the last state was given up."""

    def propagate(
        self, before: Bounds | None, assigned: tuple[Assignment, BeforeAssignment] | None
    ) -> Generator[None, None, Bounds | None]:
        """Return the bounds; None: the state cannot be completed. Yields between pieces of work.

        ``before`` are the bounds before what was ``assigned`` last, if anything was; None: not
        known. These are looked at: each class as if the others were not there; sets of classes
        that all keep apart, which need a domain for each pod; classes under one spread constraint,
        which fill no domain above the highest minimum that can be; classes with affinity, which go
        to no more new domains than members to come can open.
        """
        openers = self._openers()
        openable = sum((n > 0) << i for i, n in enumerate(openers))
        if before is None or before.openable != openable:
            found = yield from self._totals.from_scratch(openable)
        elif assigned is None:
            found = before
        else:
            found = yield from self._totals.after(before, *assigned)
        return self._completed(found, openers)

    def _openers(self) -> list[int]:
        """Return by class how many domains members to come may open at most, roots among them."""
        state = self._state
        self._work.done_us += len(self._classes)
        openers = [state.openers(i) for i in self._classes]
        if not state.roots_open:
            return openers
        roots = sum(1 << j for j in self._classes if state.left[j] and state.may_be_first(j))
        return [
            n + bool(affinity.classes & roots) if affinity is not None else n
            for n, affinity in zip(openers, state.constraints.affinities, strict=True)
        ]

    def _completed(self, found: Bounds, openers: list[int]) -> Bounds | None:
        """Return the bounds with what follows from their sums; None: too little of something."""
        state, at = self._state, self._at
        locations = len(found.by_location) // 4 * (1 + self._totals.has_local)
        self._work.done_us += 16 + 3 * len(self._classes) + locations
        slots = list(found.whole[: at.free])
        if self._lack_slots(slots) or self._lack_capacity(found.whole):
            return None
        if self._cliques_lack_domains(found):
            return None
        if self._lack_attractors(found.whole[at.waiting :], openers):
            return None
        minima = [self._minimum_max(number, found) for number in range(len(state.counts))]
        minima_max = [most for most, _ in minima]
        if self._is_beyond_limits(minima_max, found):
            return None
        for level in range(len(found.domains)):
            at_most = self._slots_in_domains(level, found, minima_max, openers)
            if at_most is None or self._lack_slots(at_most):
                return None
            slots = list(map(min, slots, at_most))
        return found._replace(
            minima_max=minima_max,
            minima_max_later=[less for _, less in minima],
            slack=list(map(sub, slots, state.left)),
            scarcity=[count / max(n, 1) for n, count in zip(slots, state.left, strict=True)],
        )

    def _lack_slots(self, slots: list[int]) -> bool:
        """Whether some classes have fewer slots than pods without a place."""
        pairs = enumerate(zip(slots, self._state.left, strict=True))
        self.blamed = [i for i, (n, left) in pairs if n < left]
        return bool(self.blamed)

    def _lack_capacity(self, whole: Sums) -> bool:
        """Whether all pods, or the large ones, ask for more of a column than the nodes can give."""
        state, at = self._state, self._at
        for column, free in enumerate(whole[at.free : at.nodes]):
            asked = (n * demand[column] for n, demand in zip(state.left, state.demand, strict=True))
            if sum(asked) > free:
                return True
        number = at.large
        for sizes in at.sizes:
            left = list(accumulate(state.left[i] for i in sizes.order))
            for end in sizes.ends:
                if left[end - 1] > whole[number]:
                    self.blamed = sizes.order[:end]
                    return True
                number += 1
        return False

    def _cliques_lack_domains(self, found: Bounds) -> bool:
        """Whether classes that all keep apart have more pods than there are domains for them."""
        state, at = self._state, self._at
        for number, (clique, level) in enumerate(state.constraints.cliques):
            members = [i for i in self._classes if clique >> i & 1]
            left = sum(state.left[i] for i in members)
            domains = found.whole[at.nodes + number]
            if level >= 0:
                used = [
                    code for code, sums in found.domains[level].items() if sums[at.nodes + number]
                ]
                domains = left if any(code < 0 for code in used) else len(used)
            if domains < left:
                self.blamed = members
                return True
        return False

    def _lack_attractors(self, waiting: Sums, openers: list[int]) -> bool:
        """Whether pods on more nodes wait for an attractor than attractors can come."""
        roots = len(self._state.roots)
        affinities = self._state.constraints.affinities
        return any(
            affinity is not None and nodes > n + roots
            for affinity, nodes, n in zip(affinities, waiting, openers, strict=True)
        )

    # Spread

    def _minimum_max(self, number: int, found: Bounds) -> tuple[int, int]:
        """Return the highest that a counter's minimum can get.

        And the highest if one of the pods to come goes where it does not raise the minimum.
        """
        state = self._state
        counter = state.constraints.counters[number]
        if counter.topology < 0:
            lowest = min(one.minima_max[number] for one in found.by_location.values())
            return (min(counter.minimum_elsewhere, lowest),) * 2
        highest, counts = counter.minimum_elsewhere, []
        left = [(i, n) for i, n in enumerate(state.left) if n and counter.classes >> i & 1]
        domains = found.domains[counter.topology]
        self._work.done_us += len(domains) * (1 + len(left) // 4)
        for code, count in state.counts[number].items():
            if code in counter.in_minimum:
                counts.append(count)
                slots = domains.get(code)
                more = sum(min(slots[i], n) for i, n in left) if slots is not None else 0
                highest = min(highest, count + more)
        counts.sort()
        pods = sum(n for _, n in left)
        one_fewer = max(pods - 1, 0)
        return _water_level(counts, pods, highest), _water_level(counts, one_fewer, highest)

    def _count_max(self, final: FinalLimit, minima_max: list[int]) -> int:
        """Return how much a domain may count in a complete placement."""
        return final.max_skew + (0 if final.minimum_is_zero else minima_max[final.minimum_of])

    def _is_beyond_limits(self, minima_max: list[int], found: Bounds) -> bool:
        """Whether a domain holds more already than any minimum will allow."""
        state = self._state
        for number, final in enumerate(self._at.final_limits):
            counter = state.constraints.counters[final.counted_by]
            most = self._count_max(final, minima_max)
            if counter.topology < 0:
                if any(one.counts_max[number] > most for one in found.by_location.values()):
                    return True
                continue
            present = state.present[counter.topology]
            for code, count in state.counts[final.counted_by].items():
                if count > most and present[code] & counter.classes:
                    return True
        return False

    # Domains

    def _slots_in_domains(
        self, level: int, found: Bounds, minima_max: list[int], openers: list[int]
    ) -> list[int] | None:
        """Return slots by class, by the rules along one shared topology.

        None: classes together lack slots, or pods wait for more attractors than can come.
        """
        constraints, domains = self._state.constraints, found.domains[level]
        caps: dict[int, dict[int, int]] = {
            i: {code: 1 for code in domains if code >= 0}
            for i in self._classes
            if constraints.apart[level][i] >> i & 1
        }
        for final in self._at.final_limits:
            if constraints.counters[final.counted_by].topology == level and final.self_match:
                most = self._count_max(final, minima_max)
                if not self._cap_by_spread(final, most, domains, caps):
                    return None
        found_slots = list(found.whole[: len(self._classes)])
        lacking = []
        for i, affinity in zip(self._classes, constraints.affinities, strict=True):
            near = [near for _, at, near in affinity.terms if at == level] if affinity else []
            if i not in caps and not near:
                continue
            cap = caps.get(i, {})
            slots = {
                code: min(sums[i], cap.get(code, MANY)) for code, sums in domains.items() if sums[i]
            }
            self._work.done_us += len(domains) // 4 * (1 + len(near))
            found_slots[i] = sum(slots.values())
            if affinity is not None and near:
                open_slots = self._open_slots(i, affinity, level, slots, near[0], openers[i], found)
                found_slots[i] = open_slots or 0
                lacking += [i] if open_slots is None else []
        self.blamed = lacking
        return found_slots if not lacking else None

    def _open_slots(
        self,
        index: int,
        affinity: Affinity,
        level: int,
        slots: dict[int, int],
        near: frozenset[int],
        openers: int,
        found: Bounds,
    ) -> int | None:
        """Return how many slots a class has, if each of the ``openers`` opens one domain for it.

        ``slots`` are by domain. None: its pods wait for an attractor in more domains than that.
        """
        state, domains = self._state, found.domains[level]
        mine = affinity.classes & ~state.constraints.dominated[index]
        coming = [j for j, count in enumerate(state.left) if count and mine >> j & 1]
        rooted = {location[level] for who, location in state.roots if affinity.classes >> who & 1}
        open_slots, closed = 0, []
        for code, members in state.present[level].items():
            is_settled = members & mine or code in near or code in rooted
            if is_settled or members & (affinity.classes | 1 << index):
                open_slots += slots.get(code, 0)
            elif code in slots and (state.roots_open or any(domains[code][j] for j in coming)):
                closed.append(slots[code])
            if members >> index & 1 and not is_settled:
                openers -= 1
                if openers < 0 or not any(domains[code][j] for j in coming):
                    return None
        closed.sort(reverse=True)
        return open_slots + sum(closed[:openers])

    def _cap_by_spread(
        self,
        final: FinalLimit,
        most: int,
        domains: dict[int, Sums],
        caps: dict[int, dict[int, int]],
    ) -> bool:
        """Lower ``caps`` (by class and domain) so that no domain counts more than ``most``.

        Return whether that leaves slots for all pods that the limit concerns.
        """
        state = self._state
        counts = state.counts[final.counted_by]
        classes = state.constraints.counters[final.counted_by].classes
        members = [i for i in self._classes if classes >> i & 1]
        self._work.done_us += len(domains) // 2 * (1 + len(members))
        slots = 0
        for code, sums in domains.items():
            quota = max(most - counts.get(code, 0), 0)
            for i in members:
                cap = caps.setdefault(i, {})
                cap[code] = min(cap.get(code, MANY), quota)
            slots += min(quota, sum(sums[i] for i in members))
        if slots < sum(state.left[i] for i in members):
            self.blamed = members
            return False
        return True


def _water_level(counts: list[int], pods: int, highest: int) -> int:
    """Return the minimum of ``counts`` (sorted) after pods went to the emptiest domains.

    It is at most ``highest``.
    """
    for index, count in enumerate(counts):
        if count >= highest:
            break
        above = counts[index + 1] if index + 1 < len(counts) else MANY
        rise = min(above - count, pods // (index + 1))
        if rise < above - count:
            return min(highest, count + rise)
        pods -= rise * (index + 1)
    return highest
