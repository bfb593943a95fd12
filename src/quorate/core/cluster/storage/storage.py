"""The objects of storage, and which volumes are used on which node; updated by change.

In: storage objects, and pods that come and go. Out: claims, volumes, their users, and affected
pods. Owned by ``cluster.cluster``; read through ``volume_needs`` and ``room.volume_room``.
"""

from __future__ import annotations  # noqa: I001

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from quorate.core.cluster.storage.capacities import Capacities
from quorate.core.cluster.storage.storage_index import Index
from quorate.core.cluster.storage.volume_counts import VolumeCounts, VolumeId
from quorate.core.cluster.storage.volume_users import OF_CLASS, OF_DRIVER, VolumeSet, VolumeUser
from quorate.core.cluster.storage.volume_users import VolumeUsers, uses_volumes
from quorate.core.model import Disk, Pod
from quorate.core.model.storage import (
    MIGRATED_DRIVERS,
    READ_WRITE_ONCE_POD,
    UNCOUNTED_PROVISIONERS,
    AnyStorage,
    Claim,
    ClaimKey,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    Volume,
    VolumeAttachment,
)


class Storage:
    """Claims, volumes and their classes, and the living pods that use them."""

    def __init__(self, rows: int) -> None:
        self.nodes = VolumeCounts(rows)
        self.claims: dict[ClaimKey, Claim] = {}
        self.volumes: dict[str, Volume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.drivers: dict[str, CSIDriver] = {}
        self.capacities = Capacities()
        self._attachments: dict[str, VolumeAttachment] = {}
        self.index = Index()
        self._users = VolumeUsers()
        self.users = self._users.by_uid
        self.users_of: dict[ClaimKey, dict[str, VolumeUser]] = {}
        self.sharers: dict[VolumeId, dict[str, VolumeUser]] = {}
        """The living pods that use a volume, by uid."""
        self._attached_ids: dict[str, tuple[str, VolumeId]] = {}
        self.in_use: Counter[ClaimKey] = Counter()
        """The number of pods on nodes by claim, without ephemeral claims."""
        self.disks: dict[tuple[str, str], dict[Disk, Counter[int]]] = {}
        """How many pods mount a disk, by its plugin and id, then by mount mode, then by row."""
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
        if not uses_volumes(pod):
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
        if user is None or (user.pod.claims, user.pod.spec.disks) != (pod.claims, pod.spec.disks):
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
        for disk in user.volume_set.disks:
            alike = self.disks.setdefault((disk.plugin, disk.id), {})
            alike.setdefault(disk, Counter())[row] += 1

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
        for disk in user.volume_set.disks:
            alike = self.disks[disk.plugin, disk.id]
            alike[disk][row] -= 1
            if not alike[disk][row]:
                del alike[disk][row]
            if not alike[disk]:
                del alike[disk]
            if not alike:
                del self.disks[disk.plugin, disk.id]

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
            case CSIDriver():
                self._put_driver(found.name, found)
            case CSIStorageCapacity():
                if self.capacities.put(found):
                    self._changed_classes.add(found.storage_class)
            case VolumeAttachment():
                self._attach(found.name, found)

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
            case "CSIDriver":
                self._put_driver(name, None)
            case "CSIStorageCapacity":
                self.capacities.remove(ClaimKey(namespace, name))
            case "VolumeAttachment":
                self._attach(name, None)

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
        if found is None or found.provisioner in UNCOUNTED_PROVISIONERS:
            return None
        driver = MIGRATED_DRIVERS.get(found.provisioner, found.provisioner)
        return driver, f"/{claim.namespace}/{claim.name}"

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
        for attachment in list(self.index.attachments_of.get(name, ())):
            self._attach(attachment, self._attachments[attachment])

    def _put_driver(self, name: str, driver: CSIDriver | None) -> None:
        """Take a driver; when its capacity is no longer checked, claims of its classes may fit."""
        before = self.drivers.pop(name, None)
        if driver is not None:
            self.drivers[name] = driver
        was_checked = before is not None and before.storage_capacity
        if was_checked and not (driver is not None and driver.storage_capacity):
            found = (one.name for one in self.classes.values() if one.provisioner == name)
            self._changed_classes.update(found)

    def _attach(self, name: str, attachment: VolumeAttachment | None) -> None:
        """Take an attachment; one volume fewer on a node may let another volume in."""
        before = self._attached_ids.pop(name, None)
        if before is not None and self.nodes.count_attached(*before, -1):
            self._note_drivers((before[1][0],))
        self.index.attachment_changed(name, self._attachments.pop(name, None), attachment)
        if attachment is None:
            return
        self._attachments[name] = attachment
        volume = self.volumes.get(attachment.volume)
        if volume is None or volume.in_tree or not volume.driver or not attachment.attacher:
            return
        volume_id = attachment.attacher, volume.handle
        self._attached_ids[name] = attachment.node, volume_id
        self.nodes.count_attached(attachment.node, volume_id, 1)

    def _ids_of(self, user: VolumeUser) -> frozenset[VolumeId]:
        found = set()
        for use, key in zip(user.volume_set.claims, user.volume_set.keys, strict=True):
            claim = self.claims.get(key)
            if claim is None or (use.ephemeral and claim.controller != user.pod.uid):
                continue
            volume_id = self.volume_id(claim)
            if volume_id is not None:
                found.add(volume_id)
        for disk in user.volume_set.disks:
            if disk.plugin in MIGRATED_DRIVERS:
                found.add((MIGRATED_DRIVERS[disk.plugin], disk.id))
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
