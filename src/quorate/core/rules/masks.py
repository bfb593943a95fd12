"""Which nodes pass all rules of kind NODE for a pod class: masks, brought up to date row by row.

In: a pod class and the room. Out: bool[n], n rows of the snapshot; nobody may write to it. Classes
that agree in ``PodClass.attributes`` share a mask, which ``room.rule_cache`` keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import CachedMask
from quorate.core.rules.nodes import node_unschedulable, taint_toleration
from quorate.core.rules.table import ON_ATTRIBUTES

_OF_TAINTS = (node_unschedulable.RULE.name, taint_toleration.RULE.name)


def mask_of(pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: alive nodes that pass every rule of kind NODE for the class."""
    snapshot, rule_cache = room.snapshot, room.rule_cache
    if snapshot.attributes_version != snapshot.table.attributes_version:
        return _made(pod_class, room)  # somebody looks at how things were
    key = pod_class.attributes
    kept, now = rule_cache.mask(key), snapshot.table.attributes_log.position
    if kept is not None:
        if kept.seen == now:
            return kept.mask
        mask = _brought_up_to_date(kept, pod_class, snapshot)
        if mask is not None:
            is_as_long = len(mask) == len(kept.mask)
            (rule_cache.replace_mask if is_as_long else rule_cache.keep_mask)(
                key, CachedMask(mask, now)
            )
            return mask
    mask = _made(pod_class, room)
    rule_cache.keep_mask(key, CachedMask(mask, now))
    return mask


def tolerated_by(pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: alive nodes whose taints and cordons the pods tolerate, whatever else."""

    def make() -> Mask:
        mask = room.snapshot.alive.copy()
        for name, judge, _ in ON_ATTRIBUTES:
            if name in _OF_TAINTS:
                verdict = judge(pod_class, room)
                mask &= True if verdict is None else verdict.codes == 0
        return mask

    return room.cached(("tolerated", pod_class.spec.tolerations), make)


def mask_on(pod_class: PodClass, room: Room, rows: Sequence[int]) -> Mask:
    """Return bool[m]: as ``mask_of``, of these rows.

    Where no mask is kept and the rows are few, only they are looked at.
    """
    is_kept = room.rule_cache.has_mask(pod_class.attributes)
    if is_kept or len(rows) > _rows_few(len(room.snapshot)):
        found: Mask = mask_of(pod_class, room)[rows]
        return found
    return np.array([_passes(pod_class, room.snapshot, row) for row in rows], np.bool_)


def _made(pod_class: PodClass, room: Room) -> Mask:
    """Ask all rules of the kind about all nodes."""
    mask = room.snapshot.alive.copy()
    for _, judge, _ in ON_ATTRIBUTES:
        verdict = judge(pod_class, room)
        if verdict is not None:
            mask &= verdict.codes == 0
    mask.setflags(write=False)
    return mask


def _passes(pod_class: PodClass, snapshot: Snapshot, row: int) -> bool:
    """Ask all rules of the kind about the node at a row, which may hold none."""
    return bool(snapshot.alive[row]) and all(
        admits(pod_class, snapshot, row) for _, _, admits in ON_ATTRIBUTES
    )


def _brought_up_to_date(kept: CachedMask, pod_class: PodClass, snapshot: Snapshot) -> Mask | None:
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
