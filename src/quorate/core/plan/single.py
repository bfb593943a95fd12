"""Place pods one at a time, as kube-scheduler does: each on a node with the highest total score.

In: a pod class and the room. Out: a row. Called by ``plan.cycle`` for pods of no gang under a
profile of kube-scheduler's. Totals are kept from pod to pod: a placed pod changes its own node's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.core.plan.filters import node_resources_fit
from quorate.core.plan.nominated import look, promised_to_others
from quorate.core.plan.room import Room
from quorate.core.plan.scores import allocation_score, standing_score
from quorate.core.state.cluster import Cluster
from quorate.core.state.encoding import Ints, Mask, PodClass
from quorate.core.state.gangs import PodEntry

_NOWHERE = -1


@dataclass(slots=True)
class _Totals:
    """int64[n]: the total of each node, -1 where the pod does not fit; and the standing part."""

    total: Ints
    standing: Ints
    is_flat: bool
    """Whether the standing part is the same everywhere: then it stays so when a node is full."""


class Singles:
    """Totals by class, for one cycle. Whoever else takes room says so through ``changed``."""

    def __init__(self) -> None:
        self._totals: dict[PodClass, _Totals] = {}

    def best(
        self, entry: PodEntry, pod_class: PodClass, room: Room, cluster: Cluster
    ) -> int | None:
        """Return the row where the pod goes: its nominated node's, or the first of highest total.

        None when no node takes the pod, nominated pods considered.
        """
        promised = promised_to_others(entry.pod.priority, cluster, entry)
        kept = self._kept(pod_class, room)
        if promised:
            feasible = look(pod_class, room, cluster, promised).feasible
            taken = (kept.total != _NOWHERE) & ~feasible
            if taken.any():
                kept = _compute(pod_class, room, feasible)
        own = cluster.nodes.rows.get(entry.nominated, -1)
        if own >= 0 and kept.total[own] != _NOWHERE:
            return own
        row = int(np.argmax(kept.total)) if len(kept.total) else 0
        return row if len(kept.total) and kept.total[row] != _NOWHERE else None

    def _kept(self, pod_class: PodClass, room: Room) -> _Totals:
        kept = self._totals.get(pod_class)
        if kept is None:
            kept = _compute(pod_class, room, room.slots(pod_class) > 0)
            if _stands_alone(pod_class):
                self._totals[pod_class] = kept
        return kept

    def changed(self, rows: Ints, room: Room) -> None:
        """Look again at rows of which room was taken."""
        for pod_class, kept in list(self._totals.items()):
            fits = node_resources_fit.slots(pod_class, room.free[rows]) > 0
            was = kept.total[rows] != _NOWHERE
            if not kept.is_flat and bool(np.any(was & ~fits)):
                del self._totals[pod_class]  # scores are relative to the nodes that are left
                continue
            now = kept.standing[rows] + allocation_score(pod_class, room.amounts(rows))
            kept.total[rows] = np.where(was & fits, now, _NOWHERE)


def _compute(pod_class: PodClass, room: Room, feasible: Mask) -> _Totals:
    standing = standing_score(pod_class, room, feasible)
    total = standing + allocation_score(pod_class, room.amounts())
    among = standing[feasible]
    is_flat = bool(len(among) == 0 or (among == among[0]).all())
    return _Totals(np.where(feasible, total, _NOWHERE), standing, is_flat)


def _stands_alone(pod_class: PodClass) -> bool:
    """Whether only room decides where the next pod goes: not where other pods went."""
    shape = pod_class.shape
    looks = shape.affinity or shape.anti_affinity or shape.preferred_affinity or pod_class.spread
    claims = pod_class.wants or pod_class.ask
    return not (pod_class.matched or looks or shape.host_ports or claims)
