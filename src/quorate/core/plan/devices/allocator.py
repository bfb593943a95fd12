"""Choose devices for claims on one kind of node: the first solution in the order of its devices.

Source: kube-scheduler 1.36's structured allocator ("incubating"): claims, requests and devices one
after the other, depth first; pools by driver and name, slices by name, devices as listed. In: a
kind of node and what is asked. Out: positions of devices. Calls nothing but rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from quorate.core.model.devices import DeviceTraits
from quorate.core.model.taints import tolerates
from quorate.core.plan.devices.constraints import Constraint
from quorate.core.plan.devices.expressions import Broken, Expressions
from quorate.core.plan.devices.shares import Consumed, consumption, fits
from quorate.core.plan.devices.used import Place, Used
from quorate.core.state.device_asks import SCORE_OF_FIRST, Choice, ClaimAsk, Request
from quorate.core.state.pools import Kind, KindDevice, PoolState

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
    except _StoppedError as stopped:
        return Broken(str(stopped))


class _StoppedError(Exception):
    """The search cannot go on: an expression is broken, or it takes too long."""


class _Outcome(Enum):
    DONE = 1
    NOT = 2
    TOO_MANY = 3
    """There would be more devices than a claim may have: other choices may need fewer."""


@dataclass(slots=True)
class _Wanted:
    """A choice, how many devices it takes, and which they are if it takes all."""

    choice: Choice
    count: int
    everything: list[Place] | None


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
        self.used = Used()
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
                raise _StoppedError(
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
                raise _StoppedError(
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
        self, number: int, index: int, which: int | None, got: int, start: Place
    ) -> _Outcome:
        """Choose the device number ``got`` of a request's choice, and everything after it.

        ``which`` None means that a choice has to be made; devices before ``start`` were tried.
        """
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise _StoppedError("the search for devices was cut short: it took too many steps")
        if number >= len(self.claims):
            return _Outcome.DONE
        requests = self.claims[number].requests
        if index >= len(requests):
            after = self._place(number + 1, 0, None, 0, (0, 0))
            return _Outcome.NOT if after is _Outcome.TOO_MANY else after
        if which is None and requests[index].is_list:
            return self._first_of_list(number, index, requests[index])
        key = number, index, which or 0
        wanted = self.wanted[key]
        if wanted.everything == []:
            return _Outcome.NOT  # all devices are at least one
        if got >= wanted.count:
            return self._place(number, index + 1, None, 0, (0, 0))
        if len(self.picks[number]) + wanted.count - got > RESULTS_MAX:
            return _Outcome.TOO_MANY
        if wanted.everything is not None:
            return self._with_device(key, wanted, got, wanted.everything[got], must=True)
        return self._with_any_device(key, wanted, got, start)

    def _with_any_device(
        self, key: tuple[int, int, int], wanted: _Wanted, got: int, start: Place
    ) -> _Outcome:
        admin = bool(wanted.choice.wanted.admin)
        for place in self._places(start):
            one = self.kind[place[0]].devices[place[1]]
            if self.used.holds(place, one, key[0], admin=admin):
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

    def _places(self, start: Place) -> list[Place]:
        """Return the places from ``start`` on, in pools that may be used."""
        return [
            (at, device)
            for at in range(start[0], len(self.kind))
            if self.kind[at].state is PoolState.GOOD
            for device in range(start[1] if at == start[0] else 0, len(self.kind[at].devices))
        ]

    def _is_selectable(self, key: tuple[int, int, int], place: Place, choice: Choice) -> bool:
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
                raise _StoppedError(f"{owner}: selector #{index}: {answer}")
            if not answer:
                return False
        return True

    def _share(self, place: Place, one: KindDevice, choice: Choice) -> Consumed | None:
        """Return what the choice takes of the device's capacity; None when that is too much."""
        traits = self.traits[one.traits]
        taken = consumption(traits, choice.wanted.capacity)
        if taken is None:
            return None
        used = dict(one.shares or ()), *self.used.shares(place)
        return taken if fits(traits, taken, *used) else None

    def _with_device(
        self, key: tuple[int, int, int], wanted: _Wanted, got: int, place: Place, *, must: bool
    ) -> _Outcome:
        """Take one device and go on; give it back when that leads nowhere."""
        number, index, which = key
        one = self.kind[place[0]].devices[place[1]]
        traits = self.traits[one.traits]
        if self.used.holds(place, one, number, admin=bool(wanted.choice.wanted.admin)):
            return _Outcome.NOT
        consumed = self._share(place, one, wanted.choice)
        if consumed is None:
            return _Outcome.NOT
        consumes = self.used.consumes(place, one, traits)
        if consumes and not self.used.take_counters(place[0], self.kind[place[0]], traits):
            return _Outcome.NOT
        outcome = _Outcome.NOT
        if self._admitted(key, wanted, traits, must=must):
            self.used.take(place, number, traits, consumed)
            shared = consumed if traits.shareable else ()
            self.picks[number].append(Pick(*place, index, which, shared))
            outcome = self._place(number, index, which, got + 1, (place[0], place[1] + 1))
            if outcome is _Outcome.DONE:
                return outcome
            self.picks[number].pop()
            self.used.give(place, number, traits)
            for constraint in self.constraints[number]:
                constraint.remove(*self._names(key, wanted))
        if consumes:
            self.used.give_counters(place[0], traits)
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
                    raise _StoppedError(
                        f"request {wanted.choice.wanted.name}: cannot add a device because a "
                        "claim constraint would not be satisfied"
                    )
                return False
        return True
