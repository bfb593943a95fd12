"""Choose devices for claims on one kind of node: the first solution in the order of its devices.

Source: kube-scheduler 1.36's structured allocator: claims, requests and devices one after the
other, depth first; pools by driver and name, slices by name, devices as listed. In: claims, and a
kind of node with the looks of its devices. Out: positions of devices. Called by ``outcomes``.

The search has its own stack, counts the devices that it examines, and can be interrupted. Of
devices with one look it tries one: if that has no solution, the others have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from quorate.core.cluster.devices.requests import SCORE_OF_FIRST, Choice, UnallocatedClaim
from quorate.core.cluster.devices.views import PoolState
from quorate.core.model import Taint, policy
from quorate.core.model.selectors import tolerates
from quorate.core.model.steps import Steps, costs
from quorate.core.room.devices.cel.programs import Broken


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Look:
    """What claims see of a device: whether it matches each of their choices, and its taints.

    Choices are numbered through all claims. Equal looks are one object.
    """

    verdicts: tuple[bool | Broken, ...]
    taints: tuple[Taint, ...]


class SeenPool(NamedTuple):
    """A pool of a kind of node, as ``cluster.devices.views.PoolKind``, with looks for traits."""

    state: PoolState
    label: str
    looks: tuple[Look, ...]
    used: tuple[bool, ...]


SeenKind = tuple[SeenPool, ...]


class Pick(NamedTuple):
    """A chosen device, by its position in the kind of node, with its request and choice."""

    pool: int
    device: int
    request: int
    choice: int


class ChosenDevices(NamedTuple):
    """The devices of each claim, and the score of the alternatives chosen from lists."""

    claims: tuple[tuple[Pick, ...], ...]
    score: int


class _StoppedError(Exception):
    """The search must stop: an expression is broken, or the search takes too long."""


class _Outcome(Enum):
    OPEN = 0
    DONE = 1
    NOT = 2
    TOO_MANY = 3
    """A claim would have more devices than allowed; another alternative may need fewer."""


@dataclass(frozen=True, slots=True)
class _Option:
    """A choice of a request: how many devices it takes, and which it may take, in order.

    A position with a broken verdict stops the search that reaches it. ``count`` is 0 where none
    can do. ``all`` says that it takes all of them or none.
    """

    count: int
    devices: list[int]
    all: bool


@dataclass(slots=True)
class _Request:
    """A request; ``choices`` with their numbers in ``Look.verdicts``."""

    claim: int
    index: int
    is_list: bool
    choices: list[tuple[int, Choice]]
    options: dict[int, _Option] = field(default_factory=dict)


@dataclass(slots=True)
class _Level:
    """A device to choose, number ``got`` (from 0) of an option; None: the alternative of a list."""

    request: int
    which: int
    got: int | None = None
    next: int = 0
    """The place in the option's devices to try next."""
    taken: int = -1
    failed: set[Look] = field(default_factory=set)
    only_too_many: bool = True


