"""What a search for devices has taken so far: devices, shares of them, and counters of pools."""

from __future__ import annotations

from fractions import Fraction

from quorate.core.model.devices import DeviceTraits
from quorate.core.model.quantity import exact
from quorate.core.room.devices.looks import SeenDevice, SeenPool
from quorate.core.room.devices.shares import Consumed

Place = tuple[int, int]
"""Where a device is: its pool, and its place in it."""


class Used:
    """Devices taken by claims, by number of the claim. ``take`` and ``give`` come in pairs."""

    def __init__(self) -> None:
        self._claims_of: dict[Place, set[int]] = {}
        self._shares: dict[Place, list[Consumed]] = {}
        self._counters: dict[int, dict[tuple[str, str], Fraction]] = {}

    def holds(self, place: Place, one: SeenDevice, claim: int, *, admin: bool) -> bool:
        """Whether a claim cannot have the device because it is in use.

        With ``admin`` only the claim itself must not have it already.
        """
        claims = self._claims_of.get(place, ())
        return claim in claims if admin else one.used or bool(claims)

    def is_untouched(self, place: Place) -> bool:
        """Whether no claim of this search has the device, nor a share of it."""
        return not (self._claims_of.get(place) or place in self._shares)

    def shares(self, place: Place) -> list[dict[str, Fraction]]:
        """Return what each share of the device taken here consumes."""
        return [dict(consumed) for consumed in self._shares.get(place, ())]

    def take(self, place: Place, claim: int, traits: DeviceTraits, consumed: Consumed) -> None:
        """Count the device as taken, or a share of it."""
        if traits.shareable:
            self._shares.setdefault(place, []).append(consumed)
        else:
            self._claims_of.setdefault(place, set()).add(claim)

    def give(self, place: Place, claim: int, traits: DeviceTraits) -> None:
        """Undo the last ``take`` of the device."""
        if not traits.shareable:
            self._claims_of[place].discard(claim)
            return
        shares = self._shares[place]
        shares.pop()
        if not shares:
            del self._shares[place]

    def consumes(self, place: Place, one: SeenDevice) -> bool:
        """Whether taking the device takes counters: a further share of one takes none."""
        traits = one.look.traits
        is_shared = traits.shareable and (one.shares is not None or place in self._shares)
        return bool(traits.counters) and not is_shared

    def take_counters(self, at: int, pool: SeenPool, traits: DeviceTraits) -> bool:
        """Count what a device consumes; False, and nothing counted, when the pool has too little.

        Every counter of the pool is looked at: one that others overdrew stops all.
        """
        consumed = self._counters.setdefault(at, {})
        _count(consumed, traits, 1)
        if all(consumed.get(key, 0) <= left for key, left in pool.counters):
            return True
        _count(consumed, traits, -1)
        return False

    def give_counters(self, at: int, traits: DeviceTraits) -> None:
        """Undo ``take_counters``."""
        _count(self._counters[at], traits, -1)


def _count(consumed: dict[tuple[str, str], Fraction], traits: DeviceTraits, sign: int) -> None:
    for use in traits.counters:
        for name, amount in use.counters:
            key = use.counter_set, name
            consumed[key] = consumed.get(key, Fraction(0)) + sign * exact(amount)
