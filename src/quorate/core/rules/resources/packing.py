"""Packing, quorate's own score of resources: by how full nodes are with whole gangs on them.

``place.packing`` asks it instead of the scores of amounts, under profiles that pack gangs:
most-allocated fills nodes, least-allocated spreads over them.

Formula: the mean over resources of ``100 * requested / allocatable``, with the pods counted in. The
resources are cpu, memory, and the extended ones that the pod asks for: on a GPU cluster, GPUs must
not be left in fragments.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, PodClass
from quorate.core.rules.rule import Rule, RuleKind

Scores = npt.NDArray[np.float64]


def utilisation(
    pod_class: PodClass, free: Ints, allocatable: Ints, rows: Ints | slice, pods: int
) -> Scores:
    """Return float64 from 0 to 100: how full nodes are with ``pods`` more pods of the class.

    ``free`` and ``allocatable`` are int64[n, r], of which these rows are looked at.
    """
    columns = [CPU, MEMORY]
    columns += [c for c in pod_class.columns if c not in (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)]
    request = dict(pod_class.demands)
    total, counted = np.zeros(len(free))[rows], np.zeros(len(free))[rows]
    for column in columns:
        size = allocatable[:, column][rows]
        used = size - free[:, column][rows] + pods * request.get(column, 0)
        has = size > 0
        if has.all():  # so it is of nearly every resource
            part = used / size
            counted += 1.0
        else:
            part = np.where(has, used / np.where(has, size, 1), 0.0)
            counted += has
        total += np.clip(part, 0.0, 1.0, out=part)
    return 100.0 * total / np.maximum(counted, 1.0)


RULE = Rule(name="Packing", kind=RuleKind.USE, is_ours=True, utilisation=utilisation)
