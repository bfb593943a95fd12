"""Choose devices for claims on one kind of node: the first solution in the order of its devices.

Source: kube-scheduler 1.36's structured allocator: claims, requests and devices one after the
other, depth first; pools by driver and name, slices by name, devices as listed. In: claims, and a
kind of node with the looks of its devices. Out: positions of devices. Called by ``outcomes``.

The search has its own stack, counts the devices that it examines, and ends when they are too many.
Of devices with one look it tries one: if that has no solution, the others have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from quorate.core.cluster.devices.requests import SCORE_OF_FIRST, Choice, UnallocatedClaim
from quorate.core.cluster.devices.views import PoolState
from quorate.core.model import Taint, policy
from quorate.core.model.selectors import tolerates
from quorate.core.model.steps import costs
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


class _Option(NamedTuple):
    """A choice of a request: how many devices it takes, and which it may take, in order.

    A position with a broken verdict stops the search that reaches it. ``number`` is 0 where none
    can do. ``all`` says that it takes all of them or none.
    """

    number: int
    devices: list[int]
    all: bool


@dataclass(slots=True)
class _Request:
    """A request; ``choices`` with their numbers in ``Look.verdicts``.

    ``sizes`` are the devices that each choice takes; ``rest_min`` is what the later requests of its
    claim take at least.
    """

    claim: int
    index: int
    is_list: bool
    choices: list[tuple[int, Choice]]
    options: dict[int, _Option] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    rest_min: int = 0


class _State(NamedTuple):
    """What to choose next: device ``got`` (from 0) of a choice of a request.

    ``which`` -1: the choice itself. ``start`` is the first of the choice's devices to try.
    """

    request: int
    which: int = -1
    got: int = 0
    start: int = 0


class DeviceSearch:
    """The search for devices of claims on one kind of node. Call ``run`` once."""

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
        self.examined = 0
        """Devices examined; one that is taken counts several times."""

    def run(self) -> ChosenDevices | Broken | None:
        """Return devices for all claims; None if there are none, ``Broken`` if it is unknown."""
        try:
            self._size_all()
            if self._search():
                return self._chosen()
        except _StoppedError as stopped:
            return Broken(str(stopped))
        if any(pool.state is PoolState.INVALID for pool in self._kind):
            return Broken("invalid resource pools were encountered")
        return None

    def _examine(self, devices: int = 1) -> None:
        self.examined += devices
        if self.examined > policy.DEVICE_LOOKS_MAX:
            raise _StoppedError("the search for devices was cut short: it took too many steps")

    def _search(self) -> bool:
        """Take devices for all requests, depth first. A level is what is open at one state."""
        if not self._requests:
            return True
        levels = [self._level(_State(0))]
        while levels:
            state = next(levels[-1], None)
            if state is None:
                levels.pop()
            elif state.request == len(self._requests):
                return True
            else:
                levels.append(self._level(state))
        return False

    def _level(self, state: _State) -> Iterator[_State]:
        """Yield each state that may follow; what was taken for it is given back afterwards."""
        at, which, got, start = state
        request = self._requests[at]
        if which < 0:
            for one, size in enumerate(request.sizes):
                in_claim = self._in_claim[request.claim] + size + request.rest_min
                if in_claim <= policy.DEVICES_PER_CLAIM_MAX:
                    yield _State(at, one)
            return
        option = self._option(request, which)
        if not option.number:
            return  # "all devices" means at least one
        if got == option.number:
            yield _State(at + 1)
            return
        failed: set[Look] = set()
        for place in range(start, len(option.devices)):
            device = option.devices[place]
            if device in self._taken:
                if place % costs.DEVICES_LISTED_PER_LOOK == 0:
                    self._examine()
                if option.all:
                    return
                continue
            look = self._looks[device]
            self._examine()
            if look in failed or not _matches(look, request.choices[which][0]):
                continue
            self._examine()
            self._taken[device] = at, which
            self._in_claim[request.claim] += 1
            yield _State(at, which, got + 1, place + 1)
            del self._taken[device]
            self._in_claim[request.claim] -= 1
            if option.all:
                return
            failed.add(look)

    # What each choice may take

    def _size_all(self) -> None:
        """Size the choices; no claim may need more devices than it can get."""
        most = policy.DEVICES_PER_CLAIM_MAX
        for _, of_claim in groupby(self._requests, key=lambda request: request.claim):
            requests = list(of_claim)
            for request in requests:
                for which, (_, choice) in enumerate(request.choices):
                    self._examine()
                    if choice.wanted.count is None:
                        self._list_all(request, which)
                        request.sizes.append(len(request.options[which].devices))
                    else:
                        request.sizes.append(choice.wanted.count)
            at_least = 0
            for request in reversed(requests):
                request.rest_min = at_least
                at_least += min(request.sizes, default=0)
            if at_least > most:
                raise _StoppedError(
                    f"number of requested devices {at_least} exceeds the claim limit of {most}"
                )

    def _list_all(self, request: _Request, which: int) -> None:
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
