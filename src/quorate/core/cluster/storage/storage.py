"""The objects of storage, and which volumes are used on which node; updated by change.

In: storage objects, and pods that come and go. Out: claims, volumes, their users, and affected
pods. Owned by ``cluster.cluster``; read through ``volume_needs`` and ``room.volume_room``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from quorate.core.cluster.storage.volume_counts import VolumeCounts, VolumeId
from quorate.core.cluster.storage.volume_users import (
    OF_CLASS,
    OF_DRIVER,
    VolumeSet,
    VolumeUser,
    VolumeUsers,
)
from quorate.core.model import Pod
from quorate.core.model.storage import (
    READ_WRITE_ONCE_POD,
    AnyStorage,
    Claim,
    ClaimKey,
    CSINode,
    StorageClass,
    Volume,
)

K = TypeVar("K")
V = TypeVar("V")


class Storage:
    """Claims, volumes and their classes, and the living pods that use them."""

    def __init__(self, rows: int) -> None:
        self.nodes = VolumeCounts(rows)
        self.claims: dict[ClaimKey, Claim] = {}
        self.volumes: dict[str, Volume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.index = Index()
        self._users = VolumeUsers()
        self.users = self._users.by_uid
        self.users_of: dict[ClaimKey, dict[str, VolumeUser]] = {}
        self.sharers: dict[VolumeId, dict[str, VolumeUser]] = {}
        """The living pods that use a volume, by uid."""
        self.in_use: Counter[ClaimKey] = Counter()
        """The number of pods on nodes by claim, without ephemeral claims."""
        self.reserved: dict[str, ClaimKey] = {}
        """Volumes that a plan under way keeps for a claim."""
        self.kept_for: dict[ClaimKey, str] = {}
        """The same, by claim."""
        self.selected: dict[ClaimKey, str] = {}
        """The nodes for which a plan under way has claims provisioned."""
        self._assumed: dict[str, tuple[tuple[ClaimKey, str], ...]] = {}
        self._affected: set[str] = set()
        self._changed_classes: set[str] = set()
        """Storage classes in which a change may help any waiting claim."""
        self._changed_ids: set[VolumeId] = set()
        """Shared volumes that came to a node: there, another user does not count for the limit."""

    # Pods

    def add_pod(self, pod: Pod) -> None:
        """Add a pod, with or without a node; nothing is kept of a pod without volumes."""
        if not pod.claims:
            return
        user = self._users.add(pod)
        for key in user.volume_set.keys:
            users = self.users_of.setdefault(key, {})
            users[pod.uid] = user
            if len(users) == 2:  # the first pod shares the claim from now on
                self._note_affected(users)
        self._set_ids(user, self._ids_of(user))
        if user.volume_set.users == 1:
            self._note_helped_by(user)
        self._users.note(user)

    def drop(self, uid: str) -> None:
        """Remove a pod that has already left its node."""
        self.forget(uid)
        user = self.users.get(uid)
        if user is None:
            return
        self._set_ids(user, frozenset())
        self._users.remove(user)
        for key in user.volume_set.keys:
            users = self.users_of.get(key)
            if users is not None and users.pop(uid, None) is not None:
                if len(users) == 1:  # the last pod no longer shares the claim
                    self._note_affected(users)
                if not users:
                    del self.users_of[key]

    def replace(self, pod: Pod) -> None:
        """Take the newest version of a pod that has already left its node."""
        user = self.users.get(pod.uid)
        if user is None or user.pod.claims != pod.claims:
            self.drop(pod.uid)
            self.add_pod(pod)
        else:
            user.pod = pod
            self._users.note(user)

    def take(self, row: int, uid: str) -> None:
        """Count a pod on the row."""
        user = self.users.get(uid)
        if user is None:
            return
        user.row = row
        self._users.note(user)
        for volume_id in user.ids:
            self._count(volume_id, row)
        for key in user.volume_set.counted:
            self.in_use[key] += 1

    def remove_pod(self, uid: str) -> None:
        """Stop counting a pod on its row."""
        user = self.users.get(uid)
        if user is None or user.row < 0:
            return
        row, user.row = user.row, -1
        self._users.note(user)
        for volume_id in user.ids:
            self.nodes.count(volume_id, row, -1)
        for key in user.volume_set.counted:
            self.in_use[key] -= 1
            if not self.in_use[key]:
                del self.in_use[key]
                self._note_exclusive(key)

    def assume(self, uid: str, prepared: Iterable[tuple[ClaimKey, str, str]]) -> None:
        """Keep volumes and nodes for the claims of a pod whose plan is under way, until ``forget``.

        ``prepared`` are (claim, volume, node); volume "" means that one is to be provisioned.
        """
        kept = []
        for key, volume, node in prepared:
            kept.append((key, volume))
            if volume:
                self.reserved[volume], self.kept_for[key] = key, volume
            else:
                self.selected[key] = node
            self._note_affected(self.users_of.get(key, ()))
        if kept:
            self._assumed[uid] = tuple(kept)

    def forget(self, uid: str) -> None:
        """Undo ``assume``: the pod is bound, or will not be."""
        for key, volume in self._assumed.pop(uid, ()):
            if volume:
                self.reserved.pop(volume, None)
                self.kept_for.pop(key, None)
                found = self.volumes.get(volume)
                if found is not None and found.claim is None:  # the volume is free again
                    self._changed_classes.add(found.storage_class)
            else:
                self.selected.pop(key, None)
            self._note_affected(self.users_of.get(key, ()))

    # Objects

    def put(self, found: AnyStorage) -> None:
        """Take an object's newest version."""
        match found:
            case Claim():
                self._put_claim(found.key, found)
            case Volume():
                self._put_volume(found.name, found)
            case StorageClass() if found != self.classes.get(found.name):
                self.classes[found.name] = found
                self._refresh(self.index.claims_in.get(found.name, ()))
            case CSINode():
                self._note_drivers(self.nodes.set_limits(found.name, found))

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Forget an object; ``kind`` is the name of its struct."""
        match kind:
            case "Claim":
                self._put_claim(ClaimKey(namespace, name), None)
            case "Volume":
                self._put_volume(name, None)
            case "StorageClass":
                self.classes.pop(name, None)
                self._refresh(self.index.claims_in.get(name, ()))
            case "CSINode":
                self._note_drivers(self.nodes.set_limits(name, None))

    def take_affected_pods(self) -> set[str]:
        """Return the uids of pods for which the volume rules may have changed, and forget them."""
        classes = [(OF_CLASS, name) for name in sorted(self._changed_classes)]
        self._affected.update(self._users.waiting_for(classes))
        for volume_id in self._changed_ids:
            sharers = self.sharers.get(volume_id, {}).items()
            self._affected.update(uid for uid, one in sharers if uid in one.volume_set.waiting)
        self._changed_classes.clear()
        self._changed_ids.clear()
        affected, self._affected = self._affected, set()
        return affected

    def volume_id(self, claim: Claim) -> VolumeId | None:
        """Return the id by which a claim's volume is counted; None if no driver counts it."""
        volume = self.volumes.get(claim.volume) if claim.volume else None
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver and volume.handle else None
        found = self.classes.get(claim.storage_class)
        if found is None or not found.provisioner:
            return None
        return found.provisioner, f"/{claim.namespace}/{claim.name}"

    # Inside

    def _put_claim(self, key: ClaimKey, claim: Claim | None) -> None:
        before = self.claims.get(key)
        if before == claim:
            return
        if claim is None:
            del self.claims[key]
        else:
            self.claims[key] = claim
        self.index.claim_changed(key, before, claim)
        self._refresh((key,))

    def _put_volume(self, name: str, volume: Volume | None) -> None:
        before = self.volumes.get(name)
        if before == volume:
            return
        if volume is None:
            del self.volumes[name]
        else:
            self.volumes[name] = volume
        self.index.volume_changed(before, volume)
        if before is not None and volume is not None and _are_alike(before, volume):
            return
        concerned = set(self.index.claims_on.get(name, ()))
        if name in self.reserved:
            concerned.add(self.reserved[name])
        for one in (before, volume):
            if one is not None and one.claim is not None:
                concerned.add(ClaimKey(one.claim.namespace, one.claim.name))
        self._refresh(concerned)
        if volume is not None and volume.claim is None:  # any claim of its class may take it
            self._changed_classes.add(volume.storage_class)

    def _ids_of(self, user: VolumeUser) -> frozenset[VolumeId]:
        found = set()
        for use, key in zip(user.volume_set.claims, user.volume_set.keys, strict=True):
            claim = self.claims.get(key)
            if claim is None or (use.ephemeral and claim.controller != user.pod.uid):
                continue
            volume_id = self.volume_id(claim)
            if volume_id is not None:
                found.add(volume_id)
        return frozenset(found)

    def _set_ids(self, user: VolumeUser, ids: frozenset[VolumeId]) -> None:
        """Count a user's volumes by their new ids, in place of the old ones."""
        held = self._counted_at(user, user.ids - ids)
        for volume_id in user.ids - ids:
            sharers = self.sharers[volume_id]
            del sharers[user.pod.uid]
            if len(sharers) == 1:
                self._note_affected(sharers)
            if not sharers:
                del self.sharers[volume_id]
            if user.row >= 0:
                self.nodes.count(volume_id, user.row, -1)
        for volume_id in ids - user.ids:
            sharers = self.sharers.setdefault(volume_id, {})
            sharers[user.pod.uid] = user
            if len(sharers) == 2:
                self._note_affected(sharers)
            if user.row >= 0:
                self._count(volume_id, user.row)
        now = self._counted_at(user, user.ids - ids)
        self._note_drivers(driver for driver in held if now[driver] < held[driver])
        user.ids = ids

    def _count(self, volume_id: VolumeId, row: int) -> None:
        """Count one user more; others that share the volume may fit now despite a limit."""
        self.nodes.count(volume_id, row, 1)
        if volume_id[0] in self.nodes.limits and len(self.sharers[volume_id]) > 1:
            self._changed_ids.add(volume_id)

    def _counted_at(self, user: VolumeUser, ids: Iterable[VolumeId]) -> dict[str, int]:
        """Return by driver of these ids how many volumes are on the pod's node; no node: empty."""
        if user.row < 0:
            return {}
        return {driver: int(self.nodes.column(driver)[user.row]) for driver, _ in ids}

    def _note_helped_by(self, user: VolumeUser) -> None:
        """Record the drivers and storage classes whose changes may help pods with these volumes."""
        claims = (self.claims.get(key) for key in user.volume_set.keys)
        classes = {one.storage_class for one in claims if one is not None and not one.is_bound}
        helped_by = {(OF_DRIVER, driver) for driver, _ in user.ids}
        helped_by.update((OF_CLASS, name) for name in classes)
        self._users.set_helped_by(user.volume_set, frozenset(helped_by))

    def _refresh(self, keys: Iterable[ClaimKey]) -> None:
        """Count the users of these claims again: a claim may stand for another volume now."""
        for key in keys:
            users = self.users_of.get(key, {})
            ids_of: dict[VolumeSet, frozenset[VolumeId]] = {}
            for user in users.values():
                ids = ids_of.get(user.volume_set)
                is_first = ids is None
                if ids is None:
                    ids = ids_of[user.volume_set] = self._ids_of(user)
                if ids != user.ids:
                    self._set_ids(user, ids)
                if is_first:
                    self._note_helped_by(user)
            self._note_affected(users)

    def _note_exclusive(self, key: ClaimKey) -> None:
        """Note users as affected when a claim that one pod at a time may use is free again."""
        claim = self.claims.get(key)
        if claim is None or READ_WRITE_ONCE_POD in claim.access_modes:
            self._note_affected(self.users_of.get(key, ()))

    def _note_drivers(self, drivers: Iterable[str]) -> None:
        changes = [(OF_DRIVER, name) for name in sorted(drivers)]
        self._affected.update(self._users.waiting_for(changes))

    def _note_affected(self, uids: Iterable[str]) -> None:
        """Note pods for which the volume rules may have changed; their needs are computed again."""
        for uid in uids:
            self.users[uid].volume_set.volume_needs = None
            self._affected.add(uid)


