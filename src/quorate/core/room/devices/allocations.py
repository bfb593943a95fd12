"""What claims get on each kind of node, cached across cycles.

Nodes differ in names and serial numbers of devices, which claims mostly ignore. So each kind of
node is first reduced to what a class's device needs read. Each reduced kind is searched once; the
kind that remains after one pod is a reduced kind again. In: device needs and codes of kinds. Out:
how many pods fit, and the devices of one pod. Called by ``device_room``.

The work is counted in steps. When a turn ends, results and unfinished searches are stored, so that
the next turn continues where this one stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from weakref import WeakValueDictionary

from quorate.core.cluster.devices.requests import UnallocatedClaim
from quorate.core.cluster.devices.views import DeviceKinds
from quorate.core.model import policy
from quorate.core.model.devices import DeviceTraits
from quorate.core.model.quantity import exact
from quorate.core.model.steps import OutOfStepsError, Steps, costs
from quorate.core.room.devices.allocator import ChosenDevices, DeviceSearch
from quorate.core.room.devices.cel.expressions import Expressions
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.looks import Looks, SeenDevice, SeenKind

Claims = tuple[UnallocatedClaim, ...]
NeedsKey = tuple[object, ...]
"""The id of device needs, and the places of those claims that have no devices yet."""


class Outcomes:
    """Outcomes by device needs, for one cluster; the least recently used are evicted."""

    def __init__(self) -> None:
        self.expressions = Expressions()
        self._by_needs: dict[NeedsKey, NeedsOutcomes] = {}
        """In the order of their last use."""
        self._kinds: DeviceKinds | None = None
        self._weight = 0

    def of(self, key: NeedsKey, claims: Claims, kinds: DeviceKinds) -> NeedsOutcomes:
        """Return the outcomes for these claims; equal keys must mean equal claims."""
        if self._kinds is not kinds:
            self._by_needs, self._kinds, self._weight = {}, kinds, 0
        found = self._by_needs.pop(key, None)
        if found is None:
            found = NeedsOutcomes(claims, kinds, self.expressions)
            self._weight += found.weight
        while self._by_needs and (
            self._weight > policy.DEVICE_OUTCOMES_ASKS_MAX
            or kinds.remembered > policy.DEVICE_OUTCOMES_MAX
        ):
            first = self._by_needs.pop(next(iter(self._by_needs)))
            self._weight -= first.weight
            kinds.forget(first.number)
        self._by_needs[key] = found
        return found


class _ReducedKind:
    """A kind of node reduced to what device needs read, with the results for one and many pods.

    ``after`` is the kind that remains after one pod; None: it is unchanged.
    """

    __slots__ = ("__weakref__", "after", "answer", "is_known", "kind", "pods")

    def __init__(self, kind: SeenKind) -> None:
        self.kind = kind
        self.is_known = False
        self.answer: ChosenDevices | Broken | None = None
        self.after: _ReducedKind | None = None
        self.pods = -1


class NeedsOutcomes:
    """The outcomes of one class's device needs. ``OutOfStepsError``: call again next turn."""

    def __init__(self, claims: Claims, kinds: DeviceKinds, expressions: Expressions) -> None:
        self.number = kinds.new_number()
        self.weight = 1 + sum(one.weight for one in claims)
        self._claims = claims
        self._kinds = kinds
        self._looks = Looks(claims, expressions)
        self._reduced: WeakValueDictionary[SeenKind, _ReducedKind] = WeakValueDictionary()
        self._under_way: dict[_ReducedKind, DeviceSearch] = {}
        """In the order of their last use."""

    def for_one_pod(self, code: int, steps: Steps | None = None) -> ChosenDevices | Broken | None:
        """Return what one pod gets on nodes of this kind."""
        return self._search(self._reduce(code, steps), steps).answer

    def pods(self, codes: Iterable[int], steps: Steps | None = None) -> list[int]:
        """Return, for each code, how many pods fit on a node of that kind."""
        return [self._count(self._reduce(code, steps), steps) for code in codes]

    def seen_kind(self, code: int, steps: Steps | None = None) -> SeenKind:
        """Return nodes of this kind as the device needs see them."""
        return self._reduce(code, steps).kind

    def _count(self, reduced: _ReducedKind, steps: Steps | None) -> int:
        if reduced.pods >= 0:
            return reduced.pods
        most = policy.DEVICE_PODS_PER_NODE_MAX
        chain: list[_ReducedKind] = []
        at = reduced
        while at.pods < 0 and len(chain) < most:
            if not isinstance(self._search(at, steps).answer, ChosenDevices):
                at.pods = 0
            elif at.after is None:
                at.pods = most  # a pod uses nothing up
            else:
                chain.append(at)
                at = at.after
        if at.pods < 0:
            reduced.pods = most
            return most
        for pods, one in enumerate(reversed(chain), start=at.pods + 1):
            one.pods = min(pods, most)
        return reduced.pods

    def _search(self, reduced: _ReducedKind, steps: Steps | None) -> _ReducedKind:
        """Search, if not done yet, for the devices that one pod gets."""
        if reduced.is_known:
            return reduced
        search = self._under_way.pop(reduced, None)
        if search is None:
            search = DeviceSearch(self._claims, reduced.kind, self._looks.choices)
            if steps is not None:
                steps.take(costs.DEVICE_SEARCH_STEPS)
        try:
            answer = search.run(steps)
        except OutOfStepsError:
            if len(self._under_way) >= policy.DEVICE_SEARCHES_MAX:
                del self._under_way[next(iter(self._under_way))]
            self._under_way[reduced] = search
            raise
        reduced.answer, reduced.is_known = answer, True
        if isinstance(answer, ChosenDevices):
            after = _after(self._claims, reduced.kind, answer)
            if steps is not None:
                steps.take(
                    1 + sum(len(pool.devices) for pool in after) // costs.DEVICES_TAKEN_PER_STEP
                )
            if after != reduced.kind:
                reduced.after = self._of_kind(after)
        return reduced

    def _reduce(self, code: int, steps: Steps | None) -> _ReducedKind:
        of = self._kinds[code]
        known = of.remembered.get(self.number)
        if known is None:
            known = self._of_kind(self._looks.of(of.kind, steps))
            self._kinds.remember(code, self.number, known)
        assert isinstance(known, _ReducedKind), "under its number an ask finds its own"
        return known

    def _of_kind(self, kind: SeenKind) -> _ReducedKind:
        found = self._reduced.get(kind)
        if found is None:
            found = self._reduced[kind] = _ReducedKind(kind)
        return found


