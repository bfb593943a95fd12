"""NodeResourcesFit's scores: most-allocated fills nodes, least-allocated spreads over them.

Formula: the mean over resources of ``100 * requested / allocatable`` (least: of what is left), with
the pod counted in. The resources are cpu, memory, and whatever extended ones the pod asks for: on a
GPU cluster it is GPUs that must not be left in fragments.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quorate.core.state.arrays import Ints
from quorate.core.state.encoding import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, PodClass

Scores = npt.NDArray[np.float64]


def utilisation(pod_class: PodClass, free: Ints, allocatable: Ints, pods: Ints | int) -> Scores:
    """Return float64 from 0 to 100: how full nodes are with ``pods`` more pods of the class.

    ``free`` and ``allocatable`` are int64[m, r]; ``pods`` is a number or int64[m].
    """
    columns = [CPU, MEMORY]
    columns += [c for c in pod_class.columns if c not in (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)]
    request = dict(pod_class.demands)
    total = np.zeros(len(free))
    counted = np.zeros(len(free))
    for column in columns:
        size = allocatable[:, column]
        used = size - free[:, column] + pods * request.get(column, 0)
        has = size > 0
        total += np.where(has, np.clip(used / np.where(has, size, 1), 0.0, 1.0), 0.0)
        counted += has
    return 100.0 * total / np.maximum(counted, 1.0)
