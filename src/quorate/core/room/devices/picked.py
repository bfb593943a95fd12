"""The devices that a search has taken so far, and whether it may take one more.

Called by ``allocator``, which chooses; the rules are here. Devices are given back in reverse order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from quorate.core.cluster.devices.requests import Choice, UnallocatedClaim
from quorate.core.model import policy
from quorate.core.model.selectors import tolerates
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.constraints import Constraint
from quorate.core.room.devices.looks import ChoiceKey, DeviceLook, SeenDevice, SeenKind
from quorate.core.room.devices.shares import Consumed, consumption, fits
from quorate.core.room.devices.use_counts import Place, UseCounts


class Pick(NamedTuple):
    """A chosen device, by its position in the kind of node, with its request and choice."""

    pool: int
    device: int
    request: int
    choice: int
    consumed: Consumed


class StoppedError(Exception):
    """The search must stop: an expression is broken, or the search takes too long."""


class LookCount:
    """The number of devices that a search examined; a device that is taken counts several times."""

    __slots__ = ("looks",)

    def __init__(self) -> None:
        self.looks = 0

    def note(self, looks: int = 1) -> None:
        """Count examined devices. Raises ``StoppedError`` above the bound."""
        self.looks += looks
        if self.looks > policy.DEVICE_LOOKS_MAX:
            raise StoppedError("the search for devices was cut short: it took too many steps")


@dataclass(slots=True)
class SizedChoice:
    """A choice, the number of devices it takes, and their places if it takes all that match.

    ``number`` is the choice's index in ``DeviceLook.verdicts``.
    """

    choice: Choice
    number: int
    count: int
    everything: list[Place] | None


class _PickedDevice(NamedTuple):
    """A taken device; ``counted``: whether it consumes counters of its pool."""

    key: ChoiceKey
    names: tuple[str, str]
    place: Place
    counted: bool


class PickedDevices:
    """Devices taken by claims; ``picks`` has the devices of each claim, in order."""

    def __init__(
        self, claims: tuple[UnallocatedClaim, ...], kind: SeenKind, looks_taken: LookCount
    ) -> None:
        self.picks: list[list[Pick]] = [[] for _ in claims]
        self.counts = UseCounts()
        self._claims = claims
        self._kind = kind
        self._looks = looks_taken
        self._constraints = [[Constraint(one) for one in claim.constraints] for claim in claims]
        self._consumed: dict[tuple[ChoiceKey, DeviceLook], Consumed | None] = {}
        """What a choice consumes of an unused device; None: forbidden, or too little capacity."""
        self._stack: list[_PickedDevice] = []

    def take(self, key: ChoiceKey, wanted: SizedChoice, place: Place, one: SeenDevice) -> bool:
        """Take a device for a choice; False if a rule forbids it. Raises ``StoppedError``."""
        number, counts, traits = key[0], self.counts, one.look.traits
        if counts.holds(place, one, number, admin=bool(wanted.choice.wanted.admin)):
            return False
        if wanted.everything is None and not _is_selectable(one, wanted.number):
            return False
        consumed = self._share(key, wanted.choice, place, one)
        if consumed is None:
            return False
        pool = self._kind[place[0]]
        self._looks.note(1 + len(self._constraints[number]) // 4 + 2 * len(pool.counters))
        counted = counts.consumes(place, one)
        if counted and not counts.take_counters(place[0], pool, traits):
            return False
        request = self._claims[number].requests[key[1]]
        names = request.name, wanted.choice.label(request)
        if not self._admitted(key, names, wanted, one.look):
            if counted:
                counts.give_counters(place[0], traits)
            return False
        counts.take(place, number, traits, consumed)
        shared = consumed if traits.shareable else ()
        self.picks[number].append(Pick(*place, key[1], key[2], shared))
        self._stack.append(_PickedDevice(key, names, place, counted))
        return True

    def give_back(self) -> None:
        """Undo the last ``take``."""
        key, names, place, counted = self._stack.pop()
        number = key[0]
        traits = self._kind[place[0]].devices[place[1]].look.traits
        self.picks[number].pop()
        self.counts.give(place, number, traits)
        for constraint in self._constraints[number]:
            constraint.remove(*names)
        if counted:
            self.counts.give_counters(place[0], traits)

    def may_have(
        self, key: ChoiceKey, choice: Choice, number: int, place: Place, one: SeenDevice
    ) -> bool:
        """Whether a choice of all devices includes this one; ``number`` as in ``SizedChoice``."""
        return _is_selectable(one, number) and self._share(key, choice, place, one) is not None

    def _share(
        self, key: ChoiceKey, choice: Choice, place: Place, one: SeenDevice
    ) -> Consumed | None:
        """Return what the choice consumes of the device's capacity; None if that is too much."""
        traits = one.look.traits
        if (key, one.look) not in self._consumed:
            self._looks.note(1 + len(traits.capacity))
            alone = consumption(traits, choice.wanted.capacity)
            if alone is not None and not fits(traits, alone):
                alone = None
            self._consumed[key, one.look] = alone
        taken = self._consumed[key, one.look]
        if taken is None or not (traits.shareable or one.shares):
            return taken
        shares = self.counts.shares(place)
        self._looks.note(4 * (1 + len(shares)) * len(traits.capacity))
        return taken if fits(traits, taken, dict(one.shares or ()), *shares) else None

    def _admitted(
        self, key: ChoiceKey, names: tuple[str, str], wanted: SizedChoice, look: DeviceLook
    ) -> bool:
        """Whether taints are tolerated and all constraints hold; if so, constraints count it."""
        tolerations = wanted.choice.wanted.tolerations
        for taint in look.traits.taints:
            blocks = taint.effect in ("NoSchedule", "NoExecute")
            if blocks and not tolerates(tolerations, taint):
                return False
        constraints = self._constraints[key[0]]
        for index, constraint in enumerate(constraints):
            if not constraint.add(*names, look.values):
                for counted in constraints[:index]:
                    counted.remove(*names)
                if wanted.everything is not None:
                    raise StoppedError(
                        f"request {wanted.choice.wanted.name}: cannot add a device because a "
                        "claim constraint would not be satisfied"
                    )
                return False
        return True


def _is_selectable(one: SeenDevice, number: int) -> bool:
    """Whether a device matches a choice's selectors and this node. Raises ``StoppedError``."""
    verdict = one.look.verdicts[number]
    if isinstance(verdict, Broken):
        raise StoppedError(str(verdict))
    return verdict and one.here
