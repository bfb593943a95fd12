"""NodeResourcesBalancedAllocation, a score: better are nodes whose use the pod evens out.

Source: kube-scheduler 1.36, noderesources/balanced_allocation.go.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.room.amounts import Amounts, NodeAmounts
from quorate.core.rules.rule import Kind, Rule

Fractions = npt.NDArray[np.float64]
_NATIVE = ("cpu", "memory", "ephemeral-storage")


def score(pod_class: PodClass, amounts: Amounts) -> Ints | None:
    """Return int64[m] from 0 to 100: 75, more where the pod makes use more even, else less.

    None: the pod asks for none of the resources.
    """
    columns = amounts.resources.columns
    asked = dict(pod_class.demands)
    if not asks_for_some(pod_class):
        return None
    names = [name for name, _ in pod_class.profile.balanced if name in columns]
    has: list[Mask] = []
    with_pod: list[Fractions] = []
    without: list[Fractions] = []
    for name in names:
        column = columns[name]
        amount = asked.get(column, 0)
        if not amount and name not in _NATIVE:
            continue
        size = amounts.allocatable[:, column]
        used = size - amounts.free[:, column]
        has.append(size > 0)
        divisor = np.maximum(size, 1)
        with_pod.append(np.minimum((used + amount) / divisor, 1.0))
        without.append(np.minimum(used / divisor, 1.0))
    change = _evenness(with_pod, has) - _evenness(without, has)
    # Go's division goes towards zero, but 50 + change is never below it.
    scores: Ints = 50 + (50 + change) // 2
    return scores


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
    columns, asked = amounts.resources.columns, dict(pod_class.demands)
    names = [name for name, _ in pod_class.profile.balanced if name in columns]
    if not any(asked.get(columns[n]) for n in names) and not asks_for_some(pod_class):
        return 0
    native = [n for n in names if n in _NATIVE or asked.get(columns[n])]
    if len(native) != 2:
        return None
    return _balanced((columns[native[0]], columns[native[1]]), asked, amounts)


def _balanced(columns: tuple[int, int], asked: dict[int, int], amounts: NodeAmounts) -> int:
    free, sizes = amounts.free, amounts.allocatable
    if any(sizes[column] <= 0 for column in columns):
        return 75  # a resource alone is even
    evenness = []
    for counts in (1, 0):
        one, other = (
            min(float(sizes[c] - free[c] + counts * asked.get(c, 0)) / float(sizes[c]), 1.0)
            for c in columns
        )
        evenness.append(int((1 - abs(one - other) / 2) * 100.0))
    return 50 + (50 + evenness[0] - evenness[1]) // 2


RULE = Rule(
    name="NodeResourcesBalancedAllocation",
    kind=Kind.USE,
    score_amounts=score,
    score_one=score_one,
)
