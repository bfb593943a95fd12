"""The objects of storage, and which volumes are used where; updated by change.

Owned by ``state.cluster``; read through ``state.wants`` and ``plan.volume_room``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from quorate.core.model import Disk, Pod
from quorate.core.model.storage import (
    MIGRATED_DRIVERS,
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
from quorate.core.state.storage_index import Index
from quorate.core.state.volume_counts import VolumeCounts, VolumeId


def uses_volumes(pod: Pod) -> bool:
    """Whether volume rules have anything to say of the pod."""
    return bool(pod.claims or pod.shape.disks)


class User:
    """A living pod that uses volumes. ``row`` is -1 while it is on no known node."""

    __slots__ = ("ids", "pod", "row")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.row = -1
        self.ids: frozenset[VolumeId] = frozenset()

    def claims(self) -> list[ClaimKey]:
        """Return the claims that it uses."""
        return [ClaimKey(self.pod.namespace, use.name) for use in self.pod.claims]


class Storage:
    """Claims, volumes and their classes, and the living pods that use them."""

    def __init__(self, rows: int) -> None:
        self.nodes = VolumeCounts(rows)
        self.claims: dict[ClaimKey, Claim] = {}
        self.volumes: dict[str, Volume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.drivers: dict[str, CSIDriver] = {}
        self.capacities: dict[str, dict[ClaimKey, CSIStorageCapacity]] = {}
        """By storage class, then by namespace and name."""
        self._attachments: dict[str, VolumeAttachment] = {}
        self.index = Index()
        self.users: dict[str, User] = {}
        self.users_of: dict[ClaimKey, dict[str, User]] = {}
        self._unplaced: dict[str, User] = {}
        self.id_users: Counter[VolumeId] = Counter()
        """How many living pods use a volume."""
        self._attached_ids: dict[str, tuple[str, VolumeId]] = {}
        self.in_use: Counter[ClaimKey] = Counter()
        """Claims (not ephemeral ones) that pods on nodes use."""
        self.disks: dict[tuple[str, str], Counter[tuple[int, Disk]]] = {}
        self.reserved: dict[str, ClaimKey] = {}
        """Volumes that a plan under way keeps for a claim."""
        self.kept_for: dict[ClaimKey, str] = {}
        """The same, by claim."""
        self.selected: dict[ClaimKey, str] = {}
        """Nodes that a plan under way has a claim provisioned for."""
        self._assumed: dict[str, tuple[tuple[ClaimKey, str], ...]] = {}
        self.version = 0
        """Grows with each change of an object."""
        self._stirred: set[str] = set()
        self._stirred_classes: set[str] = set()
        """Storage classes of which any claim may be helped."""

    # Pods

    def hold(self, pod: Pod) -> None:
        """Note a pod that exists, with or without a node."""
        if not uses_volumes(pod):
            return
        user = self.users[pod.uid] = self._unplaced[pod.uid] = User(pod)
        for key in user.claims():
            self._stir(self.users_of.setdefault(key, {}))
            self.users_of[key][pod.uid] = user
        self._set_ids(user, self._ids_of(pod))

    def drop(self, uid: str) -> None:
        """Forget a pod; it must have left its node."""
        self.forget(uid)
        user = self.users.pop(uid, None)
        if user is None:
            return
        self._unplaced.pop(uid, None)
        self._set_ids(user, frozenset())
        for key in user.claims():
            users = self.users_of.get(key)
            if users is not None and users.pop(uid, None) is not None:
                self._stir(users)
                if not users:
                    del self.users_of[key]

    def replace(self, pod: Pod) -> None:
        """Take a pod's newest version; it must have left its node."""
        user = self.users.get(pod.uid)
        if user is None or (user.pod.claims, user.pod.shape.disks) != (pod.claims, pod.shape.disks):
            self.drop(pod.uid)
            self.hold(pod)
        else:
            user.pod = pod

    def take(self, row: int, uid: str) -> None:
        """Count a pod on the row."""
        user = self.users.get(uid)
        if user is None:
            return
        user.row = row
        self._unplaced.pop(uid, None)
        for volume_id in user.ids:
            self.nodes.count(volume_id, row, 1)
        for use, key in zip(user.pod.claims, user.claims(), strict=True):
            if not use.ephemeral:
                self.in_use[key] += 1
        for disk in user.pod.shape.disks:
            self.disks.setdefault((disk.plugin, disk.id), Counter())[row, disk] += 1

    def release(self, uid: str) -> None:
        """Stop counting a pod on its row."""
        user = self.users.get(uid)
        if user is None or user.row < 0:
            return
        row, user.row = user.row, -1
        self._unplaced[uid] = user
        for volume_id in user.ids:
            self.nodes.count(volume_id, row, -1)
        for use, key in zip(user.pod.claims, user.claims(), strict=True):
            self._stir(self.users_of[key])
            if not use.ephemeral:
                self.in_use[key] -= 1
                if not self.in_use[key]:
                    del self.in_use[key]
        for disk in user.pod.shape.disks:
            held = self.disks[disk.plugin, disk.id]
            held[row, disk] -= 1
            if not held[row, disk]:
                del held[row, disk]
                if not held:
                    del self.disks[disk.plugin, disk.id]

    def assume(self, uid: str, prepared: Iterable[tuple[ClaimKey, str, str]]) -> None:
        """Keep volumes and nodes for claims (claim, volume or "", node) until ``forget``.

        A plan that is being carried out gives them away.
        """
        kept = []
        for key, volume, node in prepared:
            kept.append((key, volume))
            if volume:
                self.reserved[volume], self.kept_for[key] = key, volume
            else:
                self.selected[key] = node
            self._stir(self.users_of.get(key, {}))
        if kept:
            self._assumed[uid] = tuple(kept)

    def forget(self, uid: str) -> None:
        """Undo ``assume``: the pod is bound, or will not be."""
        for key, volume in self._assumed.pop(uid, ()):
            if volume:
                self.reserved.pop(volume, None)
                self.kept_for.pop(key, None)
            else:
                self.selected.pop(key, None)
            self._stir(self.users_of.get(key, {}))

    # Objects

    def put(self, found: AnyStorage) -> None:
        """Take an object's newest version."""
        self.version += 1
        match found:
            case Claim():
                self._put_claim(found.key, found)
            case Volume():
                self._put_volume(found.name, found)
            case StorageClass():
                self.classes[found.name] = found
                self._refresh(self.index.claims_in.get(found.name, ()))
            case CSINode():
                self.nodes.set_limits(found.name, found)
                self._stir(self._unplaced)
            case CSIDriver():
                self.drivers[found.name] = found
                self._stir(self._unplaced)
            case CSIStorageCapacity():
                self._drop_capacity(ClaimKey(found.namespace, found.name))
                alike = self.capacities.setdefault(found.storage_class, {})
                alike[ClaimKey(found.namespace, found.name)] = found
                self._stirred_classes.add(found.storage_class)
            case VolumeAttachment():
                self._attach(found.name, found)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Forget an object; ``kind`` is the name of its struct."""
        self.version += 1
        match kind:
            case "Claim":
                self._put_claim(ClaimKey(namespace, name), None)
            case "Volume":
                self._put_volume(name, None)
            case "StorageClass":
                self.classes.pop(name, None)
                self._refresh(self.index.claims_in.get(name, ()))
            case "CSINode":
                self.nodes.set_limits(name, None)
                self._stir(self._unplaced)
            case "CSIDriver":
                self.drivers.pop(name, None)
                self._stir(self._unplaced)
            case "CSIStorageCapacity":
                self._drop_capacity(ClaimKey(namespace, name))
            case "VolumeAttachment":
                self._attach(name, None)
                self._stir(self._unplaced)

    def take_stirred(self) -> set[str]:
        """Return and forget the uids of pods of which the volume rules may say another thing."""
        for name in self._stirred_classes:
            for key in self.index.claims_in.get(name, ()):
                self._stir(uid for uid in self.users_of.get(key, ()) if uid in self._unplaced)
        self._stirred_classes.clear()
        stirred, self._stirred = self._stirred, set()
        return stirred

    def volume_id(self, claim: Claim) -> VolumeId | None:
        """Return as what a claim's volume is counted; None where it counts for no driver."""
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
        if claim is None:
            self.claims.pop(key, None)
        else:
            self.claims[key] = claim
        self.index.claim_changed(key, before, claim)
        self._refresh((key,))

    def _put_volume(self, name: str, volume: Volume | None) -> None:
        before = self.volumes.get(name)
        if volume is None:
            self.volumes.pop(name, None)
        else:
            self.volumes[name] = volume
        self.index.volume_changed(before, volume)
        concerned = set(self.index.claims_on.get(name, ()))
        for one in (before, volume):
            if one is not None and one.claim is not None:
                concerned.add(ClaimKey(one.claim.namespace, one.claim.name))
        self._refresh(concerned)
        if volume is not None and volume.claim is None:  # it may be had by any claim of its class
            self._stirred_classes.add(volume.storage_class)
        for attachment in list(self.index.attachments_of.get(name, ())):
            self._attach(attachment, self._attachments[attachment])

    def _drop_capacity(self, key: ClaimKey) -> None:
        for storage_class, alike in list(self.capacities.items()):
            if alike.pop(key, None) is not None and not alike:
                del self.capacities[storage_class]

    def _attach(self, name: str, attachment: VolumeAttachment | None) -> None:
        before = self._attached_ids.pop(name, None)
        if before is not None:
            self.nodes.count_attached(*before, -1)
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

    def _ids_of(self, pod: Pod) -> frozenset[VolumeId]:
        found = set()
        for use in pod.claims:
            claim = self.claims.get(ClaimKey(pod.namespace, use.name))
            if claim is None or (use.ephemeral and claim.controller != pod.uid):
                continue
            volume_id = self.volume_id(claim)
            if volume_id is not None:
                found.add(volume_id)
        for disk in pod.shape.disks:
            if disk.plugin in MIGRATED_DRIVERS:
                found.add((MIGRATED_DRIVERS[disk.plugin], disk.id))
        return frozenset(found)

    def _set_ids(self, user: User, ids: frozenset[VolumeId]) -> None:
        """Count a user's volumes as what they are now."""
        for volume_id in user.ids - ids:
            self.id_users[volume_id] -= 1
            if not self.id_users[volume_id]:
                del self.id_users[volume_id]
            if user.row >= 0:
                self.nodes.count(volume_id, user.row, -1)
        for volume_id in ids - user.ids:
            self.id_users[volume_id] += 1
            if user.row >= 0:
                self.nodes.count(volume_id, user.row, 1)
        user.ids = ids

    def _refresh(self, keys: Iterable[ClaimKey]) -> None:
        """Look again at who uses these claims: they may mean other volumes now."""
        for key in keys:
            for user in self.users_of.get(key, {}).values():
                self._set_ids(user, self._ids_of(user.pod))
        self._stir_claims(keys)

    def _stir_claims(self, keys: Iterable[ClaimKey]) -> None:
        for key in keys:
            self._stir(self.users_of.get(key, ()))

    def _stir(self, uids: Iterable[str]) -> None:
        self._stirred.update(uids)
