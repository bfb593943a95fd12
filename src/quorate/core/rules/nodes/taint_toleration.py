"""TaintToleration: every NoSchedule and NoExecute taint of the node must be tolerated.

Score: nodes with fewer untolerated PreferNoSchedule taints are better.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import Pod, PodSpec, Taint
from quorate.core.model.selectors import tolerates
from quorate.core.room.room import Room
from quorate.core.rules.faults import shown
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Verdict, verdict_of

REFUSAL = Refusal("node(s) had untolerated taint(s)", resolvable=False)
_KEEPING_AWAY = ("NoSchedule", "NoExecute")
_OPERATORS = ("Equal", "Exists")


def untolerated(spec: PodSpec, taints: tuple[Taint, ...], effects: tuple[str, ...]) -> int:
    """Return how many taints with one of these effects the pod does not tolerate."""
    return sum(
        taint.effect in effects and not tolerates(spec.tolerations, taint) for taint in taints
    )


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return which nodes have a taint that keeps the pod away."""
    return verdict_of(passes(pod_class.spec, room.snapshot), REFUSAL)


def admits(pod_class: PodClass, snapshot: Snapshot, row: int) -> bool:
    """Whether the node at ``row`` has no taint that keeps the pod away."""
    return not untolerated(pod_class.spec, snapshot.node(row).taints, _KEEPING_AWAY)


def passes(spec: PodSpec, snapshot: Snapshot) -> Mask:
    """Return bool[n]: which nodes have no taint that keeps the pod away."""
    column = snapshot.taint_sets()
    tolerated = [
        not untolerated(spec, cast("tuple[Taint, ...]", taints), _KEEPING_AWAY)
        for taints in column.values
    ]
    return np.array([*tolerated, False])[column.codes[: len(snapshot)]]


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100: ``100 - 100 * count / max`` over the feasible nodes."""
    raw, most = room.cached(
        ("PreferNoSchedule", pod_class.spec.tolerations), lambda: _raw(pod_class, room)
    )
    highest = int(raw[feasible].max(initial=0)) if most else 0
    if not highest:
        return room.cached("flat", lambda: np.full(len(raw), 100, np.int64))
    return 100 - 100 * raw // highest


def _raw(pod_class: PodClass, room: Room) -> tuple[Ints, int]:
    """Return int64[n], how many such taints each node has, and the most."""
    column = room.snapshot.taint_sets()
    counts = [
        untolerated(pod_class.spec, cast("tuple[Taint, ...]", taints), ("PreferNoSchedule",))
        for taints in column.values
    ]
    raw = np.array([*counts, 0], np.int64)[column.codes[: len(room.free)]]
    return raw, int(raw.max(initial=0))


def doubt(pod: Pod, _cluster: Cluster, _messages: Collection[str]) -> str:
    """Return a toleration with an operator that tolerates nothing; or ""."""
    for index, one in enumerate(pod.spec.tolerations):
        if one.operator and one.operator not in _OPERATORS:
            field = f"spec.tolerations[{index}].operator"
            return f"{field} {shown(one.operator)} is none of {', '.join(_OPERATORS)}"
    return ""


RULE = Rule(
    name="TaintToleration",
    kind=RuleKind.NODE,
    judge=judge,
    admits=admits,
    score=score,
    doubt=doubt,
)
