"""TaintToleration: every NoSchedule and NoExecute taint of the node must be tolerated."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import PodShape, Taint
from quorate.core.model.selectors import tolerates
from quorate.core.plan.filters.verdict import Refusal, Verdict, verdict_of

if TYPE_CHECKING:
    from quorate.core.room.room import Room

REFUSAL = Refusal("node(s) had untolerated taint(s)", resolvable=False)
_KEEPING_AWAY = ("NoSchedule", "NoExecute")


def untolerated(shape: PodShape, taints: tuple[Taint, ...], effects: tuple[str, ...]) -> int:
    """Return how many taints with one of these effects the pod does not tolerate."""
    return sum(
        taint.effect in effects and not tolerates(shape.tolerations, taint) for taint in taints
    )


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return which nodes have a taint that keeps the pod away."""
    return verdict_of(passes(pod_class.shape, room.snapshot), REFUSAL)


def admits(pod_class: PodClass, snapshot: Snapshot, row: int) -> bool:
    """Whether the node at ``row`` has no taint that keeps the pod away."""
    return not untolerated(pod_class.shape, snapshot.node(row).taints, _KEEPING_AWAY)


def passes(shape: PodShape, snapshot: Snapshot) -> Mask:
    """Return bool[n]: which nodes have no taint that keeps the pod away."""
    column = snapshot.taint_sets()
    tolerated = [
        not untolerated(shape, cast("tuple[Taint, ...]", taints), _KEEPING_AWAY)
        for taints in column.values
    ]
    return np.array([*tolerated, False])[column.codes[: len(snapshot)]]
