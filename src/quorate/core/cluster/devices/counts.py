"""What ``devices`` counts by use: shares of devices, and the numbers of claims' specs."""

from __future__ import annotations

from fractions import Fraction

from quorate.core.cluster.devices.pools import Shares
from quorate.core.model import policy
from quorate.core.model.devices import ClaimSpec
from quorate.core.model.quantity import exact

ClaimKey = tuple[str, str]
Consumed = tuple[tuple[str, str], ...]
"""What one share of a device takes of its capacity: names and quantities."""


class DeviceShares:
    """The shares of one device by id, and what they consume together."""

    __slots__ = ("_sum", "by_id")

    def __init__(self) -> None:
        self.by_id: dict[str, Consumed] = {}
        self._sum: dict[str, tuple[str, int]] = {}
        """For each name what is consumed, and by how many shares: exact, and in a checkpoint."""

    def copy(self) -> DeviceShares:
        """Return one of its own."""
        other = DeviceShares()
        other.by_id, other._sum = dict(self.by_id), dict(self._sum)
        return other

    def put(self, share_id: str, consumed: Consumed) -> None:
        """Add or replace a share."""
        self.remove(share_id)
        self.by_id[share_id] = consumed
        self._add(consumed, 1)

    def remove(self, share_id: str) -> None:
        """Forget a share."""
        self._add(self.by_id.pop(share_id, ()), -1)

    def _add(self, consumed: Consumed, sign: int) -> None:
        for name, text in consumed:
            amount, count = self._sum.get(name, ("0", 0))
            self._sum[name] = str(Fraction(amount) + sign * exact(text)), count + sign
            if not self._sum[name][1]:
                del self._sum[name]

    def in_sum(self) -> Shares:
        """Return what all of them consume, by name."""
        return tuple(sorted((name, Fraction(amount)) for name, (amount, _) in self._sum.items()))


def added(one: Shares | None, other: Shares) -> Shares:
    """Return what is consumed in sum; None is nothing."""
    total = dict(one or ())
    for name, amount in other:
        total[name] = total.get(name, Fraction(0)) + amount
    return tuple(sorted(total.items()))


class SpecNumbers:
    """A number for each spec that a claim has; never given twice.

    Of specs that no claim has any more some are kept: the next job often asks for the same.
    """

    __slots__ = ("_made", "_numbers", "_spare", "_spare_weight", "_uses", "of")

    def __init__(self) -> None:
        self.of: dict[ClaimKey, int] = {}
        """The number of a claim's spec."""
        self._made = 0
        self._numbers: dict[ClaimSpec, int] = {}
        self._uses: dict[int, tuple[ClaimSpec, int]] = {}
        """By number, the spec and how many claims have it."""
        self._spare: dict[int, ClaimSpec] = {}
        """Specs that no claim has, in the order in which they were given up."""
        self._spare_weight = 0

    def __len__(self) -> int:
        """Return how many different specs there are."""
        return len(self._numbers)

    def __getitem__(self, number: int) -> ClaimSpec:
        """Return the spec with a number that some claim has."""
        return self._uses[number][0]

    def put(self, key: ClaimKey, spec: ClaimSpec) -> None:
        """Note the spec of a claim, in place of the one that it had."""
        number = self._numbers.get(spec)
        if number is None:
            number = self._numbers[spec] = self._made
            self._made += 1
        elif number in self._spare:
            spec = self._spare.pop(number)
            self._spare_weight -= _weight(spec)
        spec, uses = self._uses.get(number, (spec, 0))
        self._uses[number] = spec, uses + 1
        self.remove(key)
        self.of[key] = number

    def remove(self, key: ClaimKey) -> None:
        """Forget the spec of a claim."""
        number = self.of.pop(key, None)
        if number is None:
            return
        spec, uses = self._uses[number]
        if uses > 1:
            self._uses[number] = spec, uses - 1
            return
        del self._uses[number]
        self._spare[number] = spec
        self._spare_weight += _weight(spec)
        while self._spare_weight > policy.DEVICE_SPECS_SPARE_MAX:
            gone = self._spare.pop(next(iter(self._spare)))
            self._spare_weight -= _weight(gone)
            del self._numbers[gone]


def _weight(spec: ClaimSpec) -> int:
    """Return how much a spec holds: see ``device_asks.OpenClaim.weight``."""
    choices = [choice for request in spec.requests for choice in request.choices]
    return 1 + len(spec.config) + sum(1 + len(one.selectors) for one in choices)
