"""What claims get on each kind of node, remembered from cycle to cycle.

Nodes differ in devices' names and serial numbers, and claims look at little of that. So for each
ask, kinds are first reduced to what the ask can see; then each reduced kind is searched once, and
what is left after each pod is a kind again. In: asks and codes of kinds. Out: how many pods fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from quorate.core.model.devices import DeviceTraits
from quorate.core.plan.devices.allocator import Found, allocate
from quorate.core.plan.devices.constraints import look_up
from quorate.core.plan.devices.expressions import Broken, Expressions
from quorate.core.quantity import exact
from quorate.core.state.device_asks import ClaimAsk
from quorate.core.state.device_views import Kinds
from quorate.core.state.pools import Kind, KindDevice

PODS_MAX = 256
"""More pods than any node takes: an ask that uses nothing up fits that often."""
ASKS_MAX = 512
Claims = tuple[ClaimAsk, ...]


class Step(NamedTuple):
    """What one more pod gets on a kind, and the reduced kind that is left."""

    found: Found | Broken | None
    after: int


class Outcomes:
    """Outcomes by ask, for the kinds and traits of one cluster."""

    def __init__(self) -> None:
        self.expressions = Expressions()
        self._asked: dict[Claims, Asked] = {}
        self._kinds: Kinds | None = None

    def of(self, claims: Claims, kinds: Kinds, traits: list[DeviceTraits]) -> Asked:
        """Return what is known for these claims; ``traits`` are those that kinds number."""
        if self._kinds is not kinds or len(self._asked) > ASKS_MAX:
            self._asked, self._kinds = {}, kinds
        found = self._asked.get(claims)
        if found is None:
            found = self._asked[claims] = Asked(claims, kinds, traits, self.expressions)
        return found


class Asked:
    """The outcomes of one ask."""

    def __init__(
        self, claims: Claims, kinds: Kinds, traits: list[DeviceTraits], expressions: Expressions
    ) -> None:
        self._claims = claims
        self._kinds = kinds
        self._traits = traits
        self._expressions = expressions
        self._reduced = Kinds()
        self._of_code: dict[int, int] = {}
        self._steps: dict[int, Step] = {}
        self._pods: dict[int, int] = {}
        self._alike: dict[int, int] = {}
        self._by_look: dict[tuple[object, ...], int] = {}

    def found(self, code: int) -> Found | Broken | None:
        """Return what one pod gets on nodes of this kind."""
        return self._step(self._reduce(code)).found

    def pods(self, codes: Iterable[int]) -> list[int]:
        """Return for each code how many pods fit, one after the other."""
        return [self._count(self._reduce(code)) for code in codes]

    def can_use(self, number: int) -> bool:
        """Whether devices of the traits with this number match one of the choices."""
        return any(
            all(
                self._expressions.matches(expression, number, self._traits[number]) is True
                for expression in (*choice.device_class.selectors, *choice.wanted.selectors)
            )
            for claim in self._claims
            for request in claim.requests
            for choice in request.choices
        )

    def _count(self, reduced: int) -> int:
        known = self._pods.get(reduced)
        if known is not None:
            return known
        chain: list[int] = []
        at = reduced
        while len(chain) < PODS_MAX:
            step = self._step(at)
            if not isinstance(step.found, Found):
                break
            chain.append(at)
            at = step.after
        last = 0 if len(chain) < PODS_MAX else PODS_MAX
        self._pods[at] = last
        for pods, one in enumerate(reversed(chain), start=1):
            self._pods.setdefault(one, min(pods + last, PODS_MAX))
        return self._pods[reduced]

    def _step(self, reduced: int) -> Step:
        known = self._steps.get(reduced)
        if known is None:
            kind = self._reduced.values[reduced]
            found = allocate(self._claims, kind, self._traits, self._expressions)
            after = reduced
            if isinstance(found, Found):
                after = self._reduced.code(_after(self._claims, kind, found, self._traits))
            known = self._steps[reduced] = Step(found, after)
        return known

    def _reduce(self, code: int) -> int:
        known = self._of_code.get(code)
        if known is None:
            kind = tuple(
                pool._replace(
                    devices=tuple(
                        one._replace(traits=self._first_alike(one.traits)) for one in pool.devices
                    )
                )
                for pool in self._kinds.values[code]
            )
            known = self._of_code[code] = self._reduced.code(kind)
        return known

    def _first_alike(self, number: int) -> int:
        """Return the first traits that the ask cannot tell from these."""
        known = self._alike.get(number)
        if known is None:
            look = self._look(number, self._traits[number])
            known = self._alike[number] = self._by_look.setdefault(look, number)
        return known

    def _look(self, number: int, traits: DeviceTraits) -> tuple[object, ...]:
        answers = tuple(
            self._expressions.matches(expression, number, traits)
            for claim in self._claims
            for request in claim.requests
            for choice in request.choices
            for expression in (*choice.device_class.selectors, *choice.wanted.selectors)
        )
        values = tuple(
            look_up(traits, constraint.match or constraint.distinct)
            for claim in self._claims
            for constraint in claim.constraints
        )
        return (
            answers,
            values,
            traits.taints,
            traits.capacity,
            traits.counters,
            traits.shareable,
            traits.driver if values else "",
        )


def _after(claims: Claims, kind: Kind, found: Found, traits: list[DeviceTraits]) -> Kind:
    """Return the kind of node that is left when these devices are taken."""
    pools = [list(pool.devices) for pool in kind]
    left = [dict(pool.counters) for pool in kind]
    for number, picks in enumerate(found.claims):
        for pick in picks:
            request = claims[number].requests[pick.request]
            if request.choices[pick.choice].wanted.admin:
                continue
            before = pools[pick.pool][pick.device]
            one = traits[before.traits]
            if before.shares is None and not before.used:
                for use in one.counters:
                    for name, amount in use.counters:
                        left[pick.pool][use.counter_set, name] -= exact(amount)
            pools[pick.pool][pick.device] = _taken(before, one, pick.consumed)
    return tuple(
        pool._replace(devices=tuple(devices), counters=tuple(counters.items()))
        for pool, devices, counters in zip(kind, pools, left, strict=True)
    )


def _taken(
    before: KindDevice, traits: DeviceTraits, consumed: tuple[tuple[str, Fraction], ...]
) -> KindDevice:
    if not traits.shareable:
        return before._replace(used=True)
    total = dict(before.shares or ())
    for name, amount in consumed:
        total[name] = total.get(name, Fraction(0)) + amount
    return before._replace(shares=tuple(sorted(total.items())))
