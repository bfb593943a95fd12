"""Choose devices for claims on one kind of node: the first solution in the order of its devices.

Source: kube-scheduler 1.36's structured allocator ("incubating"): claims, requests and devices one
after the other, depth first; pools by driver and name, slices by name, devices as listed. In: a
kind of node and claims. Out: positions of devices. Called by ``allocations``.

The search has its own stack, counts the devices that it examines, and can be interrupted. Of
devices that claims cannot distinguish it tries one: if that has no solution, the others have none.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from quorate.core.cluster.devices.pools import PoolState
from quorate.core.cluster.devices.requests import SCORE_OF_FIRST, Choice, UnallocatedClaim
from quorate.core.model import policy
from quorate.core.model.steps import Steps, costs
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.looks import ChoiceKey, SeenDevice, SeenKind
from quorate.core.room.devices.picked import (
    LookCount,
    Pick,
    PickedDevices,
    SizedChoice,
    StoppedError,
)
from quorate.core.room.devices.use_counts import Place


class ChosenDevices(NamedTuple):
    """The devices of each claim, and the score of the alternatives chosen from lists."""

    claims: tuple[tuple[Pick, ...], ...]
    score: int


class _Outcome(Enum):
    DONE = 1
    NOT = 2
    TOO_MANY = 3
    """A claim would have more devices than allowed; another alternative may need fewer."""


@dataclass(slots=True)
class _Level:
    """A device to choose: device number ``got`` (from 0) of a choice."""

    key: ChoiceKey
    wanted: SizedChoice
    got: int
    next: Place
    """The next device to try."""
    taken: Place | None = None
    failed: set[tuple[int, SeenDevice]] = field(default_factory=set)
    """Devices without a solution, with their pools: equal devices have none either."""


@dataclass(slots=True)
class _List:
    """A list of alternatives; ``key`` is the one that is being tried."""

    key: ChoiceKey
    only_too_many: bool = True


class DeviceSearch:
    """The search for devices of claims on one kind of node. Call ``run`` until it returns."""

    def __init__(
        self, claims: tuple[UnallocatedClaim, ...], kind: SeenKind, numbers: dict[ChoiceKey, int]
    ) -> None:
        """Prepare the search; ``numbers`` are indices of choices in ``DeviceLook.verdicts``."""
        self._claims = claims
        self._kind = kind
        self._numbers = numbers
        self._skips_alike = not any(map(_depends_on_order, claims))
        self._wanted: dict[ChoiceKey, SizedChoice] = {}
        self._looks = LookCount()
        self._picked = PickedDevices(claims, kind, self._looks)
        self._stack: list[_Level | _List] = []
        self._claim = 0
        """The claim that the last outcome is about."""
        self._counted = 0
        """The part of the tally for which steps were already taken."""
        self._work = self._run()

    def run(self, steps: Steps | None = None) -> ChosenDevices | Broken | None:
        """Return devices for all claims; None if there are none, ``Broken`` if it is unknown.

        Raises ``OutOfStepsError``: call again to continue. Do not call it after it has returned.
        """
        while True:
            if steps is not None:
                steps.expect()
            try:
                next(self._work)
            except StopIteration as over:
                answer: ChosenDevices | Broken | None = over.value
                return answer
            except StoppedError as stopped:
                return Broken(str(stopped))
            finally:
                self._count(steps)

    def _count(self, steps: Steps | None) -> None:
        if steps is not None:
            steps.take(1 + (self._looks.looks - self._counted) // costs.DEVICE_LOOKS_PER_STEP)
        self._counted = self._looks.looks

    def _run(self) -> Generator[None, None, ChosenDevices | Broken | None]:
        """Search, and yield after a bounded number of devices. Returns the answer."""
        yield from self._size_all()
        outcome = self._descend(0, 0, None, 0, (0, 0))
        while outcome is not _Outcome.DONE and (outcome is None or self._stack):
            if self._looks.looks >= self._counted + policy.DEVICE_LOOKS_AT_ONCE_MAX:
                yield
            top = self._stack[-1]
            if outcome is None:
                assert isinstance(top, _Level), "a list is left with an outcome"
                outcome = self._try_next(top)
                continue
            if outcome is _Outcome.TOO_MANY and top.key[0] < self._claim:
                outcome = _Outcome.NOT  # the limit is per claim
            if isinstance(top, _List):
                outcome = self._next_choice(top, outcome)
            else:
                outcome = self._after_failure(top, outcome)
        if outcome is _Outcome.DONE:
            return ChosenDevices(tuple(tuple(picks) for picks in self._picked.picks), self._score())
        if any(pool.state is PoolState.INVALID for pool in self._kind):
            return Broken("invalid resource pools were encountered")
        return None

    def _score(self) -> int:
        lists = {
            (number, pick.request, pick.choice)
            for number, picks in enumerate(self._picked.picks)
            for pick in picks
            if self._claims[number].requests[pick.request].is_list
        }
        return sum(SCORE_OF_FIRST - choice for _, _, choice in lists)

    # How many devices each choice takes

    def _size_all(self) -> Iterator[None]:
        most = policy.DEVICES_PER_CLAIM_MAX
        for number, claim in enumerate(self._claims):
            at_least = 0
            for index, request in enumerate(claim.requests):
                counts = []
                for which, choice in enumerate(request.choices):
                    key = number, index, which
                    everything: list[Place] | None = None
                    if choice.wanted.count is None:
                        everything = []
                        yield from self._all_devices(key, choice, everything)
                    count = len(everything) if everything is not None else choice.wanted.count or 0
                    self._wanted[key] = SizedChoice(choice, self._numbers[key], count, everything)
                    counts.append(count)
                    self._looks.note()
                at_least += min(counts, default=0)
            if at_least > most:
                raise StoppedError(
                    f"number of requested devices {at_least} exceeds the claim limit of {most}"
                )

    def _all_devices(self, key: ChoiceKey, choice: Choice, found: list[Place]) -> Iterator[None]:
        """Find the devices that match a choice."""
        for at, pool in enumerate(self._kind):
            if pool.state is not PoolState.GOOD:
                words = "being updated" if pool.state is PoolState.INCOMPLETE else "invalid"
                raise StoppedError(
                    f"request {choice.wanted.name}: asks for all devices, but resource pool "
                    f"{pool.label} is currently {words}"
                )
            for device, one in enumerate(pool.devices):
                self._looks.note()
                if self._looks.looks >= self._counted + policy.DEVICE_LOOKS_AT_ONCE_MAX:
                    yield
                if self._picked.may_have(key, choice, self._numbers[key], (at, device), one):
                    found.append((at, device))

    # The search

    def _descend(
        self, number: int, index: int, which: int | None, got: int, start: Place
    ) -> _Outcome | None:
        """Push the next device to choose, and return None; or return an outcome if there is none.

        ``got`` devices of the current choice are chosen; ``which`` None: the request's alternative
        is not chosen yet. Devices before ``start`` were tried.
        """
        while True:
            self._claim = number
            if number >= len(self._claims):
                return _Outcome.DONE
            requests = self._claims[number].requests
            if index >= len(requests):
                number, index, which, got, start = number + 1, 0, None, 0, (0, 0)
                continue
            key = number, index, which or 0
            if not requests[index].choices:
                return _Outcome.NOT
            if which is None and requests[index].is_list:
                self._stack.append(_List(key))
            which = key[2]
            wanted = self._wanted[key]
            if wanted.everything == []:
                return _Outcome.NOT  # "all devices" means at least one
            if got >= wanted.count:
                index, which, got, start = index + 1, None, 0, (0, 0)
                continue
            if len(self._picked.picks[number]) + wanted.count - got > policy.DEVICES_PER_CLAIM_MAX:
                return _Outcome.TOO_MANY
            if wanted.everything is not None:
                start = wanted.everything[got]
            self._stack.append(_Level(key, wanted, got, start))
            return None

    def _next_choice(self, level: _List, outcome: _Outcome) -> _Outcome | None:
        """Try the next alternative of a list; after the last one, return the list's outcome."""
        number, index, which = level.key
        level.only_too_many &= outcome is _Outcome.TOO_MANY
        if which + 1 < len(self._claims[number].requests[index].choices):
            level.key = number, index, which + 1
            return self._descend(number, index, which + 1, 0, (0, 0))
        self._stack.pop()
        self._claim = number
        return _Outcome.TOO_MANY if level.only_too_many else _Outcome.NOT

    def _after_failure(self, level: _Level, outcome: _Outcome) -> _Outcome | None:
        """Give back a device without a solution; return None if another one is worth a try."""
        place = level.taken
        assert place is not None, "a level is left with its device"
        one = self._kind[place[0]].devices[place[1]]
        self._picked.give_back()
        level.taken = None
        if outcome is _Outcome.NOT and level.wanted.everything is None:
            if self._skips_alike and self._picked.counts.is_untouched(place):
                level.failed.add((place[0], one))
            return None
        self._stack.pop()
        self._claim = level.key[0]
        return outcome

    def _try_next(self, level: _Level) -> _Outcome | None:
        """Take the next device that is allowed and descend; None: the search is still open.

        Returns ``NOT`` if no device is left.
        """
        number, index, which = level.key
        wanted = level.wanted
        at, device = level.next
        while at < len(self._kind):
            pool = self._kind[at]
            if pool.state is not PoolState.GOOD or device >= len(pool.devices):
                at, device = at + 1, 0
                continue
            self._looks.note()
            one, place = pool.devices[device], (at, device)
            level.next = at, device + 1
            leads_nowhere = level.failed and (at, one) in level.failed
            if leads_nowhere and self._picked.counts.is_untouched(place):
                device += 1
                continue
            if self._picked.take(level.key, wanted, place, one):
                level.taken = place
                return self._descend(number, index, which, level.got + 1, level.next)
            if wanted.everything is not None:
                break
            device += 1
            if self._looks.looks >= self._counted + policy.DEVICE_LOOKS_AT_ONCE_MAX:
                return None
        self._stack.pop()
        self._claim = number
        return _Outcome.NOT


def _depends_on_order(claim: UnallocatedClaim) -> bool:
    """Whether a claim's outcome may depend on which of two equal devices is tried first.

    It may where values have to differ, and where a constraint refuses one of "all devices": that is
    an error, and it depends on the devices taken before.
    """
    choices = (choice for request in claim.requests for choice in request.choices)
    has_all = bool(claim.constraints) and any(one.wanted.count is None for one in choices)
    return has_all or any(one.distinct for one in claim.constraints)