def _are_alike(before: Volume, after: Volume) -> bool:
    return replace(before, version=after.version) == after


class Index:
    """Updated with each object as it was before and is after a change (None: it does not exist)."""

    def __init__(self) -> None:
        self.claims_on: dict[str, dict[ClaimKey, None]] = {}
        """Claims by the volume that they name."""
        self.claims_in: dict[str, dict[ClaimKey, None]] = {}
        """Claims by storage class."""
        self.volumes_in: dict[str, dict[str, None]] = {}
        """Volumes by storage class."""
        self.volumes_for: dict[ClaimKey, dict[str, None]] = {}
        """Volumes by the claim that they are kept for."""

    def claim_changed(self, key: ClaimKey, before: Claim | None, after: Claim | None) -> None:
        """Index a claim by its volume and class."""
        for one, change in ((before, _leave), (after, _join)):
            if one is not None:
                change(self.claims_on, one.volume, key)
                change(self.claims_in, one.storage_class, key)

    def volume_changed(self, before: Volume | None, after: Volume | None) -> None:
        """Index a volume by its class and the claim for which it is kept."""
        for one, change in ((before, _leave), (after, _join)):
            if one is not None:
                change(self.volumes_in, one.storage_class, one.name)
                if one.claim is not None:
                    key = ClaimKey(one.claim.namespace, one.claim.name)
                    if change is _join:
                        _join(self.volumes_for, key, one.name)
                    else:
                        _leave(self.volumes_for, key, one.name)


def _join(groups: dict[K, dict[V, None]], group: K, member: V) -> None:
    groups.setdefault(group, {})[member] = None


def _leave(groups: dict[K, dict[V, None]], group: K, member: V) -> None:
    groups[group].pop(member, None)
    if not groups[group]:
        del groups[group]
