"""ImageLocality: nodes that have pulled more of a pod's images, counted by bytes, are better.

An image counts the more, the more nodes have it, so that its first node is not flooded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import PodShape

if TYPE_CHECKING:
    from quorate.core.room.room import Room

_LEAST = 23 << 20
_MOST_OF_A_CONTAINER = 1000 << 20


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100; None: no node has any of the images."""
    del feasible  # not normalised
    table, shape = room.snapshot.table, pod_class.shape
    if not any(image in table.images for image in shape.images):
        return None
    key = "ImageLocality", shape.images, shape.containers
    return room.masks.kept(room, key, lambda: _scores(shape, room), images=True)


def _scores(shape: PodShape, room: Room) -> Ints:
    total = np.zeros(len(room.free), np.int64)
    for image in shape.images:
        sizes = room.snapshot.table.images.get(image, {})
        part = len(sizes) / max(room.snapshot.nodes_alive, 1)
        for row, size in sizes.items():
            total[row] += int(size * part)
    most = _MOST_OF_A_CONTAINER * shape.containers
    scores: Ints = 100 * (np.clip(total, _LEAST, most) - _LEAST) // (most - _LEAST)
    return scores
