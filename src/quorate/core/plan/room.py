"""The room that is left while one cycle places gangs: a working copy of the snapshot's free space.

A gang is tried on a ``copy`` and taken over whole, or dropped: nothing is ever undone by hand.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quorate.core.plan.filters import AttributeMasks, node_ports, pod_slots
from quorate.core.state.encoding import Ints, Mask, PodClass
from quorate.core.state.snapshot import Snapshot

Amounts = npt.NDArray[np.float64]


class Room:
    """Free space (int64[n, r], base units) and the host ports taken since the snapshot."""

    def __init__(self, snapshot: Snapshot, masks: AttributeMasks) -> None:
        self.snapshot = snapshot
        self.masks = masks
        self.free: Ints = snapshot.free.copy(order="F")
        self._ports_taken: list[tuple[PodClass, Ints]] = []
        self._in_sum: Amounts | None = None

    def copy(self) -> Room:
        """Return a room of its own to try something in."""
        other = Room.__new__(Room)
        other.snapshot, other.masks = self.snapshot, self.masks
        other.free = self.free.copy(order="F")
        other._ports_taken = list(self._ports_taken)
        other._in_sum = self._in_sum
        return other

    def mask(self, pod_class: PodClass) -> Mask:
        """Return bool[n]: nodes that pass the attribute rules for the class."""
        return self.masks.of(pod_class, self.snapshot)

    def slots(self, pod_class: PodClass) -> Ints:
        """Return int64[n]: how many more pods of the class each node takes."""
        count = pod_slots(pod_class, self.free, self.mask(pod_class), self.snapshot)
        if pod_class.shape.host_ports:
            for other, rows in self._ports_taken:
                if node_ports.conflict(pod_class.shape, other.shape):
                    count[rows] = 0
        return count

    def in_sum(self) -> Amounts:
        """Return float64[r]: the free room of all nodes that are not cordoned, added up."""
        if self._in_sum is None:
            usable = self.snapshot.alive & ~self.snapshot.unschedulable
            self._in_sum = np.maximum(self.free[usable], 0).sum(axis=0, dtype=np.float64)
        return self._in_sum

    def take(self, pod_class: PodClass, pods: Ints) -> None:
        """Count ``pods`` (int64[n]) more pods of the class."""
        self._in_sum = None
        rows = np.flatnonzero(pods)
        for column, amount in pod_class.demands:
            self.free[rows, column] -= amount * pods[rows]
        if pod_class.shape.host_ports:
            self._ports_taken.append((pod_class, rows))