class DeviceSearch:
    """The search for devices of claims on one kind of node. Call ``run`` until it returns."""

    def __init__(self, claims: tuple[UnallocatedClaim, ...], kind: SeenKind) -> None:
        self._claims = claims
        self._kind = kind
        self._requests = _requests(claims)
        good = [at for at, pool in enumerate(kind) if pool.state is PoolState.GOOD]
        self._places = [(at, device) for at in good for device in range(len(kind[at].looks))]
        self._looks = [look for at in good for look in kind[at].looks]
        self._used = [used for at in good for used in kind[at].used]
        self._taken: dict[int, tuple[int, int]] = {}
        """By device, the request and choice that has it, in the order in which they were taken."""
        self._in_claim = [0] * len(claims)
        self._stack: list[_Level] = []
        self._claim = 0
        """The claim that the last outcome is about."""
        self.examined = 0
        """Devices examined; one that is taken counts several times."""
        self._counted = 0
        """The part of them for which steps were already taken."""
        self._work = self._run()

    def run(self, steps: Steps | None = None) -> ChosenDevices | Broken | None:
        """Return devices for all claims; None if there are none, ``Broken`` if it is unknown.

        Raises ``OutOfStepsError``: call again to continue. Do not call it after it has returned.
        """
        try:
            while True:
                if steps is not None:
                    steps.expect()
                next(self._work)
                self._count(steps)
        except StopIteration:
            pass
        except _StoppedError as stopped:
            return Broken(str(stopped))
        finally:
            self._count(steps)
        if self._taken or not self._requests:
            return self._chosen()
        if any(pool.state is PoolState.INVALID for pool in self._kind):
            return Broken("invalid resource pools were encountered")
        return None

    def _count(self, steps: Steps | None) -> None:
        if steps is not None:
            steps.take(1 + (self.examined - self._counted) // costs.DEVICE_LOOKS_PER_STEP)
        self._counted = self.examined

    def _examine(self, devices: int = 1) -> None:
        self.examined += devices
        if self.examined > policy.DEVICE_LOOKS_MAX:
            raise _StoppedError("the search for devices was cut short: it took too many steps")

    @property
    def _pauses(self) -> bool:
        return self.examined >= self._counted + policy.DEVICE_LOOKS_AT_ONCE_MAX

    def _run(self) -> Iterator[None]:
        """Search; a pause after a bounded number of devices. What was found is in ``_taken``."""
        yield from self._size_all()
        outcome = self._open(0, None, 0)
        while outcome is not _Outcome.DONE and (outcome is _Outcome.OPEN or self._stack):
            if self._pauses:
                yield
            level = self._stack[-1]
            claim = self._requests[level.request].claim
            if outcome is _Outcome.TOO_MANY and claim < self._claim:
                outcome = _Outcome.NOT  # the limit is per claim
            if level.got is None:
                outcome = self._next_choice(level, outcome)
            elif outcome is _Outcome.OPEN:
                outcome = self._next_device(level)
            else:
                outcome = self._give_back(level, outcome)

    # What each choice may take

    def _size_all(self) -> Iterator[None]:
        """List the devices of requests for all; no claim may need more than it can get."""
        most = policy.DEVICES_PER_CLAIM_MAX
        for _, requests in groupby(self._requests, key=lambda request: request.claim):
            at_least = 0
            for request in requests:
                counts = []
                for which, (_, choice) in enumerate(request.choices):
                    self._examine()
                    if choice.wanted.count is None:
                        yield from self._list_all(request, which)
                        counts.append(len(request.options[which].devices))
                    else:
                        counts.append(choice.wanted.count)
                at_least += min(counts, default=0)
            if at_least > most:
                raise _StoppedError(
                    f"number of requested devices {at_least} exceeds the claim limit of {most}"
                )

    def _list_all(self, request: _Request, which: int) -> Iterator[None]:
        """Find all devices that match a choice; one that is in use or tainted rules it out."""
        number, choice = request.choices[which]
        matching, is_free = [], True
        device = 0
        for pool in self._kind:
            if pool.state is not PoolState.GOOD:
                words = "being updated" if pool.state is PoolState.INCOMPLETE else "invalid"
                raise _StoppedError(
                    f"request {choice.name}: asks for all devices, but resource pool "
                    f"{pool.label} is currently {words}"
                )
            for look, used in zip(pool.looks, pool.used, strict=True):
                self._examine()
                if self._pauses:
                    yield
                if _matches(look, number):
                    matching.append(device)
                    is_free &= not used and _is_tolerated(look, choice)
                device += 1
        request.options[which] = _Option(len(matching) if is_free else 0, matching, all=True)

    def _option(self, request: _Request, which: int) -> _Option:
        known = request.options.get(which)
        if known is None:
            number, choice = request.choices[which]
            devices = [
                device
                for device, look in enumerate(self._looks)
                if not self._used[device]
                and look.verdicts[number] is not False
                and (isinstance(look.verdicts[number], Broken) or _is_tolerated(look, choice))
            ]
            self._examine(1 + len(self._looks) // costs.DEVICES_LISTED_PER_LOOK)
            count = choice.wanted.count or 0
            known = request.options[which] = _Option(count, devices, all=False)
        return known

    # The search

    def _open(self, at: int, which: int | None, got: int) -> _Outcome:
        """Push the next device to choose; or say that all are chosen, or that there is no way.

        ``got`` devices of the current choice are chosen; ``which`` None: the request's alternative
        is not chosen yet.
        """
        while True:
            if at >= len(self._requests):
                return _Outcome.DONE
            request = self._requests[at]
            self._claim = request.claim
            if not request.choices:
                return _Outcome.NOT
            if which is None and request.is_list:
                self._stack.append(_Level(at, 0))
            which = which or 0
            option = self._option(request, which)
            size = len(option.devices) if option.all else option.count
            if size and got >= size:
                at, which, got = at + 1, None, 0
                continue
            if self._in_claim[request.claim] + size - got > policy.DEVICES_PER_CLAIM_MAX:
                return _Outcome.TOO_MANY
            if not option.count:
                return _Outcome.NOT  # "all devices" means at least one
            level = _Level(at, which, got)
            if got:
                level.next = self._stack[-1].next
            self._stack.append(level)
            return _Outcome.OPEN

    def _next_choice(self, level: _Level, outcome: _Outcome) -> _Outcome:
        """Try the next alternative of a list; after the last one, return the list's outcome."""
        level.only_too_many &= outcome is _Outcome.TOO_MANY
        level.which += 1
        request = self._requests[level.request]
        if level.which < len(request.choices):
            return self._open(level.request, level.which, 0)
        self._stack.pop()
        self._claim = request.claim
        return _Outcome.TOO_MANY if level.only_too_many else _Outcome.NOT

    def _next_device(self, level: _Level) -> _Outcome:
        """Take the next device that may be; ``OPEN`` also where a pause is due before one."""
        request = self._requests[level.request]
        number, option = request.choices[level.which][0], request.options[level.which]
        while level.next < len(option.devices):
            device = option.devices[level.next]
            look = self._looks[device]
            self._examine()
            level.next += 1
            if device in self._taken:
                if option.all:
                    break
            elif look not in level.failed and _matches(look, number):
                self._examine()
                self._taken[device] = level.request, level.which
                self._in_claim[request.claim] += 1
                level.taken = device
                return self._open(level.request, level.which, (level.got or 0) + 1)
            if self._pauses:
                return _Outcome.OPEN
        self._stack.pop()
        self._claim = request.claim
        return _Outcome.NOT

    def _give_back(self, level: _Level, outcome: _Outcome) -> _Outcome:
        """Give back a device without a solution; ``OPEN`` if another one is worth a try."""
        request = self._requests[level.request]
        del self._taken[level.taken]
        self._in_claim[request.claim] -= 1
        if outcome is _Outcome.NOT and not request.options[level.which].all:
            level.failed.add(self._looks[level.taken])
            return _Outcome.OPEN
        self._stack.pop()
        self._claim = request.claim
        return outcome

    def _chosen(self) -> ChosenDevices:
        picks: list[list[Pick]] = [[] for _ in self._claims]
        lists: dict[int, int] = {}
        for device, (at, which) in self._taken.items():
            request = self._requests[at]
            picks[request.claim].append(Pick(*self._places[device], request.index, which))
            if request.is_list:
                lists[at] = which
        score = sum(SCORE_OF_FIRST - which for which in lists.values())
        return ChosenDevices(tuple(map(tuple, picks)), score)


def _requests(claims: tuple[UnallocatedClaim, ...]) -> list[_Request]:
    number, requests = 0, []
    for claim, of_claim in enumerate(claims):
        for index, request in enumerate(of_claim.requests):
            choices = list(enumerate(request.choices, start=number))
            number += len(choices)
            requests.append(_Request(claim, index, request.is_list, choices))
    return requests


def _matches(look: Look, number: int) -> bool:
    """Whether a device matches a choice. Raises ``_StoppedError`` if its verdict is broken."""
    verdict = look.verdicts[number]
    if isinstance(verdict, Broken):
        raise _StoppedError(str(verdict))
    return verdict


def _is_tolerated(look: Look, choice: Choice) -> bool:
    """Whether a choice tolerates all taints of a device that keep claims away."""
    return all(
        taint.effect not in ("NoSchedule", "NoExecute")
        or tolerates(choice.wanted.tolerations, taint)
        for taint in look.taints
    )


def free_for_one_request(claims: tuple[UnallocatedClaim, ...], kind: SeenKind) -> int:
    """Return how many pods get devices that ask for a number of one class; -1: it takes a search.

    That is so for all other claims, where a device's verdict is broken, and where a search that
    looks at each device may be cut short.
    """
    requests = _requests(claims)
    if len(requests) != 1 or requests[0].is_list:
        return -1
    choice = requests[0].choices[0][1]
    count, free = choice.wanted.count, 0
    if count is None or count > policy.DEVICES_PER_CLAIM_MAX:
        return -1
    if 2 + 3 * sum(len(pool.looks) for pool in kind) > policy.DEVICE_LOOKS_MAX:
        return -1
    for pool in kind:
        for look, used in zip(pool.looks, pool.used, strict=True):
            verdict = look.verdicts[0]
            if isinstance(verdict, Broken):
                return -1
            free += not used and verdict and _is_tolerated(look, choice)
    return free // count
