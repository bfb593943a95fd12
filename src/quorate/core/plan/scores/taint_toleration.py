"""TaintToleration: nodes with fewer untolerated PreferNoSchedule taints are better."""

from __future__ import annotations

from typing import cast

import numpy as np

from quorate.core.model import PodShape, Taint
from quorate.core.plan.filters.taint_toleration import untolerated
from quorate.core.state.encoding import Ints, Mask
from quorate.core.state.snapshot import Snapshot

WEIGHT = 3


def score(shape: PodShape, snapshot: Snapshot, feasible: Mask) -> Ints:
    """Return int64[n] from 0 to 100: ``100 - 100 * count / max`` over the feasible nodes."""
    column = snapshot.taint_sets()
    counts = [
        untolerated(shape, cast("tuple[Taint, ...]", taints), ("PreferNoSchedule",))
        for taints in column.values
    ]
    raw = np.array([*counts, 0], np.int64)[column.codes[: len(snapshot)]]
    highest = int(raw[feasible].max(initial=0))
    return 100 - 100 * raw // highest if highest else np.full(len(raw), 100, np.int64)
