"""How many volumes of each CSI driver are on each node, and how many may be there.

Owned by ``state.storage``. A volume counts once on a node, whether pods use it there, it is merely
attached, or both. One int64 column over the node rows for each driver; updated by change.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from quorate.core.model.storage import CSINode
from quorate.core.state.arrays import Ints, grown

VolumeId = tuple[str, str]
"""Driver and handle. Of a claim that is not bound yet, its own name stands for the handle."""
UNLIMITED = 2**31


class VolumeCounts:
    """Counts and limits; ``rows`` is how long the columns are."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._row_of: dict[str, int] = {}
        self._csi_nodes: dict[str, CSINode] = {}
        self.holders: dict[VolumeId, Counter[int]] = {}
        """Rows on which pods use a volume, and how many."""
        self._attached: dict[VolumeId, Counter[str]] = {}
        """Nodes to which a volume is attached."""
        self.counts: dict[str, Ints] = {}
        self.limits: dict[str, Ints] = {}
        """Of the drivers that have one somewhere."""

    def _grow(self, rows: int) -> None:
        self._rows = rows
        for driver, counts in self.counts.items():
            self.counts[driver] = grown(counts, rows)
        for driver, limits in self.limits.items():
            self.limits[driver] = grown(limits, rows, fill=UNLIMITED)

    def node_added(self, name: str, row: int, rows: int) -> None:
        """Count what is attached to a new node; its pods are taken after that.

        ``rows`` is how many rows there are now.
        """
        if rows != self._rows:
            self._grow(rows)
        self._row_of[name] = row
        for volume_id, nodes in self._attached.items():
            if nodes[name]:
                self._column(volume_id[0])[row] += 1
        self._limit(row, self._csi_nodes.get(name))

    def node_removed(self, name: str) -> None:
        """Forget a node's row; its pods must have been released."""
        row = self._row_of.pop(name, -1)
        if row >= 0:
            for counts in self.counts.values():
                counts[row] = 0
            self._limit(row, None)

    def set_limits(self, name: str, node: CSINode | None) -> None:
        """Take what a node's CSINode says; None when it is gone."""
        if node is None:
            self._csi_nodes.pop(name, None)
        else:
            self._csi_nodes[name] = node
        if name in self._row_of:
            self._limit(self._row_of[name], node)

    def column(self, driver: str) -> Ints:
        """Return int64[rows]: the driver's volumes on each node. Not to be written to."""
        found = self.counts.get(driver)
        return np.zeros(self._rows, np.int64) if found is None else found

    def count(self, volume_id: VolumeId, row: int, sign: int) -> None:
        """Count one pod more (1) or less (-1) that uses the volume on the row."""
        held = self.holders.setdefault(volume_id, Counter())
        was = held[row] > 0
        held[row] += sign
        if held[row] <= 0:
            del held[row]
        if was != (held[row] > 0) and not self.is_attached(volume_id, row):
            self._column(volume_id[0])[row] += sign
        if not held:
            del self.holders[volume_id]

    def count_attached(self, node: str, volume_id: VolumeId, sign: int) -> None:
        """Count one attachment more (1) or less (-1) of the volume to the node."""
        nodes = self._attached.setdefault(volume_id, Counter())
        was = nodes[node] > 0
        nodes[node] += sign
        if nodes[node] <= 0:
            del nodes[node]
        row = self._row_of.get(node, -1)
        is_held = volume_id in self.holders and self.holders[volume_id][row] > 0
        if row >= 0 and was != (nodes[node] > 0) and not is_held:
            self._column(volume_id[0])[row] += sign
        if not nodes:
            del self._attached[volume_id]

    def is_attached(self, volume_id: VolumeId, row: int) -> bool:
        """Whether the volume is attached to the row's node, whoever uses it."""
        return any(self._row_of.get(node) == row for node in self._attached.get(volume_id, ()))

    def _column(self, driver: str) -> Ints:
        found = self.counts.get(driver)
        if found is None:
            found = self.counts[driver] = np.zeros(self._rows, np.int64)
        return found

    def _limit(self, row: int, node: CSINode | None) -> None:
        for limits in self.limits.values():
            limits[row] = UNLIMITED
        for driver, limit in node.limits if node else ():
            if driver not in self.limits:
                self.limits[driver] = np.full(self._rows, UNLIMITED, np.int64)
            self.limits[driver][row] = limit
