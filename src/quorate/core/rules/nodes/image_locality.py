"""ImageLocality, a score: nodes that have pulled more bytes of the pod's images are better.

An image counts more if more nodes have it, so that the first node to have it is not flooded. No
node is ruled out. Source: kube-scheduler 1.36's plugin of that name.
"""

from __future__ import annotations

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import PodSpec
from quorate.core.room.room import Room
from quorate.core.rules.rule import Rule, RuleKind

_LEAST = 23 << 20
_MOST_OF_A_CONTAINER = 1000 << 20


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100; None: no node has any of the images."""
    del feasible  # not normalised
    table, spec = room.snapshot.table, pod_class.spec
    if not any(image in table.images for image in spec.images):
        return None
    key = "ImageLocality", spec.images, spec.containers
    return room.cached(key, lambda: _scores(spec, room), images=True)


def _scores(spec: PodSpec, room: Room) -> Ints:
    total = np.zeros(len(room.free), np.int64)
    for image in spec.images:
        sizes = room.snapshot.table.images.get(image, {})
        part = len(sizes) / max(room.snapshot.nodes_alive, 1)
        for row, size in sizes.items():
            total[row] += int(size * part)
    most = _MOST_OF_A_CONTAINER * spec.containers
    scores: Ints = 100 * (np.clip(total, _LEAST, most) - _LEAST) // (most - _LEAST)
    return scores


RULE = Rule(name="ImageLocality", kind=RuleKind.NODE, score=score)
