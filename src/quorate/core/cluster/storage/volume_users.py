"""Living pods that use claims or disks, and which of them wait for what of storage.

Owned by ``cluster.storage.storage``. Pods with the same volumes share one ``Uses``, so that what
follows from these is worked out once for a gang that mounts one claim.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.core.cluster.storage.needs import VolumeNeeds
from quorate.core.cluster.storage.volume_counts import VolumeId
from quorate.core.model import Disk, Pod, policy
from quorate.core.model.storage import ClaimKey, ClaimUse

OF_DRIVER, OF_CLASS = "driver", "class"
Matter = tuple[str, str]
"""What a waiting pod may be helped by: volumes of a driver, or claims of a storage class."""


def uses_volumes(pod: Pod) -> bool:
    """Whether volume rules have anything to say of the pod."""
    return bool(pod.claims or pod.shape.disks)


def volumes_of(pod: Pod) -> int:
    """Return how many claims and disks the pod has."""
    return len(pod.claims) + len(pod.shape.disks)


class Uses:
    """The claims and disks of alike pods, ``policy.VOLUMES_PER_POD_MAX`` of them at most.

    A pod with more is not placed; of one that runs, the others are not counted.
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
        self.disks: tuple[Disk, ...] = pod.shape.disks[: most - len(self.claims)]
        self.counted = tuple(
            key for use, key in zip(self.claims, self.keys, strict=True) if not use.ephemeral
        )
        """Claims that others may use too."""
        self.users = 0
        self.waiting: dict[str, None] = {}
        """Uids of the pods that have no node yet."""
        self.matters: frozenset[Matter] = frozenset()
        """Under what they are found."""
        self.volume_needs: VolumeNeeds | None = None
        """What they demand, if that was asked for since something about it changed."""


class User:
    """A living pod that uses volumes. ``row`` is -1 while it is on no known node."""

    __slots__ = ("ids", "pod", "row", "uses")

    def __init__(self, pod: Pod, uses: Uses) -> None:
        self.pod = pod
        self.uses = uses
        self.row = -1
        self.ids: frozenset[VolumeId] = frozenset()
        """As what its volumes are counted."""


class Users:
    """Users by uid, and those that wait also by what matters to them."""

    def __init__(self) -> None:
        self.by_uid: dict[str, User] = {}
        self._uses: dict[object, Uses] = {}
        self._of_matter: dict[Matter, dict[Uses, None]] = {}

    def add(self, pod: Pod) -> User:
        """Note a pod."""
        key = _key_of(pod)
        uses = self._uses.get(key)
        if uses is None:
            uses = self._uses[key] = Uses(pod)
        uses.users += 1
        user = self.by_uid[pod.uid] = User(pod, uses)
        return user

    def remove(self, user: User) -> None:
        """Forget a pod."""
        del self.by_uid[user.pod.uid]
        uses = user.uses
        uses.waiting.pop(user.pod.uid, None)
        uses.users -= 1
        if not uses.users:
            self.set_matters(uses, frozenset())
            del self._uses[_key_of(user.pod)]

    def note(self, user: User) -> None:
        """Note whether the pod has a node by now."""
        if user.row < 0 and not user.pod.node:
            user.uses.waiting[user.pod.uid] = None
        else:
            user.uses.waiting.pop(user.pod.uid, None)

    def set_matters(self, uses: Uses, matters: frozenset[Matter]) -> None:
        """Note what matters to pods."""
        for one in uses.matters - matters:
            there = self._of_matter[one]
            del there[uses]
            if not there:
                del self._of_matter[one]
        for one in matters - uses.matters:
            self._of_matter.setdefault(one, {})[uses] = None
        uses.matters = matters

    def waiting_for(self, matters: Iterable[Matter]) -> list[str]:
        """Return the uids of the pods that wait and to which one of these matters."""
        found = (uses for one in matters for uses in self._of_matter.get(one, ()))
        return [uid for uses in found for uid in uses.waiting]


def _key_of(pod: Pod) -> object:
    """Return what pods that share their uses have in common; claims made for a pod are its own."""
    own = pod.uid if any(use.ephemeral for use in pod.claims) else ""
    return pod.namespace, pod.claims, pod.shape.disks, own
