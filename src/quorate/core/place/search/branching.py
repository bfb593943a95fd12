"""Where the next pod of a class may go, the best first: where it leaves most to the others."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from operator import sub
from typing import NamedTuple

from quorate.core.model import policy
from quorate.core.place.search.capacities import ResourceSlots
from quorate.core.place.search.state import Assignment, State
from quorate.core.place.search.values import (
    MANY,
    Bounds,
    Location,
    LocationCapacity,
    NodeKind,
    WorkEstimate,
)

_Score = tuple[float, int, int]
"""The lowest is best: slots lost to others less what is gained, and ``State.cost``."""


class Heuristic(NamedTuple):
    """In which order choices are tried. Where one errs early for long, another may not."""

    largest_first: bool = False
    """The largest pods come first, else the class with the least slack."""
    worst_fit: bool = False
    """Of equally good nodes those with the most free capacity come first, else the fullest."""
    roots_early: bool = False
    """Roots are placed first also where their group could begin with another member."""


class _Candidate(NamedTuple):
    """Kinds of nodes in one location that differ only in free capacity of no use to the pod.

    The first fields say what comes first.
    """

    score: _Score
    free: tuple[int, ...]
    location: Location
    group: int
    kinds: list[NodeKind]


class Branching:
    """Yields the assignments of one class in the state, in the order to try them."""

    def __init__(self, state: State, resource_slots: ResourceSlots, work: WorkEstimate) -> None:
        self._state = state
        self._resource_slots = resource_slots
        self._work = work
        self._group_of: list[dict[NodeKind, int]] = [{} for _ in state.left]
        """By class: the group of kinds that differ only in free capacity of no use to it."""
        self._groups: dict[object, int] = {}
        self._lost: list[tuple[int, ...]] = []
        """By group: how many slots of each other class one pod takes."""

    def assignments(
        self, index: int, bounds: Bounds, heuristic: Heuristic
    ) -> Iterator[Assignment | None]:
        """Yield where a pod of the class may go. None is a pause: it took long to weigh them."""
        candidates: list[_Candidate] = []
        losses: dict[int, float] = {}
        scores: dict[object, _Score | None] = {}
        at_pause = 0
        for location in self._state.symmetry.distinct_locations():
            if len(candidates) > at_pause + policy.SEARCH_KINDS_AT_ONCE_MAX:
                at_pause = len(candidates)
                yield None
            groups = yield from self._groups_in(index, location, bounds.by_location[location])
            for group, kinds in groups.items():
                kind = kinds[0]
                spot = location, kind.facts, kind.present, kind.counts
                if spot not in scores:
                    scores[spot] = self._score(index, location, kind, bounds)
                score = scores[spot]
                if score is None:
                    continue
                if group not in losses:
                    losses[group] = self._loss(group, bounds)
                best = max(kinds) if heuristic.worst_fit else min(kinds)
                free = tuple(-amount for amount in best.free) if heuristic.worst_fit else best.free
                score = losses[group] + score[0], *score[1:]
                candidates.append(_Candidate(score, free, location, group, kinds))
        self._work.done_us += 6 + 3 * len(candidates)
        candidates.sort()
        for _, _, location, _, kinds in candidates:
            for kind in sorted(kinds, reverse=heuristic.worst_fit):
                yield Assignment(index, location, kind, self._state.after(index, kind))

    def _groups_in(
        self, index: int, location: Location, capacity: LocationCapacity
    ) -> Generator[None, None, dict[int, list[NodeKind]]]:
        """Return the kinds of nodes in the location that take a pod of the class, by group."""
        found = capacity.candidates.get(index)
        if found is None:
            found = capacity.candidates[index] = {}
            group_of, all_kinds = self._group_of[index], self._state.nodes[location]
            kinds = [kind for kind in all_kinds if capacity.by_kind[kind].sums[index]]
            new = [kind for kind in kinds if kind not in group_of]
            at_once = policy.SEARCH_KINDS_AT_ONCE_MAX
            for start in range(0, len(new), at_once):
                self._learn(index, new[start : start + at_once])
                yield
            self._work.done_us += 1 + (len(all_kinds) + len(kinds)) // 3
            for kind in kinds:
                found.setdefault(group_of[kind], []).append(kind)
        return found

    def _score(
        self, index: int, location: Location, kind: NodeKind, bounds: Bounds
    ) -> _Score | None:
        """Return how good the place is, lost slots left aside; None: no pod may end there."""
        self._work.done_us += 4 + len(self._group_of) // 2
        if not self._state.is_within_final_limits(index, location, kind, bounds):
            return None
        gain = self._gain(index, location, kind, bounds)
        return -gain, *self._state.cost(index, location, kind)

    def _loss(self, group: int, bounds: Bounds) -> float:
        """Return the slots that other classes lose to one pod, weighted by their scarcity."""
        self._work.done_us += 1 + len(self._group_of) // 8
        pairs = zip(self._lost[group], bounds.scarcity, strict=True)
        return sum(n * scarcity for n, scarcity in pairs)

    def _learn(self, index: int, kinds: list[NodeKind]) -> None:
        """Find the groups of kinds that a pod of the class was not weighed on before."""
        demand = self._state.demand[index]
        after = [tuple(map(sub, kind.free, demand)) for kind in kinds]
        self._resource_slots.learn(after)
        self._work.done_us += len(kinds) * (3 + len(self._group_of) // 4)
        for kind, free in zip(kinds, after, strict=True):
            facts = self._state.constraints.facts[kind.facts]
            apart, slots_of = facts.apart[index], self._resource_slots.of
            lost = tuple(
                0
                if other == index or not facts.allowed >> other & 1
                else _capped(before) - (0 if apart >> other & 1 else _capped(left))
                for other, (before, left) in enumerate(
                    zip(slots_of(kind.free), slots_of(free), strict=True)
                )
            )
            what = kind.facts, kind.present, kind.counts, lost
            group = self._groups.setdefault(what, len(self._lost))
            if group == len(self._lost):
                self._lost.append(lost)
            self._group_of[index][kind] = group

    def _gain(self, index: int, location: Location, kind: NodeKind, bounds: Bounds) -> float:
        """Return for how many pods to come, or waiting, a pod here would satisfy their affinity."""
        state, gain = self._state, 0.0
        for other, affinity in enumerate(state.constraints.affinities):
            if affinity is None:
                continue
            if not (affinity.classes & ~state.constraints.dominated[other]) >> index & 1:
                continue
            left = state.left[other]
            for _, level, near in affinity.terms:
                if level < 0:
                    if kind.present & affinity.classes or other == index:
                        continue
                    waits = kind.present >> other & 1
                    allowed = state.constraints.facts[kind.facts].allowed
                    slots = left > 0 and allowed >> other & 1
                else:
                    code = location[level]
                    members = state.present[level].get(code, 0)
                    if code < 0 or code in near or members & affinity.classes & ~(1 << other):
                        continue
                    waits = members >> other & 1
                    slots = min(bounds.domains[level][code][other], left)
                gain += 64 * waits + slots * bounds.scarcity[other]
        return gain


def _capped(slots: int) -> int:
    """Return slots, but for pods that ask for nothing: a number that can be compared."""
    return slots if slots < MANY else 64
