"""The objects of device allocation, and which devices are in use; updated by change.

In: ResourceSlices, DeviceClasses, ResourceClaims, pods that use claims, allocations that plans
assume. Out: allocations, used devices and shares, affected pods. Owned by ``cluster.cluster``. A
device is in use while a claim's status has it, or a bind under way may write it (``assumed``).
``views`` reads from here what each node sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from quorate.core.cluster.alarms import Alarms
from quorate.core.cluster.devices.assumed import Assumed
from quorate.core.cluster.devices.counts import ClaimKey, DeviceShares, SpecNumbers
from quorate.core.cluster.devices.pools import PoolKey, Shares
from quorate.core.model import (
    Allocation,
    DeviceClass,
    DeviceId,
    Pod,
    ResourceClaim,
    ResourceSlice,
    policy,
)
from quorate.core.model.devices import ClaimSpec, GivenDevice
from quorate.core.model.quantity import DEVICE_CLASS_PREFIX

_Occupied = dict[tuple[DeviceId, str], GivenDevice]
"""Devices that a claim keeps from others, or its shares of devices, by their ids."""


class Devices:
    """Devices, their classes and the claims on them. A claim's key is its namespace and name."""

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.claims: dict[ClaimKey, ResourceClaim] = {}
        self.of_node: dict[str, dict[str, ResourceSlice]] = {}
        """Slices for one node, by the node's name, then by their own."""
        self.of_several: dict[str, ResourceSlice] = {}
        self.by_pool: dict[PoolKey, dict[str, ResourceSlice]] = {}
        self.shared_pools: dict[PoolKey, None] = {}
        """Pools that several nodes reach: a device that one node uses is gone for the others."""
        self.stale_nodes: set[str] = set()
        """Names of nodes whose pools have to be gathered again."""
        self.all_stale = False
        self.stale_pools: set[PoolKey] = set()
        """Pools whose used devices have changed."""
        self.has_changed = False
        """Whether a change may let a pod fit."""
        self.classes_version = 0
        self.backed: dict[str, DeviceClass] = {}
        """By extended resource, the class that backs it."""
        self.special: dict[str, ClaimKey] = {}
        """By pod's uid, the special claim made for its extended resources."""
        self._classes_seen = 0
        self._specs = SpecNumbers()
        self.users: dict[ClaimKey, set[str]] = {}
        """Uids of the pods that use a claim."""
        self._changed_claims: set[ClaimKey] = set()
        self._changed_owners: set[str] = set()
        self._written: dict[ClaimKey, ResourceClaim] = {}
        """Claims as we wrote them, until the watch shows that version or a later one."""
        self.taken_back: set[ClaimKey] = set()
        """Claims whose devices we are taking back, until the watch shows a newer version."""
        self._due: Alarms[ClaimKey] = Alarms()
        """When the devices of a claim have to be ready (epoch seconds)."""
        self.assumed = Assumed()
        self._exclusive: Counter[DeviceId] = Counter()
        self._shares: dict[DeviceId, DeviceShares] = {}

    def spec_number(self, key: ClaimKey) -> int:
        """Return the number of a claim's spec. Equal specs share it; no other spec reuses it."""
        return self._specs.of[key]

    def spec(self, number: int) -> ClaimSpec:
        """Return the spec with a number; KeyError if no claim has it."""
        return self._specs[number]

    def put(self, found: ResourceSlice | DeviceClass | ResourceClaim) -> None:
        """Add or replace an object."""
        match found:
            case ResourceSlice():
                self.put_slice(found)
            case DeviceClass():
                self.put_class(found)
            case _:
                self.put_claim(found)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Forget an object."""
        match kind:
            case "ResourceSlice":
                self.remove_slice(name)
            case "DeviceClass":
                self.remove_class(name)
            case _:
                self.remove_claim((namespace, name))

    def take_news(self) -> tuple[bool, bool]:
        """Return whether a change may let a pod fit, and whether classes changed; forget both."""
        news = self.has_changed, self._classes_seen != self.classes_version
        self.has_changed, self._classes_seen = False, self.classes_version
        return news

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
        self._note_reach((one.driver, one.pool))
        self._slice_changed(one)

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
        self._slice_changed(one)
        if not pool:
            del self.by_pool[one.driver, one.pool]
            self.stale_pools.discard((one.driver, one.pool))
        self._note_reach((one.driver, one.pool))

    def _note_reach(self, key: PoolKey) -> None:
        names = {one.nodes.name if one.nodes else "" for one in self.by_pool.get(key, {}).values()}
        if len(names) > 1 or "" in names:
            self.shared_pools[key] = None
        else:
            self.shared_pools.pop(key, None)

    def _slice_changed(self, one: ResourceSlice) -> None:
        self.has_changed = True
        pool = (one, *self.by_pool[one.driver, one.pool].values())
        for part in pool:
            if part.nodes is not None and part.nodes.name:
                self.stale_nodes.add(part.nodes.name)
            else:
                self.all_stale = True
        if len(self.stale_nodes) > policy.DEVICE_STALE_NODES_MAX:
            self.stale_nodes.clear()
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
        self.has_changed = True
        self.classes_version += 1
        self.backed = {}
        # If several classes back one resource, the newest counts, then the first by name.
        for one in sorted(self.classes.values(), key=lambda c: (-c.created_s, c.name)):
            self.backed[DEVICE_CLASS_PREFIX + one.name] = one
            if one.extended:
                self.backed.setdefault(one.extended, one)

    # Claims

    def put_written(self, claim: ResourceClaim) -> None:
        """Add or replace a claim as we wrote it; older versions from the watch are then ignored."""
        key = claim.namespace, claim.name
        known = self.claims.get(key)
        if known is None or not _is_older(claim, known):
            self.put_claim(claim)
            self._written[key] = claim

    def written(self) -> list[ResourceClaim]:
        """Return the claims as we wrote them that the watch has not shown yet."""
        return list(self._written.values())

    def put_claim(self, claim: ResourceClaim) -> None:
        """Add or replace a claim; an allocation in its status comes before an assumed one."""
        key = claim.namespace, claim.name
        before = self.claims.get(key)
        written = self._written.get(key)
        if written is not None and _is_older(claim, written):
            return
        self._written.pop(key, None)
        if before == claim:
            return
        self.taken_back.discard(key)
        occupied = self._occupied(key)
        if before is not None and before.uid != claim.uid:
            self.assumed.claim_gone(before)
        if before is None or before.spec != claim.spec:
            self._specs.put(key, claim.spec)
        self.claims[key] = claim
        self._changed_claims.add(key)
        if claim.binding_pending and claim.binding_due_s is not None:
            self._due.set(key, claim.binding_due_s)
        else:
            self._due.discard(key)
        if claim.special and claim.owner_uid:
            self.special[claim.owner_uid] = key
            self._changed_owners.add(claim.owner_uid)
        self._recount(key, occupied)

    def remove_claim(self, key: ClaimKey) -> None:
        """Forget a claim: its devices are free, unless a bind under way makes it again."""
        self._written.pop(key, None)
        occupied = self._occupied(key)
        claim = self.claims.pop(key, None)
        self.taken_back.discard(key)
        self._specs.remove(key)
        self._changed_claims.add(key)
        self._due.discard(key)
        if claim is not None and self.special.get(claim.owner_uid) == key:
            del self.special[claim.owner_uid]
            self._changed_owners.add(claim.owner_uid)
        if claim is not None:
            self.assumed.claim_gone(claim)
        self._recount(key, occupied)

    def pass_time(self, now_s: float) -> None:
        """Mark claims as failed whose devices are not ready in time; a bounded number per call."""
        for _ in range(policy.DEVICE_LATE_CLAIMS_PER_TURN_MAX):
            due_s = self.due_s()
            if due_s is None or due_s >= now_s:
                return
            key = self._due.take_next()
            late = {"binding_failed": "not ready in time", "binding_pending": False}
            self.put_claim(msgspec.structs.replace(self.claims[key], **late))

    def due_s(self) -> float | None:
        """Return the next time when a claim's devices have to be ready (epoch seconds), or None."""
        return self._due.next_s()

    def allocation(self, key: ClaimKey) -> Allocation | None:
        """Return a claim's allocation, from its status or as a plan assumes it, or None."""
        claim = self.claims.get(key)
        if claim is not None and claim.allocation is not None:
            return claim.allocation
        assumed = self.assumed.of_claim(key)
        return assumed[0] if assumed else None

    def assume(self, key: ClaimKey, allocation: Allocation, uid: str) -> None:
        """Assume that a pod's bind writes an allocation into a claim, until ``forget``.

        ``uid`` is the pod's. While the claim's status has none, the one assumed first is its.
        """
        occupied = self._occupied(key)
        self.assumed.add(key, allocation, uid)
        self._recount(key, occupied)

    def forget(self, uid: str) -> None:
        """Stop assuming what a pod's bind writes: it has an outcome, so all is written or never."""
        for key in self.assumed.of_pod(uid):
            occupied = self._occupied(key)
            self.assumed.remove(key, uid)
            self._recount(key, occupied)

    @property
    def has_no_users(self) -> bool:
        """Whether no pod uses a claim, special claims included."""
        return not (self.users or self.special)

    def note_user(self, pod: Pod | None, before: Pod | None) -> None:
        """Record the claims that a pod uses. ``pod`` is None if it is gone, ``before`` if new."""
        if before is not None and (pod is None or pod.device_claims != before.device_claims):
            for entry in before.device_claims:
                key = before.namespace, entry.claim or ""
                uids = self.users.get(key, set())
                uids.discard(before.uid)
                if not uids:
                    self.users.pop(key, None)
        if pod is None:
            return
        for entry in pod.device_claims:
            self.users.setdefault((pod.namespace, entry.claim or ""), set()).add(pod.uid)

    def take_affected_pods(self) -> list[str]:
        """Return the uids of pods whose claims changed, sorted, and forget them."""
        uids = {uid for key in self._changed_claims for uid in self.users.get(key, ())}
        uids |= self._changed_owners
        self._changed_claims.clear()
        self._changed_owners.clear()
        return sorted(uids)

    def _occupied(self, key: ClaimKey) -> _Occupied:
        """Return what a claim keeps from others: by its status, and by binds under way."""
        found: _Occupied = {}
        claim = self.claims.get(key)
        if claim is not None and claim.allocation is not None:
            _add(found, claim.allocation)
        for allocation in self.assumed.of_claim(key):
            _add(found, allocation)
        return found

    def _recount(self, key: ClaimKey, before: _Occupied) -> None:
        after = self._occupied(key)
        freed = [given for what, given in before.items() if what not in after]
        self.has_changed |= bool(freed)
        self._count(freed, -1)
        self._count([given for what, given in after.items() if what not in before], 1)

    def _count(self, devices: Iterable[GivenDevice], sign: int) -> None:
        for given in devices:
            device = given.device
            if (device.driver, device.pool) in self.by_pool:
                self.stale_pools.add((device.driver, device.pool))
            if not given.share_id:
                self._exclusive[device] += sign
                if not self._exclusive[device]:
                    del self._exclusive[device]
                continue
            shares = self._shares.setdefault(device, DeviceShares())
            if sign > 0:
                shares.put(given.share_id, given.consumed)
            else:
                shares.remove(given.share_id)
            if not shares.by_id:
                del self._shares[device]

    def is_used(self, device: DeviceId) -> bool:
        """Whether a claim has the device exclusively."""
        return device in self._exclusive

    def holders(self, device: DeviceId) -> int:
        """Return how many claims have the device exclusively; more than 1 is a violation."""
        return self._exclusive[device]

    def consumed(self, device: DeviceId) -> Shares | None:
        """Return the capacity that all shares of the device consume; None if it has no shares."""
        shares = self._shares.get(device)
        return shares.in_sum() if shares is not None else None

    def share_ids(self, device: DeviceId) -> Collection[str]:
        """Return the ids of the shares of the device."""
        shares = self._shares.get(device)
        return shares.by_id.keys() if shares is not None else ()


def _add(found: _Occupied, allocation: Allocation) -> None:
    for one in allocation.devices:
        if not one.admin:  # an admin keeps a device from nobody
            found.setdefault((one.device, one.share_id), one)


def _is_older(claim: ResourceClaim, other: ResourceClaim) -> bool:
    """Whether a claim is an earlier version of another; the API server's versions are numbers."""
    is_known = claim.version.isdecimal() and other.version.isdecimal()
    return claim.uid == other.uid and is_known and int(claim.version) < int(other.version)
