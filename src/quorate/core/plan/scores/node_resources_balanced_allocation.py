"""NodeResourcesBalancedAllocation: nodes where the pod evens out the use of resources are better.

Source: kube-scheduler 1.36, noderesources/balanced_allocation.go.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quorate.core.plan.amounts import Amounts
from quorate.core.state.encoding import Ints, PodClass

Fractions = npt.NDArray[np.float64]


def score(pod_class: PodClass, amounts: Amounts) -> Ints | None:
    """Return int64[m] from 0 to 100: 75, more where the pod makes use more even, else less.

    None: the pod asks for none of the resources.
    """
    columns = amounts.resources.columns
    asked = dict(pod_class.demands)
    names = [name for name, _ in pod_class.profile.balanced if name in columns]
    if not any(asked.get(columns[name]) for name in names):
        return None
    with_pod, without = [], []
    for name in names:
        column = columns[name]
        amount = asked.get(column, 0)
        if not amount and name not in ("cpu", "memory", "ephemeral-storage"):
            continue
        size = amounts.allocatable[:, column]
        used = size - amounts.free[:, column]
        with_pod.append(_fraction(used + amount, size))
        without.append(_fraction(used, size))
    change = _evenness(with_pod) - _evenness(without)
    # Go's division goes towards zero, but 50 + change is never below it.
    scores: Ints = 50 + (50 + change) // 2
    return scores


def _fraction(used: Ints, size: Ints) -> Fractions:
    """Return float64[n]: how full, at most 1; NaN where the node has none of it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size > 0, np.minimum(used / size, 1.0), np.nan)


def _evenness(fractions: list[Fractions]) -> Ints:
    """Return int64[n]: ``100 * (1 - standard deviation)`` of the resources that the node has."""
    table = np.array(fractions)
    has = ~np.isnan(table)
    count = has.sum(axis=0)
    filled = np.where(has, table, 0.0)
    mean = filled.sum(axis=0) / np.maximum(count, 1)
    squares = np.where(has, (filled - mean) ** 2, 0.0).sum(axis=0)
    deviation = np.where(count > 2, np.sqrt(squares / np.maximum(count, 1)), 0.0)
    if len(fractions) > 1:
        first = np.take_along_axis(filled, has.argmax(axis=0)[None], axis=0)[0]
        last_row = len(fractions) - 1 - has[::-1].argmax(axis=0)
        last = np.take_along_axis(filled, last_row[None], axis=0)[0]
        deviation = np.where(count == 2, np.abs((first - last) / 2), deviation)
    scores: Ints = ((1 - deviation) * 100.0).astype(np.int64)
    return scores
