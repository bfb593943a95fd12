"""Devices that several claims share: how much capacity a request consumes, and what is left of it.

Source: the consumable capacity of kube-scheduler's structured allocator (DRAConsumableCapacity).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from quorate.core.model.devices import Capacity, DeviceTraits
from quorate.core.model.quantity import exact

Consumed = tuple[tuple[str, Fraction], ...]


def consumption(traits: DeviceTraits, wanted: tuple[tuple[str, str], ...]) -> Consumed | None:
    """Return the amount of each capacity that a request consumes; None if its policy forbids it."""
    asked = dict(wanted)
    if not asked.keys() <= {one.name for one in traits.capacity}:
        return None
    taken = []
    for capacity in traits.capacity:
        amount = _rounded(capacity, asked.get(capacity.name))
        if _is_forbidden(capacity, amount):
            return None
        taken.append((capacity.name, amount))
    return tuple(taken)


def fits(traits: DeviceTraits, taken: Consumed, *used: Mapping[str, Fraction]) -> bool:
    """Whether the device's capacity suffices for ``taken`` in addition to all of ``used``."""
    amounts = dict(taken)
    return all(
        amounts[one.name] + sum(some.get(one.name, 0) for some in used) <= exact(one.value)
        for one in traits.capacity
    )


def _rounded(capacity: Capacity, asked: str | None) -> Fraction:
    if asked is None:
        return exact(capacity.value if capacity.default is None else capacity.default)
    amount = exact(asked)
    if capacity.smallest is not None:
        smallest = exact(capacity.smallest)
        if amount < smallest:
            return smallest
        if capacity.step is None:
            return amount
        step, first = _whole(exact(capacity.step)), _whole(smallest)
        return Fraction(first + -(-(_whole(amount) - first) // step) * step)
    return next((exact(one) for one in capacity.values if amount <= exact(one)), amount)


def _is_forbidden(capacity: Capacity, amount: Fraction) -> bool:
    if capacity.default is not None and amount == exact(capacity.default):
        return False
    if capacity.values:
        return all(amount != exact(one) for one in capacity.values)
    if capacity.largest is not None and amount > exact(capacity.largest):
        return True
    if capacity.step is not None and capacity.smallest is not None:
        offset = _whole(amount) - _whole(exact(capacity.smallest))
        return offset % _whole(exact(capacity.step)) != 0
    return False


def _whole(value: Fraction) -> int:
    """Round up, as Quantity.Value does."""
    return -(-value.numerator // value.denominator)
