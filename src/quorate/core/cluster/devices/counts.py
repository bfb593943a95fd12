"""Counts for ``devices``: the shares of each device, and the numbers of claims' specs."""

from __future__ import annotations

from fractions import Fraction

from quorate.core.cluster.devices.pools import Shares
from quorate.core.model import policy
from quorate.core.model.devices import ClaimSpec
from quorate.core.model.quantity import exact

ClaimKey = tuple[str, str]
Consumed = tuple[tuple[str, str], ...]
"""What one share of a device consumes of its capacity: names and quantities."""


class DeviceShares:
    """The shares of one device by id, and what they consume in sum."""

    __slots__ = ("_sum", "by_id")

    def __init__(self) -> None:
        self.by_id: dict[str, Consumed] = {}
        self._sum: dict[str, tuple[str, int]] = {}
        """By name, the amount consumed (text: exact in a checkpoint), and by how many shares."""

    def copy(self) -> DeviceShares:
        """Return an independent copy."""
        other = DeviceShares()
        other.by_id, other._sum = dict(self.by_id), dict(self._sum)
        return other

    def put(self, share_id: str, consumed: Consumed) -> None:
        """Add or replace a share."""
        self.remove(share_id)
        self.by_id[share_id] = consumed
        self._add(consumed, 1)

    def remove(self, share_id: str) -> None:
        """Remove a share, if it is there."""
        self._add(self.by_id.pop(share_id, ()), -1)

    def _add(self, consumed: Consumed, sign: int) -> None:
        for name, text in consumed:
            amount, count = self._sum.get(name, ("0", 0))
            self._sum[name] = str(Fraction(amount) + sign * exact(text)), count + sign
            if not self._sum[name][1]:
                del self._sum[name]

    def in_sum(self) -> Shares:
        """Return what all shares consume, by name."""
        return tuple(sorted((name, Fraction(amount)) for name, (amount, _) in self._sum.items()))


def added(one: Shares | None, other: Shares) -> Shares:
    """Return the sum of two consumptions; None counts as nothing."""
    total = dict(one or ())
    for name, amount in other:
        total[name] = total.get(name, Fraction(0)) + amount
    return tuple(sorted(total.items()))


class SpecNumbers:
    """A number for each spec that a claim has; a number is never reused for another spec.

    Some specs are kept after their last claim: the next job often has the same spec.
    """

    __slots__ = ("_made", "_numbers", "_spare", "_spare_weight", "_uses", "of")

    def __init__(self) -> None:
        self.of: dict[ClaimKey, int] = {}
        """The number of a claim's spec."""
        self._made = 0
        self._numbers: dict[ClaimSpec, int] = {}
        self._uses: dict[int, tuple[ClaimSpec, int]] = {}
        """By number, the spec and its number of claims."""
        self._spare: dict[int, ClaimSpec] = {}
        """Specs without claims, in the order in which they lost their last claim."""
        self._spare_weight = 0

    def __len__(self) -> int:
        """Return the number of different specs, those without claims included."""
        return len(self._numbers)

    def __getitem__(self, number: int) -> ClaimSpec:
        """Return the spec with a number; KeyError if no claim has it."""
        return self._uses[number][0]

    def put(self, key: ClaimKey, spec: ClaimSpec) -> None:
        """Set the spec of a claim, in place of an earlier one."""
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
    """Return the size of a spec, for the bound on spare ones: ``UnallocatedClaim.weight``."""
    choices = [choice for request in spec.requests for choice in request.choices]
    return 1 + len(spec.config) + sum(1 + len(one.selectors) for one in choices)
