"""The room that volumes leave while one cycle places gangs: a part of ``Room``, copied with it.

In: pods that are placed. Out: slots, by attach limits, claims in use, and (from ``ClaimChoices``)
volumes chosen for claims. It records what the cycle has taken since the
snapshot; the cluster is not changed. Called by ``rules.volumes``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.cluster.storage.needs import VolumeNeeds
from quorate.core.cluster.storage.storage import Storage
from quorate.core.cluster.storage.volume_counts import UNLIMITED, VolumeId
from quorate.core.model.steps import Steps
from quorate.core.model.storage import ClaimKey
from quorate.core.room.claim_choices import ClaimChoices
from quorate.core.room.reach import Reach

_NOBODY: frozenset[int] = frozenset()


class VolumeRoom:
    """The room for pods with volumes. Rows are those of the snapshot; n of them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._storage = snapshot.storage
        self.reach = Reach(snapshot)
        self._choices = ClaimChoices(self.reach)
        self._attached: dict[str, Ints] = {}
        """By driver with limits that the cycle used: int64[n], the volumes on each node."""
        self._holders: dict[VolumeId, frozenset[int]] = {}
        """By shared volume of such a driver: the rows where pods placed here use it."""
        self._in_use: frozenset[ClaimKey] = frozenset()
        self.moved: MovedVolumes | None = None
        """Volumes of pods that a trial removes or adds; set on a copy only."""

    def copy(self) -> VolumeRoom:
        """Return an independent copy for a trial, without ``moved``."""
        other = VolumeRoom.__new__(VolumeRoom)
        other._snapshot, other._storage, other.reach = self._snapshot, self._storage, self.reach
        other._choices = self._choices.copy()
        other._attached, other._holders = dict(self._attached), dict(self._holders)
        other._in_use = self._in_use
        other.moved = None
        return other

    @property
    def steps(self) -> Steps | None:
        """The turn's budget for choosing volumes; None sets no bound."""
        return self._choices.steps

    @steps.setter
    def steps(self, steps: Steps | None) -> None:
        self._choices.steps = steps

    # Questions of the rules

    def is_used(self, claims: Collection[ClaimKey]) -> bool:
        """Whether a pod on a node uses one of these claims."""
        if not claims:
            return False
        if self.moved is not None and self.moved.is_used(claims):
            return True
        there = self._storage.in_use if self.moved is None else ()
        return any(key in self._in_use or key in there for key in claims)

    def limits(self, driver: str) -> Ints | None:
        """Return int64[n]: how many volumes of the driver each node takes; None: any number."""
        found = self._storage.nodes.limits.get(driver)
        return None if found is None else found[: len(self._snapshot)]

    def attached(self, driver: str) -> Ints:
        """Return int64[n]: how many volumes of the driver are on each node."""
        found = self._attached.get(driver)
        if found is None:
            found = self._storage.nodes.column(driver)[: len(self._snapshot)]
        if self.moved is not None and (change := self.moved.change(driver, self._holders)):
            found = found.copy()
            found[self.moved.row] += change
        return found

    def holders(self, volume_id: VolumeId) -> list[int]:
        """Return the rows on which a pod uses the volume, of a driver with limits."""
        rows = set(self._storage.nodes.holders.get(volume_id, ()))
        if self.moved is not None:
            (rows.add if self.moved.holds(volume_id) else rows.discard)(self.moved.row)
        return sorted(rows.union(self._holders.get(volume_id, _NOBODY)))

    def judge_unbound(self, volume_needs: VolumeNeeds) -> Mask:
        """Return bool[n]: the nodes where some unbound claim of a pod cannot be bound."""
        return self._choices.judge(volume_needs)

    def new_shared(self, volume_needs: VolumeNeeds) -> dict[str, Ints]:
        """Return int64[n] by driver: shared volumes that no pod of the node uses yet.

        Only drivers with limits are included.
        """
        found: dict[str, Ints] = {}
        for volume_id in volume_needs.shared:
            driver = volume_id[0]
            if self.limits(driver) is None:
                continue
            more = found.setdefault(driver, np.zeros(len(self._snapshot), np.int64))
            more += 1
            more[self.holders(volume_id)] -= 1
        return found

    # What pods take

    def constrains(self, pod_class: PodClass) -> bool:
        """Whether placing one pod of the class changes where the next one may go.

        Attach limits do not count here: slots already include them, for shared volumes too.
        """
        volume_needs = pod_class.volume_needs
        if volume_needs is None or volume_needs.problems:
            return False
        if self._is_for_one(pod_class):
            return True
        return self._choices.constrain(volume_needs)

    def gathers(self, pod_class: PodClass) -> bool:
        """Whether all pods of the class must go to the node of the first one."""
        return pod_class.volume_needs is not None and self._choices.gather(pod_class.volume_needs)

    def _is_for_one(self, pod_class: PodClass) -> bool:
        """Whether pods of the class share a claim that one pod at a time may use."""
        return pod_class.volume_needs is not None and bool(pod_class.volume_needs.exclusive)

    def couples(self, pod_class: PodClass) -> bool:
        """Whether volumes of its pods may decide where pods of other classes can go."""
        volume_needs = pod_class.volume_needs
        if volume_needs is None:
            return False
        has_limits = any(self.limits(driver) is not None for driver, _ in volume_needs.shared)
        return bool(volume_needs.unbound) or has_limits

    def most(self, pod_class: PodClass) -> int:
        """Return an upper bound on further pods of the class, over all nodes, by volumes alone."""
        if pod_class.volume_needs is None or pod_class.volume_needs.problems:
            return UNLIMITED
        if self._is_for_one(pod_class):
            return 1
        return self._choices.most(pod_class.volume_needs)

    def served(self, pod_class: PodClass, pods: Ints) -> Ints:
        """Return int64[n]: how many of ``pods`` (int64[n]) get volumes for all their claims.

        ``pods`` must not exceed the slots that volumes leave. Rows are served in their order.
        """
        if pod_class.volume_needs is None:
            return pods
        rows = np.flatnonzero(pods)
        found = np.zeros(len(pods), np.int64)
        found[rows] = self._choices.served(pod_class.volume_needs, rows, pods[rows])
        return found

    def cap_by_claims(self, volume_needs: VolumeNeeds, slots: Ints) -> None:
        """Lower ``slots`` (int64[n]) to the number of pods whose claims can get volumes.

        Where pods constrain one another, that number is an upper bound.
        """
        chosen = self._choices.slots(volume_needs)
        if chosen is not None:
            np.minimum(slots, chosen, out=slots)

    def cap_by_limits(self, volume_needs: VolumeNeeds, slots: Ints) -> None:
        """Lower ``slots`` (int64[n]): the first pod adds the shared volumes, every pod its own."""
        shared = self.new_shared(volume_needs)
        own = {driver: each for driver, each in volume_needs.new if self.limits(driver) is not None}
        for driver in shared.keys() | own.keys():
            limits, each = self.limits(driver), own.get(driver, 0)
            assert limits is not None, "drivers without limits were left out"
            left = limits - self.attached(driver)
            if driver not in shared:
                np.minimum(slots, np.maximum(left // each, 0), out=slots)
                continue
            first = each + shared[driver]
            is_let_in = (first <= 0) | (first <= left)
            more = UNLIMITED
            if each:
                more = np.maximum((left - first) // each, 0)
            np.minimum(slots, np.where(is_let_in, 1 + more, 0), out=slots)

    def take(self, pod_class: PodClass, rows: Ints, pods: Ints) -> None:
        """Place ``pods`` (int64[len(rows)]) more pods of the class; each row occurs once."""
        volume_needs = pod_class.volume_needs
        if volume_needs is None or volume_needs.problems:
            return
        for driver, each in volume_needs.new:
            if self.limits(driver) is not None:
                self._attached[driver] = column = self.attached(driver).copy()
                column[rows] += each * pods
        for volume_id in volume_needs.shared:
            if self.limits(volume_id[0]) is not None:
                fresh = np.setdiff1d(rows, self.holders(volume_id))
                self._attached[volume_id[0]] = column = self.attached(volume_id[0]).copy()
                column[fresh] += 1
                known = self._holders.get(volume_id, _NOBODY)
                self._holders[volume_id] = known.union(rows.tolist())
        if rows.size and volume_needs.exclusive:
            self._in_use = self._in_use.union(volume_needs.exclusive)
        self._choices.take(pod_class, rows, pods)

    def take_chosen(self, pod_class: PodClass, row: int) -> tuple[str, ...]:
        """Remove and return the volumes chosen for one pod of the class; see ``ClaimChoices``."""
        return self._choices.take_chosen(pod_class, row)


class MovedVolumes:
    """Changes, against the cluster, in how many pods use volumes and claims on a row."""

    def __init__(self, storage: Storage, row: int) -> None:
        self.row = row
        self._storage = storage
        self._ids: Counter[VolumeId] = Counter()
        self._claims: Counter[ClaimKey] = Counter()

    def shift(self, uid: str, pods: int) -> bool:
        """Add a pod to the row (1) or remove it (-1); return whether the pod uses volumes."""
        user = self._storage.users.get(uid)
        if user is None:
            return False
        for volume_id in user.ids:
            self._ids[volume_id] += pods
        for key in user.volume_set.counted:
            self._claims[key] += pods
        return True

    def is_used(self, claims: Iterable[ClaimKey]) -> bool:
        """Whether a pod on any node uses one of the claims."""
        used = [(key in self._storage.in_use) + self._claims[key] for key in set(claims)]
        return sum(used) > 0

    def holds(self, volume_id: VolumeId) -> bool:
        """Whether a pod on the row uses the volume."""
        return self._held(volume_id) + self._ids[volume_id] > 0

    def change(self, driver: str, also: Mapping[VolumeId, Collection[int]]) -> int:
        """Return the change in the number of the driver's volumes on the row; may be negative.

        ``also`` has, by volume, rows where pods use it that the cluster does not count yet.
        """
        moved: Iterable[VolumeId] = (one for one in self._ids if one[0] == driver)
        return sum(
            self.holds(one) - (self._held(one) > 0)
            for one in moved
            if self.row not in also.get(one, ())
        )

    def _held(self, volume_id: VolumeId) -> int:
        return self._storage.nodes.holders.get(volume_id, Counter())[self.row]
