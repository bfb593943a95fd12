"""NodeResourcesBalancedAllocation, a score: better are nodes whose use the pod evens out.

Source: kube-scheduler 1.36, noderesources/balanced_allocation.go.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass, Resources
from quorate.core.room.amounts import Amounts, NodeAmounts
from quorate.core.rules.rule import Rule, RuleKind

Fractions = npt.NDArray[np.float64]
_Number = TypeVar("_Number", int, Ints)
_NATIVE = ("cpu", "memory", "ephemeral-storage")


def score(pod_class: PodClass, amounts: Amounts) -> Ints | None:
    """Return int64[m] from 0 to 100: 75, more where the pod makes use more even, else less.

    None: the pod asks for none of the resources.
    """
    if not asks_for_some(pod_class):
        return None
    has: list[Mask] = []
    with_pod: list[Fractions] = []
    without: list[Fractions] = []
    for column, amount in _weighed(pod_class, amounts.resources):
        size = amounts.allocatable[:, column]
        used = size - amounts.free[:, column]
        has.append(size > 0)
        divisor = np.maximum(size, 1)
        with_pod.append(np.minimum((used + amount) / divisor, 1.0))
        without.append(np.minimum(used / divisor, 1.0))
    return _from_evenness(_evenness(with_pod, has), _evenness(without, has))


def _from_evenness(with_pod: _Number, without: _Number) -> _Number:
    """Return the score from 0 to 100: 75 where the pod changes nothing."""
    # Go's division goes towards zero, but 50 + the change is never below it.
    return 50 + (50 + with_pod - without) // 2


def _weighed(pod_class: PodClass, resources: Resources) -> list[tuple[int, int]]:
    """Return the columns that are weighed, and what the pod asks for of each.

    Extended resources are weighed only if the pod asks for them.
    """
    asked = dict(pod_class.demands)
    columns = [(name, resources.columns.get(name)) for name, _ in pod_class.profile.balanced]
    return [
        (column, asked.get(column, 0))
        for name, column in columns
        if column is not None and (name in _NATIVE or asked.get(column))
    ]


def asks_for_some(pod_class: PodClass) -> bool:
    """Whether the pod asks for one of the resources that the score weighs."""
    weighed = {name for name, _ in pod_class.profile.balanced}
    return any(name in weighed for name, _ in pod_class.asked)


def _evenness(fractions: list[Fractions], has: list[Mask]) -> Ints:
    """Return int64[m]: ``100 * (1 - standard deviation)`` of the resources that the node has.

    ``fractions`` are float64[m], how full it is; ``has`` says where there is any of the resource.
    """
    if len(fractions) == 2:
        both = has[0] & has[1]
        deviation = np.where(both, np.abs(fractions[0] - fractions[1]) / 2, 0.0)
    else:
        deviation = _deviation(np.array(fractions), np.array(has))
    scores: Ints = ((1 - deviation) * 100.0).astype(np.int64)
    return scores


def _deviation(table: Fractions, has: Mask) -> Fractions:
    """Return float64[m] from float64[k, m] and bool[k, m]: the deviation of what there is."""
    count = has.sum(axis=0)
    filled = np.where(has, table, 0.0)
    mean = filled.sum(axis=0) / np.maximum(count, 1)
    squares = np.where(has, (filled - mean) ** 2, 0.0).sum(axis=0)
    deviation = np.where(count > 2, np.sqrt(squares / np.maximum(count, 1)), 0.0)
    first = np.take_along_axis(filled, has.argmax(axis=0)[None], axis=0)[0]
    last_row = len(table) - 1 - has[::-1].argmax(axis=0)
    last = np.take_along_axis(filled, last_row[None], axis=0)[0]
    found: Fractions = np.where(count == 2, np.abs((first - last) / 2), deviation)
    return found


def score_one(pod_class: PodClass, amounts: NodeAmounts) -> int | None:
    """Return what ``score`` says of one node; None if other than two resources are weighed."""
    if not asks_for_some(pod_class):
        return 0
    weighed = _weighed(pod_class, amounts.resources)
    if len(weighed) != 2:
        return None
    free, sizes = amounts.free, amounts.allocatable
    if any(sizes[column] <= 0 for column, _ in weighed):
        return 75  # a resource alone is even
    evenness = []
    for counts in (1, 0):
        one, other = (
            min(float(sizes[c] - free[c] + counts * amount) / float(sizes[c]), 1.0)
            for c, amount in weighed
        )
        evenness.append(int((1 - abs(one - other) / 2) * 100.0))
    return _from_evenness(*evenness)


RULE = Rule(
    name="NodeResourcesBalancedAllocation",
    kind=RuleKind.USE,
    score_amounts=score,
    score_one=score_one,
)
