"""The objects of device allocation, and which devices are in use; updated by change.

In: ResourceSlices, DeviceClasses, ResourceClaims, pods that use claims, allocations that plans
assume. Out: allocations, used devices, affected pods. Owned by ``cluster.cluster``. A device is in
use while a claim's status has it, or a bind under way may write it (``assumed``). ``views`` reads
from here what each node has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from quorate.core.cluster.devices.assumed import Assumed, ClaimKey
from quorate.core.model import (
    Allocation,
    DeviceClass,
    DeviceId,
    Pod,
    ResourceClaim,
    ResourceSlice,
    policy,
)
from quorate.core.model.quantity import DEVICE_CLASS_PREFIX

PoolKey = tuple[str, str]
"""A pool's driver and name."""


class Devices:
    """Devices, their classes and the claims on them."""

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.claims: dict[ClaimKey, ResourceClaim] = {}
        self.by_pool: dict[PoolKey, dict[str, ResourceSlice]] = {}
        """The slices of each pool, by their names."""
        self.left_out: dict[str, str] = {}
        """By slice, why devices of it are given to nobody."""
        self.stale_pools: dict[PoolKey, bool] = {}
        """Pools that have changed since ``views`` looked: True in their slices, False in use."""
        self.all_stale = False
        """Whether that are too many to be told apart."""
        self.has_changed = False
        """Whether a change may let a pod fit."""
        self.classes_version = 0
        self._classes_seen = 0
        self.users: dict[ClaimKey, set[str]] = {}
        """Uids of the pods that use a claim."""
        self._changed_claims: set[ClaimKey] = set()
        self._written: dict[ClaimKey, ResourceClaim] = {}
        """Claims as we wrote them, until the watch shows that version or a later one."""
        self.taken_back: set[ClaimKey] = set()
        """Claims whose devices we are taking back, until the watch shows a newer version."""
        self.assumed = Assumed()
        self.in_use: dict[PoolKey, Counter[str]] = {}
        """By pool and name, how many claims have a device; more than 1 is a violation."""

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

    # Slices and classes

    def put_slice(self, one: ResourceSlice) -> None:
        """Add or replace a slice."""
        if self.slices.get(one.name) == one:
            return
        self.remove_slice(one.name)
        self.slices[one.name] = one
        if why := _left_out(one):
            self.left_out[one.name] = why
        self.by_pool.setdefault((one.driver, one.pool), {})[one.name] = one
        self._slices_changed((one.driver, one.pool))

    def remove_slice(self, name: str) -> None:
        """Forget a slice."""
        one = self.slices.pop(name, None)
        if one is None:
            return
        self.left_out.pop(name, None)
        key = one.driver, one.pool
        del self.by_pool[key][name]
        if not self.by_pool[key]:
            del self.by_pool[key]
        self._slices_changed(key)

    def _slices_changed(self, key: PoolKey) -> None:
        self.has_changed = True
        self.stale_pools[key] = True
        if len(self.stale_pools) > policy.DEVICE_STALE_POOLS_MAX:
            self.stale_pools.clear()
            self.all_stale = True

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

    def backing(self, resource: str) -> DeviceClass | None:
        """Return the first class, by name, that backs an extended resource; or None."""
        return min(
            (
                one
                for one in self.classes.values()
                if resource in (one.extended, DEVICE_CLASS_PREFIX + one.name)
            ),
            key=lambda one: one.name,
            default=None,
        )

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
            self.assumed.claim_gone(key)
        self.claims[key] = claim
        self._changed_claims.add(key)
        self._recount(key, occupied)

    def remove_claim(self, key: ClaimKey) -> None:
        """Forget a claim: its devices are free."""
        self._written.pop(key, None)
        self.taken_back.discard(key)
        occupied = self._occupied(key)
        self.claims.pop(key, None)
        self.assumed.claim_gone(key)
        self._changed_claims.add(key)
        self._recount(key, occupied)

    def allocation(self, key: ClaimKey) -> Allocation | None:
        """Return a claim's allocation, from its status or as a plan assumes it, or None."""
        claim = self.claims.get(key)
        if claim is not None and claim.allocation is not None:
            return claim.allocation
        return next(iter(self.assumed.of_claim(key).values()), None)

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
        self._changed_claims.clear()
        return sorted(uids)

    def _occupied(self, key: ClaimKey) -> dict[DeviceId, None]:
        """Return what a claim keeps from others: by its status, and by binds under way."""
        claim = self.claims.get(key)
        found = [*self.assumed.of_claim(key).values()]
        if claim is not None and claim.allocation is not None:
            found.append(claim.allocation)
        return {
            given.device: None for alike in found for given in alike.devices if given.is_exclusive
        }

    def _recount(self, key: ClaimKey, before: dict[DeviceId, None]) -> None:
        after = self._occupied(key)
        freed = [device for device in before if device not in after]
        self.has_changed |= bool(freed)
        self._count(freed, -1)
        self._count([device for device in after if device not in before], 1)

    def _count(self, devices: Iterable[DeviceId], sign: int) -> None:
        for device in devices:
            key = device.driver, device.pool
            names = self.in_use.setdefault(key, Counter())
            names[device.name] += sign
            if not names[device.name]:
                del names[device.name]
            if not names:
                del self.in_use[key]
            if key in self.by_pool:
                self.stale_pools.setdefault(key, False)

    def holders(self, device: DeviceId) -> int:
        """Return how many claims have a device."""
        return self.in_use.get((device.driver, device.pool), Counter())[device.name]


def _left_out(one: ResourceSlice) -> str:
    """Return which field of a slice keeps devices of it from being given; "" if none does."""
    if one.devices and not one.node:
        return "spec.nodeName is not set"
    closed = ((at, device) for at, device in enumerate(one.devices) if device.traits.closed)
    at, device = next(closed, (0, None))
    return f"spec.devices[{at}].{device.traits.closed} is not supported" if device else ""


def _is_older(claim: ResourceClaim, other: ResourceClaim) -> bool:
    """Whether a claim is an earlier version of another; the API server's versions are numbers."""
    is_known = claim.version.isdecimal() and other.version.isdecimal()
    return claim.uid == other.uid and is_known and int(claim.version) < int(other.version)
