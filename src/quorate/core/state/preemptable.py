"""What bound pods take of each node, by priority: what a pod of higher priority could have.

Owned by ``state.cluster``; kept only where some profile preempts. Updated by change, so that a
decision reads arrays, however many pods run.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from quorate.core.state.arrays import Ints, Mask, grown
from quorate.core.state.encoding import PODS, PodClass


class Preemptable:
    """For each priority of bound pods, int64[rows, resources] of what they take."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._used: dict[int, Ints] = {}
        self._pods: Counter[int] = Counter()

    def grow(self, rows: int) -> None:
        """Make room for ``rows`` rows."""
        self._rows = rows
        for priority, used in self._used.items():
            if len(used) < rows:
                self._used[priority] = grown(used, rows)

    def take(self, row: int, priority: int, pod_class: PodClass) -> None:
        """Count one bound pod on the row."""
        self._count(row, priority, pod_class, 1)

    def release(self, row: int, priority: int, pod_class: PodClass) -> None:
        """Stop counting one bound pod on the row."""
        self._count(row, priority, pod_class, -1)
        if not self._pods[priority]:
            del self._pods[priority], self._used[priority]

    def _count(self, row: int, priority: int, pod_class: PodClass, sign: int) -> None:
        width = max(pod_class.columns) + 1
        used = self._used.get(priority)
        if used is None or used.shape[1] < width:
            wider = np.zeros((self._rows, 2 * width), np.int64)
            if used is not None:
                wider[:, : used.shape[1]] = used
            used = self._used[priority] = wider
        for column, amount in pod_class.demands:
            used[row, column] += sign * amount
        self._pods[priority] += sign

    @property
    def lowest(self) -> int | None:
        """The lowest priority of a bound pod; None when there is none."""
        return min(self._pods, default=None)

    def below(self, priority: int, rows: Ints, width: int) -> Ints:
        """Return int64[len(rows), width]: what pods of lower priority take of these rows."""
        found = np.zeros((len(rows), width), np.int64)
        for other, used in self._used.items():
            if other < priority:
                part = used[rows, :width]
                found[:, : part.shape[1]] += part
        return found

    def has_below(self, priority: int, rows: Ints) -> Mask:
        """Return bool[len(rows)]: whether a pod of lower priority is bound there."""
        found = np.zeros(len(rows), np.bool_)
        for other, used in self._used.items():
            if other < priority:
                found |= used[rows, PODS] > 0
        return found
