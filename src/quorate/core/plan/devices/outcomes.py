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
from quorate.core.plan.devices.requests import ClaimAsk
from quorate.core.quantity import exact
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


class _Seen:
    """One ask: reduced kinds by code of kind, and steps by code of reduced kind."""

    def __init__(self) -> None:
        self.reduced = Kinds()
        self.of_code: dict[int, int] = {}
        self.steps: dict[int, Step] = {}
        self.pods: dict[int, int] = {}
        self.traits: dict[int, int] = {}
        self.by_look: dict[tuple[object, ...], int] = {}


class Outcomes:
    """Outcomes by ask. ``traits`` and ``kinds`` are those of the cluster."""

    def __init__(self) -> None:
        self.expressions = Expressions()
        self._seen: dict[Claims, _Seen] = {}
        self._kinds: Kinds | None = None

    def step(self, claims: Claims, code: int, kinds: Kinds, traits: list[DeviceTraits]) -> Step:
        """Return what one pod gets on nodes of this kind."""
        seen = self._of(claims, kinds)
        return self._step(claims, seen, self._reduced(claims, seen, code, kinds, traits), traits)

    def pods(
        self, claims: Claims, codes: Iterable[int], kinds: Kinds, traits: list[DeviceTraits]
    ) -> list[int]:
        """Return for each code how many pods fit, one after the other."""
        seen = self._of(claims, kinds)
        return [
            self._pods(claims, seen, self._reduced(claims, seen, code, kinds, traits), traits)
            for code in codes
        ]

    def can_use(self, claims: Claims, number: int, traits: list[DeviceTraits]) -> bool:
        """Whether devices of these traits match one of the choices."""
        return any(
            all(
                self.expressions.matches(expression, number, traits[number]) is True
                for expression in (*choice.device_class.selectors, *choice.wanted.selectors)
            )
            for claim in claims
            for request in claim.requests
            for choice in request.choices
        )

    def _of(self, claims: Claims, kinds: Kinds) -> _Seen:
        if self._kinds is not kinds or len(self._seen) > ASKS_MAX:
            self._seen, self._kinds = {}, kinds
        return self._seen.setdefault(claims, _Seen())

    def _pods(self, claims: Claims, seen: _Seen, reduced: int, traits: list[DeviceTraits]) -> int:
        known = seen.pods.get(reduced)
        if known is not None:
            return known
        chain, at = [], reduced
        while len(chain) < PODS_MAX:
            step = self._step(claims, seen, at, traits)
            if not isinstance(step.found, Found):
                break
            chain.append(at)
            at = step.after
        seen.pods[at] = 0 if len(chain) < PODS_MAX else PODS_MAX
        for pods, one in enumerate(reversed(chain), start=1):
            seen.pods.setdefault(one, min(pods + seen.pods[at], PODS_MAX))
        return seen.pods[reduced]

    def _step(self, claims: Claims, seen: _Seen, reduced: int, traits: list[DeviceTraits]) -> Step:
        known = seen.steps.get(reduced)
        if known is None:
            kind = seen.reduced.values[reduced]
            found = allocate(claims, kind, traits, self.expressions)
            after = reduced
            if isinstance(found, Found):
                after = seen.reduced.code(_after(claims, kind, found, traits))
            known = seen.steps[reduced] = Step(found, after)
        return known

    def _reduced(
        self, claims: Claims, seen: _Seen, code: int, kinds: Kinds, traits: list[DeviceTraits]
    ) -> int:
        known = seen.of_code.get(code)
        if known is None:
            kind = tuple(
                pool._replace(
                    devices=tuple(
                        one._replace(traits=self._alike(claims, seen, one.traits, traits))
                        for one in pool.devices
                    )
                )
                for pool in kinds.values[code]
            )
            known = seen.of_code[code] = seen.reduced.code(kind)
        return known

    def _alike(self, claims: Claims, seen: _Seen, number: int, traits: list[DeviceTraits]) -> int:
        """Return the first traits that the ask cannot tell from these."""
        known = seen.traits.get(number)
        if known is None:
            look = self._look(claims, number, traits[number])
            known = seen.traits[number] = seen.by_look.setdefault(look, number)
        return known

    def _look(self, claims: Claims, number: int, traits: DeviceTraits) -> tuple[object, ...]:
        answers = tuple(
            self.expressions.matches(expression, number, traits)
            for claim in claims
            for request in claim.requests
            for choice in request.choices
            for expression in (*choice.device_class.selectors, *choice.wanted.selectors)
        )
        values = tuple(
            look_up(traits, constraint.match or constraint.distinct)
            for claim in claims
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
