"""Living pods that use claims, and the changes of storage that may help waiting ones.

Owned by ``cluster.storage.storage``. Pods with the same volumes share one ``VolumeSet``, so that
their needs are computed once, even for a large gang that mounts one claim.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.core.cluster.storage.needs import VolumeNeeds
from quorate.core.cluster.storage.volume_counts import VolumeId
from quorate.core.model import Pod
from quorate.core.model.storage import ClaimKey, ClaimUse

OF_DRIVER, OF_CLASS = "driver", "class"
StorageChange = tuple[str, str]
"""A change that may help a waiting pod: in volumes of a driver, or in claims of a storage class."""


class VolumeSet:
    """The claims of pods with the same volumes."""

    __slots__ = (
        "claims",
        "counted",
        "helped_by",
        "keys",
        "users",
        "volume_needs",
        "waiting",
    )

    def __init__(self, pod: Pod) -> None:
        self.claims: tuple[ClaimUse, ...] = pod.claims
        self.keys = tuple(ClaimKey(pod.namespace, use.name) for use in self.claims)
        self.counted = tuple(
            key for use, key in zip(self.claims, self.keys, strict=True) if not use.ephemeral
        )
        """Claims that other pods may use too: all but the ephemeral ones."""
        self.users = 0
        self.waiting: dict[str, None] = {}
        """Uids of the pods that have no node yet."""
        self.helped_by: frozenset[StorageChange] = frozenset()
        """The changes that may help these pods."""
        self.volume_needs: VolumeNeeds | None = None
        """A cache of the pods' volume needs; a change clears it."""


class VolumeUser:
    """A living pod that uses volumes. ``row`` is -1 while it is on no known node."""

    __slots__ = ("ids", "pod", "row", "volume_set")

    def __init__(self, pod: Pod, volume_set: VolumeSet) -> None:
        self.pod = pod
        self.volume_set = volume_set
        self.row = -1
        self.ids: frozenset[VolumeId] = frozenset()
        """The ids by which its volumes are counted."""


class VolumeUsers:
    """Users by uid, and their volume sets by the changes that may help them."""

    def __init__(self) -> None:
        self.by_uid: dict[str, VolumeUser] = {}
        self._volume_sets: dict[object, VolumeSet] = {}
        self._by_change: dict[StorageChange, dict[VolumeSet, None]] = {}

    def add(self, pod: Pod) -> VolumeUser:
        """Add a pod; return it as a user."""
        key = _key_of(pod)
        volume_set = self._volume_sets.get(key)
        if volume_set is None:
            volume_set = self._volume_sets[key] = VolumeSet(pod)
        volume_set.users += 1
        user = self.by_uid[pod.uid] = VolumeUser(pod, volume_set)
        return user

    def remove(self, user: VolumeUser) -> None:
        """Remove a pod."""
        del self.by_uid[user.pod.uid]
        volume_set = user.volume_set
        volume_set.waiting.pop(user.pod.uid, None)
        volume_set.users -= 1
        if not volume_set.users:
            self.set_helped_by(volume_set, frozenset())
            del self._volume_sets[_key_of(user.pod)]

    def note(self, user: VolumeUser) -> None:
        """Update whether the pod waits for a node."""
        if user.row < 0 and not user.pod.node:
            user.volume_set.waiting[user.pod.uid] = None
        else:
            user.volume_set.waiting.pop(user.pod.uid, None)

    def set_helped_by(self, volume_set: VolumeSet, helped_by: frozenset[StorageChange]) -> None:
        """Replace the changes that may help pods with these volumes."""
        for one in volume_set.helped_by - helped_by:
            there = self._by_change[one]
            del there[volume_set]
            if not there:
                del self._by_change[one]
        for one in helped_by - volume_set.helped_by:
            self._by_change.setdefault(one, {})[volume_set] = None
        volume_set.helped_by = helped_by

    def waiting_for(self, changes: Iterable[StorageChange]) -> list[str]:
        """Return the uids of the waiting pods that one of these changes may help."""
        found = (volume_set for one in changes for volume_set in self._by_change.get(one, ()))
        return [uid for volume_set in found for uid in volume_set.waiting]


def _key_of(pod: Pod) -> object:
    """Return the key by which pods share ``VolumeSet``; a pod with ephemeral claims has its own."""
    own = pod.uid if any(use.ephemeral for use in pod.claims) else ""
    return pod.namespace, pod.claims, own
