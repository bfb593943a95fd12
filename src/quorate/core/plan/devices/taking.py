"""The devices that are left while one cycle places gangs: what was taken here counts as in use.

A copy of it is tried with each gang, like the room that it belongs to. In: asks and rows. Out: how
many pods each node takes, and an allocation for each claim of each pod that was placed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from quorate.core.model import Allocation, DeviceId
from quorate.core.plan.devices.allocator import Found
from quorate.core.plan.devices.expressions import Broken
from quorate.core.plan.devices.outcomes import Asked, Outcomes
from quorate.core.plan.devices.results import allocation, share_id
from quorate.core.state.arrays import Codes, Ints
from quorate.core.state.device_asks import Ask, HeldClaim
from quorate.core.state.device_views import DeviceViews
from quorate.core.state.devices import ClaimKey, Consumed, Devices
from quorate.core.state.nodes import NodeTable

Given = tuple[tuple[int, Allocation], ...]
"""The allocations of one pod, each with the place of its claim among the pod's."""


class Taking:
    """Devices of a room. Nothing here changes the cluster."""

    def __init__(
        self, devices: Devices, views: DeviceViews, nodes: NodeTable, outcomes: Outcomes
    ) -> None:
        views.refresh(devices, nodes)
        self._devices = devices
        self._views = views
        self._outcomes = outcomes
        self._codes: Codes = views.codes.copy()
        self._used: set[DeviceId] = set()
        self._shares: dict[DeviceId, dict[str, Consumed]] = {}
        self._shared: dict[ClaimKey, Allocation] = {}
        self._given: dict[tuple[int, int], tuple[Given, ...]] = {}

    def copy(self) -> Taking:
        """Return one of its own to try something with."""
        other = Taking.__new__(Taking)
        other._devices, other._views, other._outcomes = self._devices, self._views, self._outcomes
        other._codes = self._codes.copy()
        other._used, other._shares = set(self._used), dict(self._shares)
        other._shared, other._given = dict(self._shared), dict(self._given)
        return other

    def held(self, ask: Ask) -> tuple[HeldClaim, ...]:
        """Return the claims that have devices, also those that got them here."""
        given = [self._shared[c.shared] for c in ask.open if c.shared in self._shared and c.shared]
        return (*ask.held, *(HeldClaim(one.nodes) for one in given))

    def codes(self, rows: Ints) -> Codes:
        """Return int32[m]: the code of each row's kind, as things are here."""
        found: Codes = self._codes[self._views.of_row[rows]]
        return found

    def asked(self, ask: Ask) -> Asked:
        """Return what is known for the claims of an ask that have no devices yet."""
        claims = tuple(one for one in ask.open if one.shared not in self._shared)
        return self._outcomes.of(claims, self._views.kinds, self._devices.traits)

    def is_settled(self, ask: Ask) -> bool:
        """Whether all claims of the ask have devices."""
        return all(one.shared in self._shared for one in ask.open)

    def pods(self, ask: Ask, rows: Ints) -> Ints:
        """Return int64[m]: how many pods of the ask each of the rows takes, one after the other."""
        codes, index = _distinct(self.codes(rows))
        found: Ints = np.array(self.asked(ask).pods(codes), np.int64)[index]
        return found

    def found(self, ask: Ask, rows: Ints) -> tuple[Ints, list[Found | Broken | None]]:
        """Return int64[m], an index into the list of what one pod gets on each of the rows."""
        codes, index = _distinct(self.codes(rows))
        asked = self.asked(ask)
        return index, [asked.found(code) for code in codes]

    def couples(self, ask: Ask) -> bool:
        """Whether a device given to one pod may be missing on another node, or must be shared."""
        if ask.is_shared and not self.is_settled(ask):
            return True
        several = [
            pool
            for key, views in self._views.views_of.items()
            if views and self._views.is_for_several(key)
            for pool in self._views.views[min(views)]
            if pool.key == key
        ]
        asked = self.asked(ask)
        return any(asked.can_use(n) for pool in several for n in {d.traits for d in pool.devices})

    def take(self, class_id: int, ask: Ask, rows: Iterable[int], nodes: Iterable[str]) -> bool:
        """Give devices to one pod of the ask on each of the rows; False when there are too few.

        ``class_id`` is that of the pods' class, for ``given``.
        """
        for row, node in zip(rows, nodes, strict=True):
            view = int(self._views.of_row[row])
            mine: list[tuple[int, Allocation]] = []
            open_claims = [one for one in ask.open if one.shared not in self._shared]
            found = self.asked(ask).found(int(self._codes[view]))
            if not isinstance(found, Found):
                return False
            pools, traits = self._views.views[view], self._devices.traits
            for claim, picks in zip(open_claims, found.claims, strict=True):
                given = allocation(claim, picks, pools, traits, node, self._share_id)
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
        """Return an id for one more share of a device, unlike those that it has; it has it then."""
        known = self._devices.shares(device).keys() | self._shares.get(device, {}).keys()
        number = len(known)
        while (made := share_id(device, number)) in known:
            number += 1
        self._shares[device] = {**self._shares.get(device, {}), made: ()}
        return made

    def hand_out(self, class_id: int, row: int) -> Given:
        """Return what the first pod of the class on the row got that was not handed out yet."""
        first, *rest = self._given.pop((class_id, row))
        if rest:
            self._given[class_id, row] = tuple(rest)
        return first

    def _use(self, given: Allocation) -> None:
        used = []
        for one in given.devices:
            if one.admin:
                continue
            if not one.share_id:
                used.append(one.device)
                continue
            shares = self._shares.get(one.device, {})
            self._shares[one.device] = {**shares, one.share_id: one.consumed}
        self._used.update(used)

    def _recode(self, mine: list[tuple[int, Allocation]]) -> None:
        """Find the codes of the views that see the devices that were taken."""
        devices, views = self._devices, self._views

        def is_used(device: DeviceId) -> bool:
            return device in self._used or devices.is_used(device)

        def shares(device: DeviceId) -> dict[str, Consumed]:
            here = self._shares.get(device)
            return {**devices.shares(device), **here} if here else devices.shares(device)

        pools = {(g.device.driver, g.device.pool) for _, one in mine for g in one.devices}
        for view in {view for pool in pools for view in views.views_of.get(pool, ())}:
            self._codes[view] = views.kinds.code(views.kind(view, is_used, shares))


def _distinct(codes: Codes) -> tuple[list[int], Ints]:
    """Return the different codes in order, and int64[m]: an index into them. Codes are small."""
    is_there = np.zeros(int(codes.max(initial=-1)) + 1, np.bool_)
    is_there[codes] = True
    index: Ints = (np.cumsum(is_there) - 1)[codes]
    return np.flatnonzero(is_there).tolist(), index
