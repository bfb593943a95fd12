"""What the volumes of a pod can demand of a node, as values. Made by ``volume_needs``."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from quorate.core.cluster.storage.volume_counts import VolumeId
from quorate.core.model import LabelSelector, SelectorTerm
from quorate.core.model.storage import ClaimKey


class Problem(NamedTuple):
    """Why no node can take the pod, said by one rule, in kube-scheduler's words.

    ``kind`` is alike for alike pods; ``detail`` names the object and the field to fix.
    """

    rule: str
    kind: str
    text: str
    detail: str


class Topology(NamedTuple):
    """A zone or region label of a bound volume: a node with such labels must have one of these."""

    key: str
    values: tuple[str, ...]


class BoundNeed(NamedTuple):
    """A bound claim; ``affinity`` is its volume's (None: any node)."""

    affinity: tuple[SelectorTerm, ...] | None
    exists: bool = True


class UnboundNeed(NamedTuple):
    """A claim that waits for its first pod to have a node.

    ``kept`` is a volume that is kept for it already; ``claim`` names it where other living pods use
    it too, ``shareable`` then says that these may be on other nodes.
    """

    storage_class: str
    size: int | None
    access_modes: tuple[str, ...]
    volume_mode: str
    attributes_class: str
    selector: LabelSelector | None
    selected_node: str | None
    kept: str = ""
    claim: ClaimKey | None = None
    shareable: bool = False


class VolumeNeeds(msgspec.Struct, frozen=True, cache_hash=True):
    """All that the volume rules read of a pod.

    ``bound`` is in the pod's order, ``unbound`` from small to large. ``new`` is how many volumes
    that nobody else uses the pod brings along, by driver; ``shared`` are the others. ``exclusive``
    are claims that one pod at a time may use, and that others use or want to.
    """

    problems: tuple[Problem, ...] = ()
    bound: tuple[BoundNeed, ...] = ()
    topologies: tuple[Topology, ...] = ()
    unbound: tuple[UnboundNeed, ...] = ()
    new: tuple[tuple[str, int], ...] = ()
    shared: tuple[VolumeId, ...] = ()
    exclusive: tuple[ClaimKey, ...] = ()
