"""What rules and scores say of all nodes, kept from decision to decision.

In: a pod class or a key, and the room. Out: arrays that nobody may write to. Masks of the attribute
rules are brought up to date row by row; what else is kept is made anew when a node's attributes are
others. Of too much (``policy.MASKS_KEPT_BYTES_MAX``) the longest unused goes. Called by ``Room``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.nodes.encoding import PodClass, PodClasses
from quorate.core.cluster.recently_used import Recent
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import policy
from quorate.core.plan.filters import (
    node_affinity,
    node_declared_features,
    node_unschedulable,
    taint_toleration,
)
from quorate.core.plan.filters.verdict import Verdict
from quorate.core.room.devices.allocations import Outcomes

if TYPE_CHECKING:
    from quorate.core.room.room import Room


class AttributeRule(Protocol):
    """A rule that looks at nodes' attributes alone."""

    def judge(self, pod_class: PodClass, room: Room) -> Verdict | None:
        """Return what the rule says of each node for one more pod of the class."""

    def admits(self, pod_class: PodClass, snapshot: Snapshot, row: int) -> bool:
        """Whether the node at ``row``, which must be alive, passes: the same, of one node."""


RULES: dict[str, AttributeRule] = {
    "NodeUnschedulable": node_unschedulable,
    "TaintToleration": taint_toleration,
    "NodeAffinity": node_affinity,
    "NodeDeclaredFeatures": node_declared_features,
}
"""What they read of a pod is ``PodClass.attributes``."""
_UNUSED_FEW = 64
_Value = TypeVar("_Value")
_Version = tuple[int, int, int]


class _KeptMask(NamedTuple):
    """Nodes that pass, as of a place in ``NodeTable.attributes_log``."""

    mask: Mask
    seen: int


class _KeptFact(NamedTuple):
    """What was made of the nodes' attributes of a version."""

    version: _Version
    value: Any


class AttributeMasks:
    """Which nodes pass the attribute rules, by what these read of a class; and other such facts."""

    def __init__(self) -> None:
        self._kept: Recent[tuple[object, ...], _KeptMask | _KeptFact] = Recent()
        self.outcomes = Outcomes()
        """What claims get on kinds of nodes."""
        self._given_back = 0

    def give_back(self, classes: PodClasses) -> None:
        """Forget the masks of attributes that no pod has, when they may be half of all."""
        if classes.given_back - self._given_back <= max(_UNUSED_FEW, len(self._kept) // 2):
            return
        self._given_back = classes.given_back
        for key in list(self._kept):
            if key[0] == "mask" and not classes.has_attributes(key[1]):
                self._kept.drop(key)

    @staticmethod
    def version_of(room: Room, *, images: bool = False) -> _Version:
        """Return what differs whenever labels or taints (or ``images``) do, or there are others."""
        version = room.snapshot.table.images_version if images else 0
        return room.snapshot.attributes_version, version, len(room.snapshot)

    def of(self, pod_class: PodClass, room: Room) -> Mask:
        """Return bool[n]: alive nodes that pass every attribute rule for the class."""
        snapshot = room.snapshot
        if snapshot.attributes_version != snapshot.table.attributes_version:
            return _mask_of(pod_class, room)  # somebody looks at how things were
        key = "mask", pod_class.attributes
        kept, now = self._kept.get(key), snapshot.table.attributes_log.position
        if isinstance(kept, _KeptMask):
            if kept.seen == now:
                return kept.mask
            mask = _brought_up_to_date(kept, pod_class, snapshot)
            if mask is not None:
                if len(mask) == len(kept.mask):
                    self._kept.replace(key, _KeptMask(mask, now))
                else:
                    self._keep(key, _KeptMask(mask, now))
                return mask
        mask = _mask_of(pod_class, room)
        self._keep(key, _KeptMask(mask, now))
        return mask

    def on(self, pod_class: PodClass, room: Room, rows: Sequence[int]) -> Mask:
        """Return bool[m]: as ``of``, of these rows. Where nothing is kept, few are asked alone."""
        is_kept = ("mask", pod_class.attributes) in self._kept
        if is_kept or len(rows) > _rows_few(len(room.snapshot)):
            found: Mask = self.of(pod_class, room)[rows]
            return found
        return np.array([_passes(pod_class, room.snapshot, row) for row in rows], np.bool_)

    def kept(
        self, room: Room, key: object, make: Callable[[], _Value], *, images: bool = False
    ) -> _Value:
        """Return what ``make`` returns from the nodes' labels and taints, and the ``key``.

        With ``images`` it may look at these too. It is made once; nobody may write to it.
        """
        version = self.version_of(room, images=images)
        known = self._kept.get(("made", key))
        if isinstance(known, _KeptFact) and known.version == version:
            found: _Value = known.value
            return found
        found = make()
        if isinstance(found, np.ndarray):
            found.setflags(write=False)
        self._keep(("made", key), _KeptFact(version, found))
        return found

    def _keep(self, key: tuple[object, ...], entry: _KeptMask | _KeptFact) -> None:
        value = entry.mask if isinstance(entry, _KeptMask) else entry.value
        self._kept.put(key, entry, policy.MASKS_KEPT_BYTES_MAX, _bytes_of(value))

    def __len__(self) -> int:
        """Return how many answers are kept."""
        return len(self._kept)

    @property
    def bytes_kept(self) -> int:
        """How much memory they take, as it is counted."""
        return self._kept.size


def _bytes_of(value: object) -> int:
    parts = value if isinstance(value, tuple) else (value,)
    return policy.MASK_ENTRY_BYTES + sum(p.nbytes for p in parts if isinstance(p, np.ndarray))


def _mask_of(pod_class: PodClass, room: Room) -> Mask:
    """Ask all attribute rules about all nodes."""
    mask = room.snapshot.alive.copy()
    for name, rule in RULES.items():
        verdict = rule.judge(pod_class, room) if name not in pod_class.profile.disabled else None
        if verdict is not None:
            mask &= verdict.codes == 0
    mask.setflags(write=False)
    return mask


def _passes(pod_class: PodClass, snapshot: Snapshot, row: int) -> bool:
    """Ask all attribute rules about the node at a row, which may hold none."""
    return bool(snapshot.alive[row]) and all(
        rule.admits(pod_class, snapshot, row)
        for name, rule in RULES.items()
        if name not in pod_class.profile.disabled
    )


def _brought_up_to_date(kept: _KeptMask, pod_class: PodClass, snapshot: Snapshot) -> Mask | None:
    """Return the mask with what has changed since; None: too much has, ask about all nodes.

    It is the same array where nothing differs, else another one: others may still read the old.
    """
    log, nodes = snapshot.table.attributes_log, len(snapshot)
    if log.position - kept.seen > _rows_few(nodes):
        return None
    rows = log.since(kept.seen)
    if rows is None:
        return None
    before, after = kept.mask, kept.mask
    if len(before) != nodes:
        before = after = np.concatenate([before, np.zeros(nodes - len(before), np.bool_)])
    for row in set(rows):
        passes = _passes(pod_class, snapshot, row)
        if passes != before[row]:
            after = after.copy() if after is kept.mask else after
            after[row] = passes
    after.setflags(write=False)
    return after


def _rows_few(nodes: int) -> int:
    """Return for how many rows one by one is quicker than all at once."""
    return 8 + nodes // 700
