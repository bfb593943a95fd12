"""Living pods that use claims or disks, and the changes of storage that may help waiting ones.

Owned by ``cluster.storage.storage``. Pods with the same volumes share one ``Uses``, so that their
needs are computed once, even for a large gang that mounts one claim.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.core.cluster.storage.needs import VolumeNeeds
from quorate.core.cluster.storage.volume_counts import VolumeId
from quorate.core.model import Disk, Pod, policy
from quorate.core.model.storage import ClaimKey, ClaimUse

OF_DRIVER, OF_CLASS = "driver", "class"
Matter = tuple[str, str]
"""A change that may help a waiting pod: in volumes of a driver, or in claims of a storage class."""


def uses_volumes(pod: Pod) -> bool:
    """Whether volume rules apply to the pod."""
    return bool(pod.claims or pod.spec.disks)


def volumes_of(pod: Pod) -> int:
    """Return the number of the pod's claims and disks."""
    return len(pod.claims) + len(pod.spec.disks)


class Uses:
    """The claims and disks of pods with the same volumes, at most ``policy.VOLUMES_PER_POD_MAX``.

    A pod with more is not placed; if it runs already, the rest is not counted.
    """

    __slots__ = (
        "claims",
        "counted",
        "disks",
        "keys",
        "matters",
        "users",
        "volume_needs",
        "waiting",
    )

    def __init__(self, pod: Pod) -> None:
        most = policy.VOLUMES_PER_POD_MAX
        self.claims: tuple[ClaimUse, ...] = pod.claims[:most]
        self.keys = tuple(ClaimKey(pod.namespace, use.name) for use in self.claims)
        self.disks: tuple[Disk, ...] = pod.spec.disks[: most - len(self.claims)]
        self.counted = tuple(
            key for use, key in zip(self.claims, self.keys, strict=True) if not use.ephemeral
        )
        """Claims that other pods may use too: all but the ephemeral ones."""
        self.users = 0
        self.waiting: dict[str, None] = {}
        """Uids of the pods that have no node yet."""
        self.matters: frozenset[Matter] = frozenset()
        """The changes that may help these pods."""
        self.volume_needs: VolumeNeeds | None = None
        """A cache of the pods' volume needs; a change clears it."""


class User:
    """A living pod that uses volumes. ``row`` is -1 while it is on no known node."""

    __slots__ = ("ids", "pod", "row", "uses")

    def __init__(self, pod: Pod, uses: Uses) -> None:
        self.pod = pod
        self.uses = uses
        self.row = -1
        self.ids: frozenset[VolumeId] = frozenset()
        """The ids by which its volumes are counted."""


class Users:
    """Users by uid, and their ``Uses`` by the changes that may help them."""

    def __init__(self) -> None:
        self.by_uid: dict[str, User] = {}
        self._uses: dict[object, Uses] = {}
        self._of_matter: dict[Matter, dict[Uses, None]] = {}

    def add(self, pod: Pod) -> User:
        """Add a pod; return it as a user."""
        key = _key_of(pod)
        uses = self._uses.get(key)
        if uses is None:
            uses = self._uses[key] = Uses(pod)
        uses.users += 1
        user = self.by_uid[pod.uid] = User(pod, uses)
        return user

    def remove(self, user: User) -> None:
        """Remove a pod."""
        del self.by_uid[user.pod.uid]
        uses = user.uses
        uses.waiting.pop(user.pod.uid, None)
        uses.users -= 1
        if not uses.users:
            self.set_matters(uses, frozenset())
            del self._uses[_key_of(user.pod)]

    def note(self, user: User) -> None:
        """Update whether the pod waits for a node."""
        if user.row < 0 and not user.pod.node:
            user.uses.waiting[user.pod.uid] = None
        else:
            user.uses.waiting.pop(user.pod.uid, None)

    def set_matters(self, uses: Uses, matters: frozenset[Matter]) -> None:
        """Replace the changes that may help pods with these volumes."""
        for one in uses.matters - matters:
            there = self._of_matter[one]
            del there[uses]
            if not there:
                del self._of_matter[one]
        for one in matters - uses.matters:
            self._of_matter.setdefault(one, {})[uses] = None
        uses.matters = matters

    def waiting_for(self, matters: Iterable[Matter]) -> list[str]:
        """Return the uids of the waiting pods that one of these changes may help."""
        found = (uses for one in matters for uses in self._of_matter.get(one, ()))
        return [uid for uses in found for uid in uses.waiting]


def _key_of(pod: Pod) -> object:
    """Return the key by which pods share ``Uses``; a pod with ephemeral claims has its own."""
    own = pod.uid if any(use.ephemeral for use in pod.claims) else ""
    return pod.namespace, pod.claims, pod.spec.disks, own
