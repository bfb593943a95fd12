"""InterPodAffinity: nodes whose domains hold more of the pods that attract, fewer that repel.

Both ways: what the pod prefers, and what pods on nodes prefer (or require) of pods like it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.labels.neighbours import Column, Key
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import PodTerm

if TYPE_CHECKING:
    from quorate.core.room.room import Room


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100: the sum of weights, from its least to its most.

    None: no pod on a node has a say.
    """
    shape, profile = pod_class.shape, pod_class.profile
    if profile.ignore_preferred_terms_of_existing_pods and not shape.preferred_affinity:
        return None
    parts = [(one.weight, _pods(one.term, room)) for one in shape.preferred_affinity]
    if hard := profile.hard_pod_affinity_weight:
        parts += [(hard, key) for key in room.terms(pod_class, Column.ATTRACTED)]
    parts += [(1, key) for key in room.terms(pod_class, Column.PULL)]
    if not parts or not feasible.any():
        return None
    raw = np.zeros(len(feasible), np.int64)
    for weight, key in parts:
        raw += weight * room.sums(key)
    among = raw[feasible]
    least, most = int(among.min()), int(among.max())
    if least == most:
        return np.zeros(len(raw), np.int64)
    scores: Ints = (100.0 * ((raw - least) / float(most - least))).astype(np.int64)
    return scores


def _pods(term: PodTerm, room: Room) -> Key:
    number = room.snapshot.neighbours.selector_id(term.selector)
    return Key(Column.PODS, number, term.topology_key)
