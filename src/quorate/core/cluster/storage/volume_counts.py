"""Counts the volumes of each CSI driver on each node, and keeps the limits of CSINode objects.

In: pods that use volumes, CSINodes. Out: int64[rows] columns of counts and limits by driver. Owned
by ``cluster.storage.storage``; updated by change. A volume counts once on a node, however many pods
use it there. A driver has a column of counts while one of its volumes is on a node, and a column of
limits while a node has a limit for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from quorate.core.cluster.arrays import Ints, grown
from quorate.core.model.storage import CSINode

VolumeId = tuple[str, str]
"""Driver and handle. For a claim that is not bound yet, the claim's name stands for the handle."""
UNLIMITED = 2**31


class VolumeCounts:
    """Counts and limits; ``rows`` is the length of each column."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._row_of: dict[str, int] = {}
        self._csi_nodes: dict[str, CSINode] = {}
        self.holders: dict[VolumeId, Counter[int]] = {}
        """By volume, the number of pods that use it on each row."""
        self.counts: dict[str, Ints] = {}
        self._counted: Counter[str] = Counter()
        """The sum of each column of ``counts``."""
        self.limits: dict[str, Ints] = {}
        """Columns of limits, by driver."""
        self._limited: Counter[str] = Counter()
        """The number of nodes with a limit, by driver."""

    def node_added(self, name: str, row: int, rows: int) -> None:
        """Add a node; its pods are counted afterwards. ``rows`` is the number of rows now."""
        if rows != self._rows:
            self._grow(rows)
        self._row_of[name] = row
        self._limit(row, {}, _limits_of(self._csi_nodes.get(name)))

    def node_removed(self, name: str) -> None:
        """Forget a node's row; its pods must have been released."""
        row = self._row_of.pop(name, -1)
        if row >= 0:
            self._limit(row, _limits_of(self._csi_nodes.get(name)), {})

    def set_limits(self, name: str, node: CSINode | None) -> set[str]:
        """Take a node's CSINode (None: it is gone); return the drivers whose limit there grew."""
        before, after = _limits_of(self._csi_nodes.pop(name, None)), _limits_of(node)
        if node is not None:
            self._csi_nodes[name] = node
        if name not in self._row_of:
            return set()
        self._limit(self._row_of[name], before, after)
        return {driver for driver, limit in before.items() if after.get(driver, UNLIMITED) > limit}

    def column(self, driver: str) -> Ints:
        """Return int64[rows]: the number of a driver's volumes on each node. Do not write to it."""
        found = self.counts.get(driver)
        return np.zeros(self._rows, np.int64) if found is None else found

    def count(self, volume_id: VolumeId, row: int, sign: int) -> None:
        """Count one pod more (``sign`` 1) or fewer (-1) that uses the volume on the row."""
        held = self.holders.get(volume_id)
        if held is None:
            held = self.holders[volume_id] = Counter()
        was = held[row]
        now = was + sign
        if now:
            held[row] = now
        else:
            del held[row]
            if not held:
                del self.holders[volume_id]
        if not (was and now):
            self._count(volume_id[0], row, sign)

    def _grow(self, rows: int) -> None:
        self._rows = rows
        for driver, counts in self.counts.items():
            self.counts[driver] = grown(counts, rows)
        for driver, limits in self.limits.items():
            self.limits[driver] = grown(limits, rows, fill=UNLIMITED)

    def _count(self, driver: str, row: int, sign: int) -> None:
        column = self.counts.get(driver)
        if column is None:
            column = self.counts[driver] = np.zeros(self._rows, np.int64)
        column[row] += sign
        self._counted[driver] += sign
        if not self._counted[driver]:
            del self._counted[driver], self.counts[driver]

    def _limit(self, row: int, before: Mapping[str, int], after: Mapping[str, int]) -> None:
        """Replace the limits of one row."""
        for driver, limit in after.items():
            if driver not in self.limits:
                self.limits[driver] = np.full(self._rows, UNLIMITED, np.int64)
            self.limits[driver][row] = limit
            self._limited[driver] += driver not in before
        for driver in before.keys() - after.keys():
            self.limits[driver][row] = UNLIMITED
            self._limited[driver] -= 1
            if not self._limited[driver]:
                del self._limited[driver], self.limits[driver]


def _limits_of(node: CSINode | None) -> dict[str, int]:
    return dict(node.limits) if node is not None else {}
