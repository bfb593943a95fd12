"""NodeResourcesBalancedAllocation, a score: better are nodes whose use the pod evens out.

Source: kube-scheduler 1.36, noderesources/balanced_allocation.go, with cpu and memory.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.nodes.encoding import CPU, MEMORY, PodClass
from quorate.core.room.amounts import Amounts, NodeAmounts
from quorate.core.rules.rule import Rule, RuleKind

_Number = TypeVar("_Number", int, Ints)


def score(pod_class: PodClass, amounts: Amounts) -> Ints | None:
    """Return int64[m] from 0 to 100: 75, more where the pod makes use more even, else less.

    None: the pod asks for neither cpu nor memory.
    """
    asked = _asked(pod_class)
    if not any(asked):
        return None
    sizes = [amounts.allocatable[:, column] for column in (CPU, MEMORY)]
    used = [size - amounts.free[:, c] for size, c in zip(sizes, (CPU, MEMORY), strict=True)]
    evenness = []
    for pods in (1, 0):
        full = [
            np.minimum((taken + pods * amount) / np.maximum(size, 1), 1.0)
            for taken, amount, size in zip(used, asked, sizes, strict=True)
        ]
        uneven = np.where((sizes[0] > 0) & (sizes[1] > 0), np.abs(full[0] - full[1]) / 2, 0.0)
        evenness.append(((1 - uneven) * 100.0).astype(np.int64))
    return _from_evenness(*evenness)


def score_one(pod_class: PodClass, amounts: NodeAmounts) -> int:
    """Return what ``score`` says of one node; 0 for None."""
    asked = _asked(pod_class)
    if not any(asked):
        return 0
    sizes = [amounts.allocatable[column] for column in (CPU, MEMORY)]
    if min(sizes) <= 0:
        return 75  # a resource alone is even
    evenness = []
    for pods in (1, 0):
        cpu, memory = (
            min((size - amounts.free[column] + pods * amount) / size, 1.0)
            for column, amount, size in zip((CPU, MEMORY), asked, sizes, strict=True)
        )
        evenness.append(int((1 - abs(cpu - memory) / 2) * 100.0))
    return _from_evenness(*evenness)


def _asked(pod_class: PodClass) -> tuple[int, int]:
    amounts = dict(pod_class.demands)
    return amounts.get(CPU, 0), amounts.get(MEMORY, 0)


def _from_evenness(with_pod: _Number, without: _Number) -> _Number:
    """Return the score from 0 to 100: 75 where the pod changes nothing."""
    return 50 + (50 + with_pod - without) // 2


RULE = Rule(
    name="NodeResourcesBalancedAllocation",
    kind=RuleKind.USE,
    score_amounts=score,
    score_one=score_one,
)
