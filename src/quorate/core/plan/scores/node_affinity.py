"""NodeAffinity: nodes that match more weight of preferred terms are better."""

from __future__ import annotations

import numpy as np

from quorate.core.model import PodShape
from quorate.core.plan.filters.node_affinity import matches_term
from quorate.core.state.encoding import Ints, Mask
from quorate.core.state.snapshot import Snapshot

WEIGHT = 2


def score(shape: PodShape, snapshot: Snapshot, feasible: Mask) -> Ints:
    """Return int64[n] from 0 to 100: ``100 * weight / max`` over the feasible nodes."""
    raw = np.zeros(len(snapshot), np.int64)
    for preferred in shape.preferred_terms:
        if preferred.term.expressions or preferred.term.fields:
            raw += preferred.weight * matches_term(preferred.term, snapshot)
    highest = int(raw[feasible].max(initial=0))
    return 100 * raw // highest if highest else raw
