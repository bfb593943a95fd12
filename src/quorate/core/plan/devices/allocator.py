"""Choose devices for claims on one kind of node: the first solution in the order of its devices.

Source: kube-scheduler 1.36's structured allocator ("incubating"): claims, requests and devices one
after the other, depth first; pools by driver and name, slices by name, devices as listed. In: a
kind of node and what is asked. Out: positions of devices. Calls nothing but rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import NamedTuple

from quorate.core.model.devices import DeviceTraits
from quorate.core.model.taints import tolerates
from quorate.core.plan.devices.constraints import Constraint
from quorate.core.plan.devices.expressions import Broken, Expressions
from quorate.core.plan.devices.shares import Consumed, consumption, fits
from quorate.core.quantity import exact
from quorate.core.state.device_asks import SCORE_OF_FIRST, Choice, ClaimAsk, Request
from quorate.core.state.pools import Kind, KindDevice, KindPool, PoolState

RESULTS_MAX = 32
"""AllocationResultsMaxSize: devices of one claim."""
STEPS_MAX = 200_000
"""kube-scheduler gives up after ten seconds; so many steps take about one."""


class Pick(NamedTuple):
    """A chosen device by its place in the kind, for which choice of which request."""

    pool: int
    device: int
    request: int
    choice: int
    consumed: Consumed


class Found(NamedTuple):
    """The devices of each claim, and the score of the choices taken from lists."""

    claims: tuple[tuple[Pick, ...], ...]
    score: int


def allocate(
    claims: tuple[ClaimAsk, ...], kind: Kind, traits: list[DeviceTraits], expressions: Expressions
) -> Found | Broken | None:
    """Return devices for all claims; None when there are none, ``Broken`` when it cannot be said.

    ``traits`` are those of all devices, by the number in the kind.
    """
    search = _Search(claims, kind, traits, expressions)
    try:
        return search.run()
    except _Stopped as stopped:
        return Broken(str(stopped))


class _Stopped(Exception):
    """The search cannot go on: an expression is broken, or it takes too long."""


class _Outcome(Enum):
    DONE = 1
    NOT = 2
    TOO_MANY = 3
    """There would be more devices than a claim may have: other choices may need fewer."""


_Place = tuple[int, int]


@dataclass(slots=True)
class _Wanted:
    """A choice, how many devices it takes, and which they are if it takes all."""

    choice: Choice
    count: int
    everything: list[_Place] | None


@dataclass(slots=True)
class _Used:
    """What was chosen so far."""

    claims_of: dict[_Place, set[int]] = field(default_factory=dict)
    shares: dict[_Place, list[Consumed]] = field(default_factory=dict)
    counters: dict[int, dict[tuple[str, str], Fraction]] = field(default_factory=dict)


class _Search:
    def __init__(
        self,
        claims: tuple[ClaimAsk, ...],
        kind: Kind,
        traits: list[DeviceTraits],
        expressions: Expressions,
    ) -> None:
        self.claims = claims
        self.kind = kind
        self.traits = traits
        self.expressions = expressions
        self.picks: list[list[Pick]] = [[] for _ in claims]
        self.constraints = [[Constraint(one) for one in claim.constraints] for claim in claims]
        self.wanted: dict[tuple[int, int, int], _Wanted] = {}
        self.selectable: dict[tuple[int, int, int, int, int], bool] = {}
        self.used = _Used()
        self.steps = 0

    def run(self) -> Found | Broken | None:
        for number, claim in enumerate(self.claims):
            at_least = 0
            for index, request in enumerate(claim.requests):
                counts = []
                for which, choice in enumerate(request.choices):
                    found = self._size(number, index, which, choice)
                    self.wanted[number, index, which] = found
                    counts.append(found.count)
                at_least += min(counts)
            if at_least > RESULTS_MAX:
                raise _Stopped(
                    f"number of requested devices {at_least} exceeds the claim limit of "
                    f"{RESULTS_MAX}"
                )
        if self._place(0, 0, None, 0, (0, 0)) is _Outcome.DONE:
            return Found(tuple(tuple(picks) for picks in self.picks), self._score())
        if any(pool.state is PoolState.INVALID for pool in self.kind):
            return Broken("invalid resource pools were encountered")
        return None

    def _score(self) -> int:
        lists = {
            (number, pick.request, pick.choice)
            for number, picks in enumerate(self.picks)
            for pick in picks
            if self.claims[number].requests[pick.request].is_list
        }
        return sum(SCORE_OF_FIRST - choice for _, _, choice in lists)

    def _size(self, number: int, index: int, which: int, choice: Choice) -> _Wanted:
        """Return how many devices a choice takes; for all devices, those that match."""
        if choice.wanted.count is not None:
            return _Wanted(choice, choice.wanted.count, None)
        everything = []
        for at, pool in enumerate(self.kind):
            if pool.state is not PoolState.GOOD:
                words = "being updated" if pool.state is PoolState.INCOMPLETE else "invalid"
                raise _Stopped(
                    f"request {choice.wanted.name}: asks for all devices, but resource pool "
                    f"{pool.label} is currently {words}"
                )
            for device, one in enumerate(pool.devices):
                if self._is_selectable((number, index, which), (at, device), choice) and (
                    self._share((at, device), one, choice) is not None
                ):
                    everything.append((at, device))
        return _Wanted(choice, len(everything), everything)

    def _place(
        self, number: int, index: int, which: int | None, got: int, start: _Place
    ) -> _Outcome:
        """Choose the device number ``got`` of a request's choice, and everything after it.

        ``which`` None means that a choice has to be made; devices before ``start`` were tried.
        """
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise _Stopped("the search for devices was cut short: it took too many steps")
        if number >= len(self.claims):
            return _Outcome.DONE
        requests = self.claims[number].requests
        if index >= len(requests):
            after = self._place(number + 1, 0, None, 0, (0, 0))
            return _Outcome.NOT if after is _Outcome.TOO_MANY else after
        if which is None:
            if requests[index].is_list:
                return self._first_of_list(number, index, requests[index])
            which = 0
        wanted = self.wanted[number, index, which]
        if wanted.everything is not None and not wanted.everything:
            return _Outcome.NOT
        if got >= wanted.count:
            return self._place(number, index + 1, None, 0, (0, 0))
        if len(self.picks[number]) + wanted.count - got > RESULTS_MAX:
            return _Outcome.TOO_MANY
        key = number, index, which
        if wanted.everything is not None:
            return self._with_device(key, wanted, got, wanted.everything[got], must=True)
        for place in self._places(start):
            pool, device = place
            one = self.kind[pool].devices[device]
            if self._is_taken(place, one, number, wanted.choice):
                continue
            if not self._is_selectable(key, place, wanted.choice):
                continue
            outcome = self._with_device(key, wanted, got, place, must=False)
            if outcome is not _Outcome.NOT:
                return outcome
        return _Outcome.NOT

    def _first_of_list(self, number: int, index: int, request: Request) -> _Outcome:
        only_too_many = True
        for which in range(len(request.choices)):
            outcome = self._place(number, index, which, 0, (0, 0))
            if outcome is _Outcome.DONE:
                return outcome
            only_too_many &= outcome is _Outcome.TOO_MANY
        return _Outcome.TOO_MANY if only_too_many else _Outcome.NOT

    def _places(self, start: _Place) -> list[_Place]:
        """Return the places from ``start`` on, in pools that may be used."""
        return [
            (at, device)
            for at in range(start[0], len(self.kind))
            if self.kind[at].state is PoolState.GOOD
            for device in range(start[1] if at == start[0] else 0, len(self.kind[at].devices))
        ]

    def _is_taken(self, place: _Place, one: KindDevice, number: int, choice: Choice) -> bool:
        claims = self.used.claims_of.get(place, ())
        if choice.wanted.admin:
            return number in claims
        return one.used or bool(claims)

    def _is_selectable(self, key: tuple[int, int, int], place: _Place, choice: Choice) -> bool:
        """Whether the device matches the selectors of class and request, and is for this node."""
        known = self.selectable.get((*key, *place))
        if known is None:
            one = self.kind[place[0]].devices[place[1]]
            of_class, own = choice.device_class.selectors, choice.wanted.selectors
            known = (
                self._all_match(f"class {choice.device_class.name}", of_class, one.traits)
                and self._all_match(f"request {choice.wanted.name}", own, one.traits)
                and one.here
            )
            self.selectable[(*key, *place)] = known
        return known

    def _all_match(self, owner: str, selectors: tuple[str, ...], number: int) -> bool:
        for index, expression in enumerate(selectors):
            answer = self.expressions.matches(expression, number, self.traits[number])
            if isinstance(answer, Broken):
                raise _Stopped(f"{owner}: selector #{index}: {answer}")
            if not answer:
                return False
        return True

    def _share(self, place: _Place, one: KindDevice, choice: Choice) -> Consumed | None:
        """Return what the choice takes of the device's capacity; None when that is too much."""
        traits = self.traits[one.traits]
        taken = consumption(traits, choice.wanted.capacity)
        if taken is None:
            return None
        mine = [dict(shares) for shares in self.used.shares.get(place, ())]
        return taken if fits(traits, taken, dict(one.shares or ()), *mine) else None

    def _with_device(
        self, key: tuple[int, int, int], wanted: _Wanted, got: int, place: _Place, *, must: bool
    ) -> _Outcome:
        """Take one device and go on; give it back when that leads nowhere."""
        number, index, which = key
        one = self.kind[place[0]].devices[place[1]]
        if self._is_taken(place, one, number, wanted.choice):
            return _Outcome.NOT
        consumed = self._share(place, one, wanted.choice)
        if consumed is None:
            return _Outcome.NOT
        traits = self.traits[one.traits]
        uses_counters = bool(traits.counters) and not (
            traits.shareable and (one.shares is not None or place in self.used.shares)
        )
        pool = self.kind[place[0]]
        if uses_counters and not self._take_counters(place[0], pool, traits):
            return _Outcome.NOT
        if not self._admitted(key, wanted, traits, must=must):
            if uses_counters:
                self._give_counters(place[0], traits)
            return _Outcome.NOT
        if traits.shareable:
            self.used.shares.setdefault(place, []).append(consumed)
        else:
            self.used.claims_of.setdefault(place, set()).add(number)
            consumed = ()
        self.picks[number].append(Pick(*place, index, which, consumed))
        outcome = self._place(number, index, which, got + 1, (place[0], place[1] + 1))
        if outcome is _Outcome.DONE:
            return outcome
        self.picks[number].pop()
        if traits.shareable:
            shares = self.used.shares[place]
            shares.pop()
            if not shares:
                del self.used.shares[place]
        else:
            self.used.claims_of[place].discard(number)
        for constraint in self.constraints[number]:
            constraint.remove(*self._names(key, wanted))
        if uses_counters:
            self._give_counters(place[0], traits)
        return outcome

    def _names(self, key: tuple[int, int, int], wanted: _Wanted) -> tuple[str, str]:
        request = self.claims[key[0]].requests[key[1]]
        return request.name, wanted.choice.label(request)

    def _admitted(
        self, key: tuple[int, int, int], wanted: _Wanted, traits: DeviceTraits, *, must: bool
    ) -> bool:
        """Whether taints are tolerated and all constraints hold; these then count the device."""
        tolerations = wanted.choice.wanted.tolerations
        for taint in traits.taints:
            blocks = taint.effect in ("NoSchedule", "NoExecute")
            if blocks and not tolerates(tolerations, taint):
                return False
        names = self._names(key, wanted)
        constraints = self.constraints[key[0]]
        for index, constraint in enumerate(constraints):
            if not constraint.add(*names, traits):
                for counted in constraints[:index]:
                    counted.remove(*names)
                if must:
                    raise _Stopped(
                        f"request {wanted.choice.wanted.name}: cannot add a device because a "
                        "claim constraint would not be satisfied"
                    )
                return False
        return True

    def _take_counters(self, at: int, pool: KindPool, traits: DeviceTraits) -> bool:
        """Count what a device consumes; False, and nothing counted, when the pool has too little.

        Every counter of the pool is looked at: one that others overdrew stops all.
        """
        consumed = self.used.counters.setdefault(at, {})
        self._count(consumed, traits, 1)
        if all(consumed.get(key, 0) <= left for key, left in pool.counters):
            return True
        self._count(consumed, traits, -1)
        return False

    def _give_counters(self, at: int, traits: DeviceTraits) -> None:
        self._count(self.used.counters[at], traits, -1)

    @staticmethod
    def _count(consumed: dict[tuple[str, str], Fraction], traits: DeviceTraits, sign: int) -> None:
        for use in traits.counters:
            for name, amount in use.counters:
                key = use.counter_set, name
                consumed[key] = consumed.get(key, Fraction(0)) + sign * exact(amount)
