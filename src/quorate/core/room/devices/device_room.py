"""The devices that are free while one turn places gangs: devices taken here count as in use.

A part of ``Room``, copied with it for each gang. In: device needs and rows. Out: how many pods
each node takes, and an allocation for each claim of each placed pod.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from quorate.core.cluster.arrays import Codes, Ints
from quorate.core.cluster.devices.assumed import ClaimKey
from quorate.core.cluster.devices.devices import Devices
from quorate.core.cluster.devices.requests import (
    AllocatedClaim,
    Choice,
    DeviceNeeds,
    UnallocatedClaim,
    allocated_claim,
)
from quorate.core.cluster.devices.views import DeviceViews, Pool
from quorate.core.model import Allocation, Requirement, SelectorTerm
from quorate.core.model.devices import GivenConfig, GivenDevice
from quorate.core.model.steps import Steps, costs
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.outcomes import NeedsOutcomes, Outcomes, less
from quorate.core.room.devices.search import ChosenDevices, Pick

Given = tuple[tuple[int, Allocation], ...]
"""The allocations of one pod, each with the index of its claim in the pod."""


class DeviceRoom:
    """Free devices of a room. It is valid until devices or nodes change, and changes neither.

    ``steps`` is the turn's budget; None sets no bound. Without steps left, a query raises
    ``OutOfStepsError``; the same query continues where it stopped in the next turn.
    """

    def __init__(
        self,
        devices: Devices,
        views: DeviceViews,
        outcomes: Outcomes,
        *,
        steps: Steps | None = None,
    ) -> None:
        views.refresh()
        self.steps = steps
        self._devices = devices
        self._pools, self._kinds = views.pools, views.kinds
        self._outcomes = outcomes
        self._codes: Codes = views.codes.copy()
        self._shared: dict[ClaimKey, Allocation] = {}
        self._given: dict[tuple[int, int], tuple[Given, ...]] = {}

    def copy(self) -> DeviceRoom:
        """Return an independent copy for a trial."""
        other = DeviceRoom.__new__(DeviceRoom)
        other.steps = self.steps
        other._devices, other._outcomes = self._devices, self._outcomes
        other._pools, other._kinds = self._pools, self._kinds
        other._codes = self._codes.copy()
        other._shared, other._given = dict(self._shared), dict(self._given)
        return other

    def allocation(self, key: ClaimKey) -> Allocation | None:
        """Return a claim's allocation in the cluster or, for a shared claim, one made here.

        ``pop_allocations`` returns the allocations made here for claims of a single pod.
        """
        return self._shared.get(key) or self._devices.allocation(key)

    def allocated(self, device_needs: DeviceNeeds) -> tuple[AllocatedClaim, ...]:
        """Return the claims that have devices, including shared claims that got them here."""
        given = [
            allocated_claim(one.requests, self._shared[one.shared])
            for one in device_needs.unallocated
            if one.shared is not None and one.shared in self._shared
        ]
        return (*device_needs.allocated, *given)

    def _open(self, device_needs: DeviceNeeds) -> tuple[UnallocatedClaim, ...]:
        """Return the claims that have no devices yet."""
        return tuple(one for one in device_needs.unallocated if one.shared not in self._shared)

    def outcomes(self, device_needs: DeviceNeeds) -> NeedsOutcomes:
        """Return the cached outcomes for those claims of the needs that have no devices yet."""
        claims = self._open(device_needs)
        key = device_needs.id, *(one.place for one in claims)
        return self._outcomes.of(key, claims, self._kinds)

    def is_settled(self, device_needs: DeviceNeeds) -> bool:
        """Whether all claims of the device needs have devices."""
        return not self._open(device_needs)

    def is_tied(self, device_needs: DeviceNeeds) -> bool:
        """Whether a shared claim has no devices yet: its first pod decides for all its pods."""
        return any(one.shared for one in self._open(device_needs))

    def pods(self, device_needs: DeviceNeeds, rows: Ints) -> Ints:
        """Return int64[m]: how many pods with these needs each row takes, if alone."""
        codes, index = _distinct(self._codes[rows])
        found: Ints = np.array(self.outcomes(device_needs).pods(codes, self.steps), np.int64)[index]
        return found

    def for_one_pod(
        self, device_needs: DeviceNeeds, rows: Ints
    ) -> tuple[Ints, list[ChosenDevices | Broken | None]]:
        """Return int64[m], an index into the second value: what one pod gets on a row."""
        codes, index = _distinct(self._codes[rows])
        asked = self.outcomes(device_needs)
        return index, [asked.for_one_pod(code, self.steps) for code in codes]

    def take(
        self, class_id: int, device_needs: DeviceNeeds, rows: Iterable[int], nodes: Iterable[str]
    ) -> None:
        """Allocate devices to one pod with these needs on each row, which must have them.

        ``class_id`` is that of the pods' class, by which ``pop_allocations`` finds the allocations.
        """
        for row, node in zip(rows, nodes, strict=True):
            claims, code = self._open(device_needs), int(self._codes[row])
            mine: list[tuple[int, Allocation]] = []
            if claims:
                chosen = self.outcomes(device_needs).for_one_pod(code, self.steps)
                assert isinstance(chosen, ChosenDevices), f"node {node} has no devices for the pod"
                for claim, picks in zip(claims, chosen.claims, strict=True):
                    given = _allocation(claim, picks, self._pools[row], node)
                    mine.append((claim.place, given))
                    if claim.shared:
                        self._shared[claim.shared] = given
                kind = less(self._kinds[code], chosen)
                self._codes[row] = self._kinds.code(kind)
                if self.steps is not None:
                    size = sum(len(pool.used) for pool in kind)
                    self.steps.take(1 + size // costs.DEVICES_TAKEN_PER_STEP)
            self._given[class_id, row] = (*self._given.get((class_id, row), ()), tuple(mine))

    def pop_allocations(self, class_id: int, row: int) -> Given:
        """Remove and return the allocations of the next pod of the class on the row."""
        first, *rest = self._given.pop((class_id, row))
        if rest:
            self._given[class_id, row] = tuple(rest)
        return first


def _distinct(codes: Codes) -> tuple[list[int], Ints]:
    """Return the distinct codes, sorted, and int64[m]: an index into them. Codes are small."""
    is_there = np.zeros(int(codes.max(initial=-1)) + 1, np.bool_)
    is_there[codes] = True
    index: Ints = (np.cumsum(is_there) - 1)[codes]
    return np.flatnonzero(is_there).tolist(), index


def _allocation(
    claim: UnallocatedClaim, picks: tuple[Pick, ...], pools: tuple[Pool, ...], node: str
) -> Allocation:
    """Return the allocation of one claim on the node, as the end of kube-scheduler's Allocate."""
    devices = []
    for pick in picks:
        request = claim.requests[pick.request]
        choice = request.choices[pick.choice]
        devices.append(
            GivenDevice(
                request=choice.label(request),
                device=pools[pick.pool].device(pick.device),
                tolerations_text=choice.wanted.tolerations_text,
            )
        )
    there = SelectorTerm(fields=(Requirement("metadata.name", "In", (node,)),))
    return Allocation(tuple(devices), (there,) if devices else None, _config(claim, picks))


def _config(claim: UnallocatedClaim, picks: tuple[Pick, ...]) -> tuple[GivenConfig, ...]:
    """Return the configuration of each class once, then the claim's entries that apply."""
    chosen = {pick.request: pick.choice for pick in picks}
    labels: dict[str, tuple[Choice, list[str]]] = {}
    for index, request in enumerate(claim.requests):
        choice = request.choices[chosen.get(index, 0)]
        _, requests = labels.setdefault(choice.device_class.name, (choice, []))
        requests.append(choice.label(request))
    found = [
        GivenConfig("FromClass", tuple(requests), one.text)
        for choice, requests in labels.values()
        for one in choice.device_class.config
    ]
    for config in claim.config:
        if not config.requests:
            found.append(GivenConfig("FromClaim", (), config.text))
            continue
        named = frozenset(config.requests)
        for index, request in enumerate(claim.requests):
            choice = request.choices[chosen.get(index, 0)]
            if request.name in named or choice.label(request) in named:
                found.append(GivenConfig("FromClaim", config.requests, config.text))
    return tuple(found)
