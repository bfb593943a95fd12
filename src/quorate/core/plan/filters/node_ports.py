"""NodePorts: a host port that the pod wants must be free on the node."""

from __future__ import annotations

import numpy as np

from quorate.core.model import PodShape
from quorate.core.state.encoding import Mask
from quorate.core.state.snapshot import Snapshot

MESSAGE = "node(s) didn't have free ports for the requested pod ports"


def passes(shape: PodShape, snapshot: Snapshot) -> Mask:
    """Return bool[n]: nodes where no pod holds a conflicting port."""
    mask = np.ones(len(snapshot), np.bool_)
    for port in shape.host_ports:
        mask[snapshot.rows_with_port(port)] = False
    return mask


def conflict(shape: PodShape, other: PodShape) -> bool:
    """Whether two pods of these shapes cannot be on one node because of their host ports."""
    return any(mine.conflicts(yours) for mine in shape.host_ports for yours in other.host_ports)
