"""What claims can distinguish of devices: devices with equal looks are equal to the claims.

In: claims and a kind of node. Out: the kind with a ``DeviceLook`` for each device: the verdicts of
all selectors. Evaluation takes steps; verdicts are stored when the turn ends. Called by
``allocations``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple
from weakref import WeakValueDictionary

from quorate.core.cluster.devices.pools import DeviceKind, PoolState, SharedTraits, Shares
from quorate.core.cluster.devices.requests import Choice, UnallocatedClaim
from quorate.core.model.devices import Attribute, DeviceTraits
from quorate.core.model.steps import Steps, costs
from quorate.core.room.devices.cel.expressions import Expressions
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.constraints import look_up

ChoiceKey = tuple[int, int, int]
"""A choice: the index of its claim, of its request in the claim, and of itself in the request."""


class DeviceLook:
    """What claims see of equal devices. ``traits`` are those of the first one.

    ``verdicts`` say, by the number of a choice, whether the devices match its selectors; ``usable``
    whether they match any choice; ``values`` are the attributes that constraints name.
    """

    __slots__ = ("__weakref__", "traits", "usable", "values", "verdicts")

    def __init__(
        self,
        traits: DeviceTraits,
        verdicts: tuple[bool | Broken, ...],
        values: dict[str, Attribute | None],
    ) -> None:
        self.traits = traits
        self.verdicts = verdicts
        self.usable = any(one is True for one in verdicts)
        self.values = values


class SeenDevice(NamedTuple):
    """A device of a kind of node, as ``cluster.devices.pools.UnnamedDevice``."""

    look: DeviceLook
    used: bool
    shares: Shares | None
    here: bool


class SeenPool(NamedTuple):
    """A pool of a kind of node, as ``cluster.devices.pools.UnnamedPool``."""

    state: PoolState
    label: str
    devices: tuple[SeenDevice, ...]
    counters: tuple[tuple[tuple[str, str], Fraction], ...]


SeenKind = tuple[SeenPool, ...]


class _Test(NamedTuple):
    """A selector of a choice; ``owner`` names it in the message of a broken one."""

    choice: int
    owner: str
    expression: str


@dataclass(slots=True)
class _UnfinishedKind:
    """A kind whose looks are unfinished: the looks so far, the next test, verdicts so far."""

    kind: DeviceKind
    looks: dict[SharedTraits, DeviceLook]
    at: int
    verdicts: list[bool | Broken]


class Looks:
    """Computes the looks of devices for some claims. ``choices`` numbers their choices."""

    def __init__(self, claims: tuple[UnallocatedClaim, ...], expressions: Expressions) -> None:
        self.choices: dict[ChoiceKey, int] = {}
        self._expressions = expressions
        numbers: dict[tuple[str, str, tuple[str, ...]], int] = {}
        tests: list[_Test] = []
        for number, claim in enumerate(claims):
            for index, request in enumerate(claim.requests):
                for which, one in enumerate(request.choices):
                    key = one.device_class.name, one.name, one.wanted.selectors
                    if key not in numbers:
                        numbers[key] = len(numbers)
                        tests += _tests(numbers[key], one)
                    self.choices[number, index, which] = numbers[key]
        self._count = len(numbers)
        self._tests = tuple(tests)
        self._attributes = tuple(
            dict.fromkeys(
                one.match or one.distinct for claim in claims for one in claim.constraints
            )
        )
        self._known: WeakValueDictionary[tuple[object, ...], DeviceLook] = WeakValueDictionary()
        self._under_way: _UnfinishedKind | None = None

    def of(self, kind: DeviceKind, steps: Steps | None = None) -> SeenKind:
        """Return a kind with its looks. Raises ``OutOfStepsError``: call again to continue."""
        job = self._under_way
        if job is None or job.kind is not kind:
            job = self._under_way = _UnfinishedKind(kind, {}, 0, self._begun())
        for pool in kind:
            for one in pool.devices:
                if one.traits not in job.looks:
                    if steps is not None:
                        steps.expect()
                    job.looks[one.traits] = self._look(job, one.traits, steps)
                    if steps is not None:
                        steps.take()
        self._under_way = None
        if steps is not None:
            steps.take(1 + sum(len(pool.devices) for pool in kind) // costs.DEVICES_SORTED_PER_STEP)
        return tuple(
            SeenPool(
                pool.state,
                pool.label,
                tuple(
                    SeenDevice(job.looks[one.traits], one.used, one.shares, one.here)
                    for one in pool.devices
                ),
                pool.counters,
            )
            for pool in kind
        )

    def _look(self, job: _UnfinishedKind, shared: SharedTraits, steps: Steps | None) -> DeviceLook:
        """Evaluate the selectors of each choice up to the first that does not match."""
        while job.at < len(self._tests):
            choice, owner, expression = self._tests[job.at]
            if job.verdicts[choice] is True:
                answer = self._expressions.matches(expression, shared, steps)
                if answer is not True:
                    job.verdicts[choice] = Broken(f"{owner}: {answer}") if answer else False
            job.at += 1
        verdicts = tuple(job.verdicts)
        job.at, job.verdicts = 0, self._begun()
        traits = shared.value
        values = {name: look_up(traits, name) for name in self._attributes}
        key = (
            verdicts,
            tuple(values.values()),
            traits.taints,
            traits.capacity,
            traits.counters,
            traits.shareable,
            traits.driver if values else "",
        )
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = DeviceLook(traits, verdicts, values)
        return found

    def _begun(self) -> list[bool | Broken]:
        return [True] * self._count


def _tests(number: int, choice: Choice) -> list[_Test]:
    """Return the selectors of a choice, those of its class first."""
    of_class, own = choice.device_class.selectors, choice.wanted.selectors
    name = f"class {choice.device_class.name}"
    tests = [_Test(number, f"{name}: selector #{i}", text) for i, text in enumerate(of_class)]
    name = f"request {choice.name}"
    return tests + [_Test(number, f"{name}: selector #{i}", text) for i, text in enumerate(own)]
