"""PodTopologySpread: nodes whose domains hold fewer matching pods are better (ScheduleAnyway)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import SpreadConstraint
from quorate.core.plan.filters.pod_topology_spread import (
    counted_with,
    has_labels,
    matching,
    pods_by_domain,
)

if TYPE_CHECKING:
    from quorate.core.room.room import Room

_HOSTNAME = "kubernetes.io/hostname"


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100: ``100 * (max + min - raw) / max``; None: nothing is soft.

    Nodes that lack a topology label score 0, unless the constraints are the system's own.
    """
    constraints = [one for one in pod_class.spread if not one.hard]
    if not constraints or not feasible.any():
        return None
    needed = constraints if pod_class.spread_needs_labels else None
    labelled = has_labels(constraints, room) if needed else None
    scored = feasible if labelled is None else feasible & labelled
    raw = np.zeros(len(feasible))
    for one in constraints:
        raw += _one(one, pod_class, room, scored, needed)
    rounded = np.floor(raw + 0.5).astype(np.int64)
    among = rounded[scored]
    if not len(among):
        return np.zeros(len(feasible), np.int64)
    least, most = int(among.min()), int(among.max())
    if most == 0:
        return np.where(scored, 100, 0)
    return np.where(scored, 100 * (most + least - rounded) // most, 0)


def _one(
    constraint: SpreadConstraint,
    pod_class: PodClass,
    room: Room,
    scored: Mask,
    needed: list[SpreadConstraint] | None,
) -> npt.NDArray[np.float64]:
    """Return float64[n]: pods in the node's domain, weighted by how many domains there are.

    Only nodes with the labels of the ``needed`` constraints (None: any) count.
    """
    key = constraint.topology_key
    if key == _HOSTNAME:
        pods, size = matching(constraint, room), int(np.count_nonzero(scored))
    else:
        pods = pods_by_domain(constraint, counted_with(needed, constraint, pod_class, room), room)
        size = room.domains(key, scored)
    weighted = pods.astype(np.float64)
    weighted *= math.log(size + 2)
    weighted += constraint.max_skew - 1
    weighted[~room.has_label(key)] = 0.0
    return weighted
