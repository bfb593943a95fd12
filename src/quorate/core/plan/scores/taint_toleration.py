"""TaintToleration: nodes with fewer untolerated PreferNoSchedule taints are better."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import Taint
from quorate.core.plan.filters.taint_toleration import untolerated

if TYPE_CHECKING:
    from quorate.core.room.room import Room


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100: ``100 - 100 * count / max`` over the feasible nodes."""
    raw, most = room.masks.kept(
        room, ("PreferNoSchedule", pod_class.shape.tolerations), lambda: _raw(pod_class, room)
    )
    highest = int(raw[feasible].max(initial=0)) if most else 0
    if not highest:
        return room.masks.kept(room, "flat", lambda: np.full(len(raw), 100, np.int64))
    return 100 - 100 * raw // highest


def _raw(pod_class: PodClass, room: Room) -> tuple[Ints, int]:
    """Return int64[n], how many such taints each node has, and the most."""
    column = room.snapshot.taint_sets()
    counts = [
        untolerated(pod_class.shape, cast("tuple[Taint, ...]", taints), ("PreferNoSchedule",))
        for taints in column.values
    ]
    raw = np.array([*counts, 0], np.int64)[column.codes[: len(room.free)]]
    return raw, int(raw.max(initial=0))
