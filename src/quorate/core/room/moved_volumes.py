"""Volumes of pods that a trial removes from one node or adds to it. Used by ``volume_room``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from quorate.core.cluster.storage.storage import Storage
from quorate.core.cluster.storage.volume_counts import VolumeId
from quorate.core.model.storage import ClaimKey, Disk

_NONE: Counter[int] = Counter()


class MovedVolumes:
    """Changes, against the cluster, in how many pods use volumes, claims and disks on a row."""

    def __init__(self, storage: Storage, row: int) -> None:
        self.row = row
        self._storage = storage
        self._ids: Counter[VolumeId] = Counter()
        self._claims: Counter[ClaimKey] = Counter()
        self._disks: Counter[Disk] = Counter()

    def shift(self, uid: str, pods: int) -> bool:
        """Add a pod to the row (1) or remove it (-1); return whether the pod uses volumes."""
        user = self._storage.users.get(uid)
        if user is None:
            return False
        for volume_id in user.ids:
            self._ids[volume_id] += pods
        for key in user.volume_set.counted:
            self._claims[key] += pods
        for disk in user.volume_set.disks:
            self._disks[disk] += pods
        return True

    def is_used(self, claims: Iterable[ClaimKey]) -> bool:
        """Whether a pod on any node uses one of the claims."""
        used = [(key in self._storage.in_use) + self._claims[key] for key in set(claims)]
        return sum(used) > 0

    def has_disk(self, disk: Disk) -> bool:
        """Whether a pod on the row has a disk that conflicts with this one."""
        held = self._storage.disks.get((disk.plugin, disk.id), {})
        return any(
            disk.conflicts(other)
            and held.get(other, _NONE)[self.row] + self._disks.get(other, 0) > 0
            for other in held.keys() | self._disks.keys()
        )

    def holds(self, volume_id: VolumeId) -> bool:
        """Whether a pod on the row uses the volume."""
        return self._held(volume_id) + self._ids[volume_id] > 0

    def change(self, driver: str, also: Mapping[VolumeId, Collection[int]]) -> int:
        """Return the change in the number of the driver's volumes on the row; may be negative.

        ``also`` has, by volume, rows where pods use it that the cluster does not count yet.
        """
        moved: Iterable[VolumeId] = (one for one in self._ids if one[0] == driver)
        counts = self._storage.nodes
        return sum(
            self.holds(one) - (self._held(one) > 0)
            for one in moved
            if not counts.is_attached(one, self.row) and self.row not in also.get(one, ())
        )

    def _held(self, volume_id: VolumeId) -> int:
        return self._storage.nodes.holders.get(volume_id, Counter())[self.row]
