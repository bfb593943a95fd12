"""PodTopologySpread: nodes whose domains hold fewer matching pods are better (ScheduleAnyway)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from quorate.core.model import SpreadConstraint
from quorate.core.plan.filters.pod_topology_spread import has_labels, included, matching
from quorate.core.state.encoding import Ints, Mask, PodClass

if TYPE_CHECKING:
    from quorate.core.plan.room import Room

_HOSTNAME = "kubernetes.io/hostname"


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100: ``100 * (max + min - raw) / max``; None: nothing is soft.

    Nodes that lack a topology label score 0, unless the constraints are the system's own.
    """
    constraints = [one for one in pod_class.spread if not one.hard]
    if not constraints or not feasible.any():
        return None
    labelled = has_labels(constraints, room) if pod_class.spread_needs_labels else None
    scored = feasible if labelled is None else feasible & labelled
    counted = room.snapshot.alive if labelled is None else room.snapshot.alive & labelled
    raw = np.zeros(len(feasible))
    for one in constraints:
        raw += _one(one, pod_class, room, scored, counted)
    rounded = np.floor(raw + 0.5).astype(np.int64)
    if not scored.any():
        return np.zeros(len(feasible), np.int64)
    least, most = int(rounded[scored].min()), int(rounded[scored].max())
    if most == 0:
        return np.where(scored, 100, 0)
    return np.where(scored, 100 * (most + least - rounded) // most, 0)


def _one(
    constraint: SpreadConstraint, pod_class: PodClass, room: Room, scored: Mask, counted: Mask
) -> npt.NDArray[np.float64]:
    """Return float64[n]: pods in the node's domain, weighted by how many domains there are."""
    key = constraint.topology_key
    if key == _HOSTNAME:
        pods, size = matching(constraint, room), int(scored.sum())
    else:
        values = room.snapshot.label(key).codes[: len(scored)]
        size = len(np.unique(values[scored]))
        here = counted & included(constraint, pod_class, room)
        pods = room.domain_sums(key, np.where(here, matching(constraint, room), 0))
    weighted = pods * math.log(size + 2) + (constraint.max_skew - 1)
    return np.where(room.has_label(key), weighted, 0.0)
