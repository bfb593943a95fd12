"""Devices, shares of devices and pool counters that a search has taken. Called by ``picked``."""

from __future__ import annotations

from fractions import Fraction

from quorate.core.model.devices import DeviceTraits
from quorate.core.model.quantity import exact
from quorate.core.room.devices.looks import SeenDevice, SeenPool
from quorate.core.room.devices.shares import Consumed

Place = tuple[int, int]
"""The position of a device: the index of its pool, and its index in the pool."""


class UseCounts:
    """Devices taken by claims, which are numbered. Each ``give`` undoes one ``take``."""

    def __init__(self) -> None:
        self._claims_of: dict[Place, set[int]] = {}
        self._shares: dict[Place, list[Consumed]] = {}
        self._counters: dict[int, dict[tuple[str, str], Fraction]] = {}

    def holds(self, place: Place, one: SeenDevice, claim: int, *, admin: bool) -> bool:
        """Whether a claim cannot have the device because it is in use.

        With ``admin``, only a second use by the same claim is refused.
        """
        claims = self._claims_of.get(place, ())
        return claim in claims if admin else one.used or bool(claims)

    def is_untouched(self, place: Place) -> bool:
        """Whether no claim of this search has the device or a share of it."""
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
        """Whether taking the device consumes counters: only the first share of a device does."""
        traits = one.look.traits
        is_shared = traits.shareable and (one.shares is not None or place in self._shares)
        return bool(traits.counters) and not is_shared

    def take_counters(self, at: int, pool: SeenPool, traits: DeviceTraits) -> bool:
        """Count what a device consumes; if the pool has too little, count nothing, return False.

        All counters of the pool are checked: one that is overdrawn already forbids any device.
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
