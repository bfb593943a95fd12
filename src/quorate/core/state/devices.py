"""Slices, classes and claims by change: which devices there are, and who has them.

Owned by ``state.cluster``. A claim's devices are in use while its status says so, or while a plan
of ours assumes so. ``views`` says what each node sees; it is brought up to date when it is asked.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from quorate.core.model import Allocation, DeviceClass, DeviceId, ResourceClaim, ResourceSlice
from quorate.core.model.devices import EXTENDED_PREFIX, ClaimSpec, DeviceTraits
from quorate.core.quantity import exact
from quorate.core.state.pools import PoolKey, Shares

ClaimKey = tuple[str, str]


class Devices:
    """What claims may get. Claims are known by namespace and name."""

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.claims: dict[ClaimKey, ResourceClaim] = {}
        self.of_node: dict[str, dict[str, ResourceSlice]] = {}
        """Slices that name one node."""
        self.of_several: dict[str, ResourceSlice] = {}
        self.by_pool: dict[PoolKey, dict[str, ResourceSlice]] = {}
        self.traits: list[DeviceTraits] = []
        self.stale_nodes: set[str] = set()
        """Names of nodes whose pools have to be gathered anew."""
        self.all_stale = False
        self.stale_pools: set[PoolKey] = set()
        """Pools of which other devices are in use than before."""
        self.stirred = False
        """Whether something happened that may let a pod fit."""
        self.specs: list[ClaimSpec] = []
        self.classes_version = 0
        self._spec_numbers: dict[ClaimSpec, int] = {}
        self._numbers: dict[DeviceTraits, int] = {}
        self._assumed: dict[ClaimKey, Allocation] = {}
        self._exclusive: Counter[DeviceId] = Counter()
        self._shares: dict[DeviceId, dict[str, Shares]] = {}
        self._extended: dict[str, str] = {}

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing of resource.k8s.io in the cluster."""
        return not (self.slices or self.classes or self.claims)

    def number(self, traits: DeviceTraits) -> int:
        """Return the number of traits in ``self.traits``."""
        found = self._numbers.get(traits)
        if found is None:
            found = self._numbers[traits] = len(self.traits)
            self.traits.append(traits)
        return found

    def spec_number(self, spec: ClaimSpec) -> int:
        """Return the number of a claim's spec in ``self.specs``."""
        found = self._spec_numbers.get(spec)
        if found is None:
            found = self._spec_numbers[spec] = len(self.specs)
            self.specs.append(spec)
        return found

    # Slices

    def put_slice(self, one: ResourceSlice) -> None:
        """Add or replace a slice."""
        if self.slices.get(one.name) == one:
            return
        self.remove_slice(one.name)
        self.slices[one.name] = one
        if one.nodes is not None and one.nodes.name:
            self.of_node.setdefault(one.nodes.name, {})[one.name] = one
        else:
            self.of_several[one.name] = one
        self.by_pool.setdefault((one.driver, one.pool), {})[one.name] = one
        self._slice_stirred(one)

    def remove_slice(self, name: str) -> None:
        """Forget a slice."""
        one = self.slices.pop(name, None)
        if one is None:
            return
        if self.of_several.pop(name, None) is None and one.nodes is not None:
            of_node = self.of_node[one.nodes.name]
            del of_node[name]
            if not of_node:
                del self.of_node[one.nodes.name]
        pool = self.by_pool[one.driver, one.pool]
        del pool[name]
        self._slice_stirred(one)
        if not pool:
            del self.by_pool[one.driver, one.pool]

    def _slice_stirred(self, one: ResourceSlice) -> None:
        self.stirred = True
        pool = (one, *self.by_pool[one.driver, one.pool].values())
        for part in pool:
            if part.nodes is not None and part.nodes.name:
                self.stale_nodes.add(part.nodes.name)
            else:
                self.all_stale = True

    # Classes

    def put_class(self, found: DeviceClass) -> None:
        """Add or replace a device class."""
        if self.classes.get(found.name) != found:
            self.classes[found.name] = found
            self._classes_changed()

    def remove_class(self, name: str) -> None:
        """Forget a device class."""
        if self.classes.pop(name, None) is not None:
            self._classes_changed()

    def _classes_changed(self) -> None:
        """Find out which class stands for which extended resource: of several, the newest."""
        self.stirred = True
        self.classes_version += 1
        self._extended = {}
        for found in sorted(self.classes.values(), key=lambda c: (-c.created_s, c.name)):
            self._extended[EXTENDED_PREFIX + found.name] = found.name
            if found.extended_resource:
                self._extended.setdefault(found.extended_resource, found.name)

    def class_of_extended(self, resource: str) -> DeviceClass | None:
        """Return the class that backs an extended resource."""
        name = self._extended.get(resource)
        return self.classes[name] if name is not None else None

    # Claims

    def put_claim(self, claim: ResourceClaim) -> None:
        """Add or replace a claim; what its status says replaces what we assumed."""
        key = claim.namespace, claim.name
        before = self.claims.get(key)
        if before == claim:
            return
        allocated = self.allocation(key)
        if claim.allocation is not None or (before is not None and before.uid != claim.uid):
            self._assumed.pop(key, None)
        self.claims[key] = claim
        self._recount(allocated, self.allocation(key))

    def remove_claim(self, key: ClaimKey) -> None:
        """Forget a claim: its devices are free."""
        allocated = self.allocation(key)
        self.claims.pop(key, None)
        self._assumed.pop(key, None)
        self._recount(allocated, None)

    def allocation(self, key: ClaimKey) -> Allocation | None:
        """Return what a claim has, or will have when our plan is carried out."""
        claim = self.claims.get(key)
        return (claim.allocation if claim else None) or self._assumed.get(key)

    def assume(self, key: ClaimKey, allocation: Allocation) -> None:
        """Count devices for a claim that has none yet, until its status or ``forget`` says more."""
        before = self.allocation(key)
        self._assumed[key] = allocation
        self._recount(before, self.allocation(key))

    def forget(self, key: ClaimKey) -> None:
        """Stop assuming devices for a claim."""
        before = self.allocation(key)
        self._assumed.pop(key, None)
        self._recount(before, self.allocation(key))

    def is_assumed(self, key: ClaimKey) -> bool:
        """Whether the claim has devices only in a plan of ours."""
        return key in self._assumed

    def _recount(self, before: Allocation | None, after: Allocation | None) -> None:
        if _occupied(before) == _occupied(after):
            return  # our own plan, come true
        if before is not None:
            self._count(before, -1)
            self.stirred = True
        if after is not None:
            self._count(after, 1)

    def _count(self, allocation: Allocation, sign: int) -> None:
        for index, given in enumerate(allocation.devices):
            device = given.device
            if given.admin:
                continue
            self.stale_pools.add((device.driver, device.pool))
            if not given.share_id:
                self._exclusive[device] += sign
                if not self._exclusive[device]:
                    del self._exclusive[device]
                continue
            shares = self._shares.setdefault(device, {})
            share_id = given.share_id or str(index)
            if sign > 0:
                shares[share_id] = tuple((name, exact(text)) for name, text in given.consumed)
            else:
                shares.pop(share_id, None)
            if not shares:
                del self._shares[device]

    def is_used(self, device: DeviceId) -> bool:
        """Whether a claim has the device for itself."""
        return device in self._exclusive

    def shares(self, device: DeviceId) -> dict[str, Shares]:
        """Return what each share of the device consumes, by share id."""
        return self._shares.get(device, {})


def _occupied(allocation: Allocation | None) -> list[tuple[DeviceId, bool, str]]:
    given = allocation.devices if allocation is not None else ()
    return [(one.device, bool(one.admin), one.share_id) for one in given]


def in_sum(shares: dict[str, Shares]) -> Shares | None:
    """Return what all shares of a device consume; None when there is none."""
    if not shares:
        return None
    total: dict[str, Fraction] = {}
    for consumed in shares.values():
        for name, amount in consumed:
            total[name] = total.get(name, Fraction(0)) + amount
    return tuple(sorted(total.items()))
