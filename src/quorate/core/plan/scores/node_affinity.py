"""NodeAffinity: nodes that match more weight of preferred terms are better."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import PreferredTerm
from quorate.core.plan.filters.node_affinity import matches_term

if TYPE_CHECKING:
    from quorate.core.room.room import Room


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100: ``100 * weight / max`` over the feasible nodes."""
    preferred = (*pod_class.shape.preferred_terms, *pod_class.profile.added_preferred)
    if not preferred:
        return None
    raw = room.masks.kept(room, ("preferred", preferred), lambda: _raw(preferred, room.snapshot))
    highest = int(raw[feasible].max(initial=0))
    return 100 * raw // highest if highest else np.zeros(len(raw), np.int64)


def _raw(preferred: tuple[PreferredTerm, ...], snapshot: Snapshot) -> Ints:
    """Return int64[n]: the sum of the weights of the terms that the node matches."""
    raw = np.zeros(len(snapshot), np.int64)
    for one in preferred:
        if one.term.expressions or one.term.fields:
            raw += one.weight * matches_term(one.term, snapshot)
    return raw
