"""What claims get on each kind of node, cached across turns.

Nodes differ in names and serial numbers of devices, which claims mostly ignore. So each kind of
node is first reduced to what a class's device needs read: the looks of its devices. Each reduced
kind is searched once; the kind that remains after one pod is a reduced kind again. In: device needs
and codes of kinds. Out: how many pods fit, and the devices of one pod. Called by ``device_room``.

The work is counted in steps. When a turn ends, results are stored, so that the next turn continues
after the last search of this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from quorate.core.cluster.devices.requests import UnallocatedClaim
from quorate.core.cluster.devices.views import DeviceKind, DeviceKinds, PoolKind, SharedTraits
from quorate.core.cluster.lru_cache import LruCache
from quorate.core.model import Taint, policy
from quorate.core.model.steps import Steps, costs
from quorate.core.room.devices.cel.expressions import Expressions
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.search import (
    ChosenDevices,
    DeviceSearch,
    Look,
    SeenKind,
    SeenPool,
    free_for_one_request,
)

Claims = tuple[UnallocatedClaim, ...]
_Pool = TypeVar("_Pool", PoolKind, SeenPool)
NeedsKey = tuple[object, ...]
"""The id of device needs, and the places of those claims that have no devices yet."""


class Outcomes:
    """Outcomes by device needs, for one cluster; the least recently used are evicted."""

    def __init__(self) -> None:
        self.expressions = Expressions()
        self._by_needs: LruCache[NeedsKey, NeedsOutcomes] = LruCache()
        self._kinds: DeviceKinds | None = None

    def of(self, key: NeedsKey, claims: Claims, kinds: DeviceKinds) -> NeedsOutcomes:
        """Return the outcomes for these claims; equal keys must mean equal claims."""
        if self._kinds is not kinds:
            self._by_needs, self._kinds = LruCache(), kinds
        found = self._by_needs.get(key)
        if found is None:
            found = NeedsOutcomes(claims, kinds, self.expressions)
            self._by_needs.put(key, found, policy.DEVICE_OUTCOMES_ASKS_MAX, found.weight)
            while len(self) > policy.DEVICE_OUTCOMES_MAX and len(self._by_needs) > 1:
                self._by_needs.drop(next(iter(self._by_needs)))
        return found

    def __len__(self) -> int:
        """Return the number of kinds of node that have an outcome, over all device needs."""
        return sum(map(len, self._by_needs.values()))


class _Test(NamedTuple):
    """A selector of a choice; ``owner`` names it in the message of a broken one."""

    choice: int
    owner: str
    expression: str


class _ReducedKind:
    """A kind of node reduced to what device needs read, with the results for one and many pods.

    ``after`` is the kind that remains after one pod.
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
        self.weight = 1 + sum(one.weight for one in claims)
        self._claims = claims
        self._kinds = kinds
        self._expressions = expressions
        self._choices, self._tests = _tests(claims)
        self._looks: WeakValueDictionary[object, Look] = WeakValueDictionary()
        self._under_test: SharedTraits | None = None
        """The traits whose look is not finished, with the verdicts so far and the next test."""
        self._verdicts: list[bool | Broken] = []
        self._next_test = 0
        self._look_of: WeakKeyDictionary[SharedTraits, Look] = WeakKeyDictionary()
        self._by_code: dict[int, _ReducedKind] = {}
        self._reduced: WeakValueDictionary[SeenKind, _ReducedKind] = WeakValueDictionary()

    def __len__(self) -> int:
        """Return the number of kinds of node that were reduced."""
        return len(self._by_code)

    def for_one_pod(self, code: int, steps: Steps | None = None) -> ChosenDevices | Broken | None:
        """Return what one pod gets on nodes of this kind."""
        return self._search(self._reduce(code, steps), steps).answer

    def pods(self, codes: Iterable[int], steps: Steps | None = None) -> list[int]:
        """Return, for each code, how many pods fit on a node of that kind."""
        return [self._count(self._reduce(code, steps), steps) for code in codes]

    def _count(self, reduced: _ReducedKind, steps: Steps | None) -> int:
        most = policy.DEVICE_PODS_PER_NODE_MAX
        if reduced.pods < 0 and (number := free_for_one_request(self._claims, reduced.kind)) >= 0:
            _take_steps(steps, reduced.kind, costs.DEVICES_TAKEN_PER_STEP)
            reduced.pods = min(number, most)
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
        if steps is not None:
            steps.expect()
        search = DeviceSearch(self._claims, reduced.kind)
        answer = search.run()
        if steps is not None:
            steps.take(costs.DEVICE_SEARCH_STEPS + search.examined // costs.DEVICE_LOOKS_PER_STEP)
        reduced.answer, reduced.is_known = answer, True
        if isinstance(answer, ChosenDevices) and any(answer.claims):
            reduced.after = self._of_kind(less(reduced.kind, answer))
            _take_steps(steps, reduced.kind, costs.DEVICES_TAKEN_PER_STEP)
        return reduced

    def _reduce(self, code: int, steps: Steps | None) -> _ReducedKind:
        """Return the kind with this code as the claims see it."""
        known = self._by_code.get(code)
        if known is None:
            kind = self._kinds[code]
            seen = tuple(
                SeenPool(
                    pool.state,
                    pool.label,
                    tuple([self._look(traits, steps) for traits in pool.traits]),
                    pool.used,
                )
                for pool in kind
            )
            known = self._of_kind(seen)
            _take_steps(steps, kind, costs.DEVICES_SORTED_PER_STEP)
            self._by_code[code] = known
        return known

    def _of_kind(self, kind: SeenKind) -> _ReducedKind:
        found = self._reduced.get(kind)
        if found is None:
            found = self._reduced[kind] = _ReducedKind(kind)
        return found

    def _look(self, shared: SharedTraits, steps: Steps | None) -> Look:
        """Return the look of devices with these traits; a closed one matches nothing."""
        known = self._look_of.get(shared)
        if known is not None:
            return known
        verdicts: tuple[bool | Broken, ...] = (False,) * self._choices
        taints: tuple[Taint, ...] = ()
        if not shared.value.closed:
            verdicts, taints = self._tested(shared, steps), shared.value.taints
        if steps is not None:
            steps.take()
        look = self._looks.get((verdicts, taints))
        if look is None:
            look = self._looks[verdicts, taints] = Look(verdicts, taints)
        self._look_of[shared] = look
        return look

    def _tested(self, shared: SharedTraits, steps: Steps | None) -> tuple[bool | Broken, ...]:
        """Evaluate the selectors of each choice up to the first that does not match."""
        if self._under_test is not shared:
            self._under_test, self._next_test = shared, 0
            self._verdicts = [True] * self._choices
        for choice, owner, expression in self._tests[self._next_test :]:
            if self._verdicts[choice] is True:
                answer = self._expressions.matches(expression, shared, steps)
                if answer is not True:
                    self._verdicts[choice] = Broken(f"{owner}: {answer}") if answer else False
            self._next_test += 1
        self._under_test = None
        return tuple(self._verdicts)


def _tests(claims: Claims) -> tuple[int, list[_Test]]:
    """Return the number of choices, and the selectors of each, those of its class first."""
    tests: list[_Test] = []
    choices = [
        choice for claim in claims for request in claim.requests for choice in request.choices
    ]
    for number, choice in enumerate(choices):
        of_class, own = choice.device_class.selectors, choice.wanted.selectors
        for name, selectors in (
            (f"class {choice.device_class.name}", of_class),
            (f"request {choice.name}", own),
        ):
            tests += [
                _Test(number, f"{name}: selector #{index}", text)
                for index, text in enumerate(selectors)
            ]
    return len(choices), tests


def less(kind: tuple[_Pool, ...], chosen: ChosenDevices) -> tuple[_Pool, ...]:
    """Return the kind of node that remains after these devices are taken."""
    used: dict[int, list[bool]] = {}
    for picks in chosen.claims:
        for pick in picks:
            used.setdefault(pick.pool, list(kind[pick.pool].used))[pick.device] = True
    pools = list(kind)
    for at, flags in used.items():
        pools[at] = pools[at]._replace(used=tuple(flags))
    return tuple(pools)


def _take_steps(steps: Steps | None, kind: DeviceKind | SeenKind, devices_per_step: int) -> None:
    if steps is not None:
        steps.take(1 + sum(len(pool.used) for pool in kind) // devices_per_step)
