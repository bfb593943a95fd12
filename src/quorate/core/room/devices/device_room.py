"""The devices that are free while one cycle places gangs: devices taken here count as in use.

A part of ``Room``, copied with it for each gang. In: device needs and rows. Out: how many pods
each node takes, and an allocation for each claim of each placed pod.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from quorate.core.cluster.arrays import Codes, Ints
from quorate.core.cluster.devices.counts import ClaimKey, DeviceShares, added
from quorate.core.cluster.devices.devices import Devices
from quorate.core.cluster.devices.pools import Shares
from quorate.core.cluster.devices.requests import AllocatedClaim, DeviceNeeds, allocated_claim
from quorate.core.cluster.devices.views import DeviceViews
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import Allocation, DeviceId
from quorate.core.model.steps import Steps, costs
from quorate.core.room.devices.allocations import NeedsOutcomes, Outcomes
from quorate.core.room.devices.allocator import ChosenDevices
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.results import allocation, share_id

Given = tuple[tuple[int, Allocation], ...]
"""The allocations of one pod, each with the index of its claim in the pod."""


def by_nodes(
    device_needs: DeviceNeeds, snapshot: Snapshot, rows: Ints | None = None
) -> list[tuple[DeviceNeeds, Ints]]:
    """Return the device needs on these rows (None: all), grouped by equal needs.

    A node may list an extended resource; only where it does not, devices back the request.
    """
    if rows is None:
        rows = np.arange(len(snapshot))
    if device_needs.extended is None:
        return [(device_needs, rows)]
    backed = device_needs.extended.backed
    lacks = np.zeros(len(rows), np.int64)
    for bit, name in enumerate(backed):
        lacks |= (snapshot.sizes(name)[rows] == 0).astype(np.int64) << bit
    return [
        (
            device_needs.lacking(
                frozenset(name for bit, name in enumerate(backed) if code >> bit & 1)
            ),
            rows[lacks == code],
        )
        for code in np.unique(lacks).tolist()
    ]


class DeviceRoom:
    """Free devices of a room. It is valid until devices or nodes change, and changes neither.

    ``steps`` is the turn's budget; None sets no bound. Without steps left, a query raises
    ``OutOfStepsError``; the same query continues where it stopped in the next turn.
    """

    def __init__(
        self,
        devices: Devices,
        views: DeviceViews,
        nodes: NodeTable,
        outcomes: Outcomes,
        *,
        steps: Steps | None = None,
    ) -> None:
        views.refresh(devices, nodes)
        self.steps = steps
        self._devices = devices
        self._views = views
        self._outcomes = outcomes
        self._codes: Codes = views.lend(views.codes)
        self._used: set[DeviceId] = set()
        self._shares: dict[DeviceId, DeviceShares] = {}
        self._shared: dict[ClaimKey, Allocation] = {}
        self._given: dict[tuple[int, int], tuple[Given, ...]] = {}

    def copy(self) -> DeviceRoom:
        """Return an independent copy for a trial."""
        other = DeviceRoom.__new__(DeviceRoom)
        other.steps = self.steps
        other._devices, other._views, other._outcomes = self._devices, self._views, self._outcomes
        other._codes = self._views.lend(self._codes)
        other._used = set(self._used)
        other._shares = {device: shares.copy() for device, shares in self._shares.items()}
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

    def codes(self, rows: Ints) -> Codes:
        """Return int32[m]: the code of each row's kind of node, given what was taken here."""
        found: Codes = self._codes[self._views.of_row[rows]]
        return found

    def outcomes(self, device_needs: DeviceNeeds) -> NeedsOutcomes:
        """Return the cached outcomes for those claims of the needs that have no devices yet."""
        claims = tuple(one for one in device_needs.unallocated if one.shared not in self._shared)
        key = device_needs.id, device_needs.lacks, *(one.place for one in claims)
        return self._outcomes.of(key, claims, self._views.kinds)

    def is_settled(self, device_needs: DeviceNeeds) -> bool:
        """Whether all claims of the device needs have devices."""
        return all(one.shared in self._shared for one in device_needs.unallocated)

    def is_tied(self, device_needs: DeviceNeeds) -> bool:
        """Whether a shared claim has no devices yet: its first pod decides for all its pods."""
        return any(
            one.shared and one.shared not in self._shared for one in device_needs.unallocated
        )

    def pods(self, device_needs: DeviceNeeds, rows: Ints) -> Ints:
        """Return int64[m]: how many pods with these needs each row takes, if alone."""
        codes, index = _distinct(self.codes(rows))
        found: Ints = np.array(self.outcomes(device_needs).pods(codes, self.steps), np.int64)[index]
        return found

    def for_one_pod(
        self, device_needs: DeviceNeeds, rows: Ints
    ) -> tuple[Ints, list[ChosenDevices | Broken | None]]:
        """Return int64[m], an index into the second value: what one pod gets on a row."""
        codes, index = _distinct(self.codes(rows))
        asked = self.outcomes(device_needs)
        return index, [asked.for_one_pod(code, self.steps) for code in codes]

    def couples(self, device_needs: DeviceNeeds) -> bool:
        """Whether a device of one pod may be unavailable to other nodes, or must be shared."""
        if self.is_tied(device_needs):
            return True
        asked = self.outcomes(device_needs)
        for key in self._devices.shared_pools:
            views = self._views.views_of.get(key)
            if not views:
                continue
            view = min(views)
            seen = asked.seen_kind(int(self._codes[view]), self.steps)
            for pool, one in zip(self._views.views[view], seen, strict=True):
                if pool.key == key and any(device.look.usable for device in one.devices):
                    return True
        return False

    def take(
        self, class_id: int, device_needs: DeviceNeeds, rows: Iterable[int], nodes: Iterable[str]
    ) -> bool:
        """Allocate devices to one pod with these needs on each row; False if there are too few.

        ``class_id`` is that of the pods' class, by which ``pop_allocations`` finds the allocations.
        """
        for row, node in zip(rows, nodes, strict=True):
            view = int(self._views.of_row[row])
            mine: list[tuple[int, Allocation]] = []
            open_claims = [
                one for one in device_needs.unallocated if one.shared not in self._shared
            ]
            found = self.outcomes(device_needs).for_one_pod(int(self._codes[view]), self.steps)
            if not isinstance(found, ChosenDevices):
                return False
            pools = self._views.views[view]
            for claim, picks in zip(open_claims, found.claims, strict=True):
                given = allocation(claim, picks, pools, node, self._share_id)
                mine.append((claim.place, given))
                if claim.shared:
                    self._shared[claim.shared] = given
                self._use(given)
            key = class_id, row
            self._given[key] = (*self._given.get(key, ()), tuple(mine))
            if mine:
                self._recode(mine)
        return True

    def _share_id(self, device: DeviceId) -> str:
        """Reserve and return a new share id, different from all others of the device."""
        known = self._devices.share_ids(device)
        here = self._shares.setdefault(device, DeviceShares())
        number = len(known) + len(here.by_id)
        while (made := share_id(device, number)) in known or made in here.by_id:
            number += 1
        here.put(made, ())
        return made

    def pop_allocations(self, class_id: int, row: int) -> Given:
        """Remove and return the allocations of the next pod of the class on the row."""
        first, *rest = self._given.pop((class_id, row))
        if rest:
            self._given[class_id, row] = tuple(rest)
        return first

    def _use(self, given: Allocation) -> None:
        for one in given.devices:
            if one.admin:
                continue
            if one.share_id:
                self._shares[one.device].put(one.share_id, one.consumed)
            else:
                self._used.add(one.device)

    def _recode(self, mine: list[tuple[int, Allocation]]) -> None:
        """Update the codes of all views that contain the pools of the taken devices."""
        devices, views = self._devices, self._views

        def is_used(device: DeviceId) -> bool:
            return device in self._used or devices.is_used(device)

        def consumed(device: DeviceId) -> Shares | None:
            before, here = devices.consumed(device), self._shares.get(device)
            return before if here is None else added(before, here.in_sum())

        pools = {(g.device.driver, g.device.pool) for _, one in mine for g in one.devices}
        stale = sorted({view for pool in pools for view in views.views_of.get(pool, ())})
        for view in stale:
            self._codes[view] = views.kinds.code(views.kind(view, is_used, consumed))
        if self.steps is not None:
            seen = sum(len(pool.devices) for view in stale for pool in views.views[view])
            self.steps.take(1 + seen // costs.DEVICES_COUPLED_PER_STEP)


def _distinct(codes: Codes) -> tuple[list[int], Ints]:
    """Return the distinct codes, sorted, and int64[m]: an index into them. Codes are small."""
    is_there = np.zeros(int(codes.max(initial=-1)) + 1, np.bool_)
    is_there[codes] = True
    index: Ints = (np.cumsum(is_there) - 1)[codes]
    return np.flatnonzero(is_there).tolist(), index