def _after(claims: Claims, kind: SeenKind, found: ChosenDevices) -> SeenKind:
    """Return the kind of node that remains after these devices are taken."""
    pools = [list(pool.devices) for pool in kind]
    left = [dict(pool.counters) for pool in kind]
    for number, picks in enumerate(found.claims):
        for pick in picks:
            request = claims[number].requests[pick.request]
            if request.choices[pick.choice].wanted.admin:
                continue
            before = pools[pick.pool][pick.device]
            one = before.look.traits
            if before.shares is None and not before.used:
                for use in one.counters:
                    for name, amount in use.counters:
                        left[pick.pool][use.counter_set, name] -= exact(amount)
            pools[pick.pool][pick.device] = _picked(before, one, pick.consumed)
    return tuple(
        pool._replace(devices=tuple(devices), counters=tuple(counters.items()))
        for pool, devices, counters in zip(kind, pools, left, strict=True)
    )


def _picked(
    before: SeenDevice, traits: DeviceTraits, consumed: tuple[tuple[str, Fraction], ...]
) -> SeenDevice:
    if not traits.shareable:
        return before._replace(used=True)
    total = dict(before.shares or ())
    for name, amount in consumed:
        total[name] = total.get(name, Fraction(0)) + amount
    return before._replace(shares=tuple(sorted(total.items())))
