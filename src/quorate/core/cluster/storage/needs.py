"""What a pod's volumes need of a node, as values. Made by ``volume_needs``; read by rules."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from quorate.core.cluster.storage.volume_counts import VolumeId
from quorate.core.model import LabelSelector, SelectorTerm
from quorate.core.model.storage import ClaimKey


class Problem(NamedTuple):
    """Why no node can take the pod, found by one rule; ``text`` is kube-scheduler's message.

    ``kind`` is the same for pods with the same problem; ``detail`` names the object and the field
    to fix.
    """

    rule: str
    kind: str
    text: str
    detail: str


class Topology(NamedTuple):
    """A zone or region label of a bound volume; a node with such labels must have such a value."""

    key: str
    values: tuple[str, ...]


class BoundNeed(NamedTuple):
    """A bound claim; ``affinity`` is that of its volume (None: any node)."""

    affinity: tuple[SelectorTerm, ...] | None
    exists: bool = True


class UnboundNeed(NamedTuple):
    """A claim that is bound only when its first pod has a node (WaitForFirstConsumer).

    ``kept`` is the name of a volume already kept for the claim, or "". ``claim`` is its key if
    other living pods use it too; ``shareable`` then says that they may be on other nodes.
    ``is_one_of_several`` claims of its class that the pod has open: none gets a static volume.
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
    is_one_of_several: bool = False

    @property
    def is_open(self) -> bool:
        """Whether neither a volume nor a node is chosen for it."""
        return not self.kept and self.selected_node is None


class VolumeNeeds(msgspec.Struct, frozen=True, cache_hash=True):
    """All that the volume rules read of a pod.

    ``bound`` is in the pod's order, ``unbound`` from small to large. ``new`` is, by driver, the
    number of volumes that no other pod uses; ``shared`` are the ids of the others. ``exclusive``
    are ReadWriteOncePod claims that other living pods use or wait for too.
    """

    problems: tuple[Problem, ...] = ()
    bound: tuple[BoundNeed, ...] = ()
    topologies: tuple[Topology, ...] = ()
    unbound: tuple[UnboundNeed, ...] = ()
    new: tuple[tuple[str, int], ...] = ()
    shared: tuple[VolumeId, ...] = ()
    exclusive: tuple[ClaimKey, ...] = ()
