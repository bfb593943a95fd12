"""What rules and scores found out about all nodes, kept from decision to decision.

In: a key, and what to make. Out: arrays that nobody may write to. An answer is made anew when the
nodes' attributes have changed; a mask is brought up to date row by row by ``rules.masks``, which
alone reads and writes masks here. When answers take too much memory
(``policy.MASKS_KEPT_BYTES_MAX``), the one that was used longest ago goes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.nodes.encoding import PodClasses
from quorate.core.cluster.recently_used import Recent
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import policy
from quorate.core.room.devices.allocations import Outcomes

_Value = TypeVar("_Value")
Version = tuple[int, int, int]


class KeptMask(NamedTuple):
    """Nodes that pass, as of a position in ``NodeTable.attributes_log``."""

    mask: Mask
    seen: int


class _KeptFact(NamedTuple):
    """What was made of the nodes' attributes of a version."""

    version: Version
    value: Any


class Answers:
    """Masks by what the rules of kind NODE read of a pod class, and other facts by their keys."""

    def __init__(self) -> None:
        self._kept: Recent[tuple[object, ...], KeptMask | _KeptFact] = Recent()
        self.outcomes = Outcomes()
        """What claims get on kinds of nodes."""
        self._given_back = 0

    def give_back(self, classes: PodClasses) -> None:
        """Forget the masks of attributes that no pod has, when they may be half of all."""
        if classes.given_back - self._given_back <= max(
            policy.ANSWERS_UNUSED_FEW, len(self._kept) // 2
        ):
            return
        self._given_back = classes.given_back
        for key in list(self._kept):
            if key[0] == "mask" and not classes.has_attributes(key[1]):
                self._kept.drop(key)

    @staticmethod
    def version_of(snapshot: Snapshot, *, images: bool = False) -> Version:
        """Return a value that differs whenever labels, taints, nodes (or ``images``) differ."""
        version = snapshot.table.images_version if images else 0
        return snapshot.attributes_version, version, len(snapshot)

    def mask(self, attributes: object) -> KeptMask | None:
        """Return the mask that is kept for a class with these attributes, and count its use."""
        found = self._kept.get(("mask", attributes))
        return found if isinstance(found, KeptMask) else None

    def has_mask(self, attributes: object) -> bool:
        """Whether a mask is kept for a class with these attributes."""
        return ("mask", attributes) in self._kept

    def keep_mask(self, attributes: object, kept: KeptMask) -> None:
        """Keep a mask, as the one that was used last."""
        self._keep(("mask", attributes), kept)

    def replace_mask(self, attributes: object, kept: KeptMask) -> None:
        """Put a mask of the same size in the place of the one that is kept."""
        self._kept.replace(("mask", attributes), kept)

    def fact(
        self,
        snapshot: Snapshot,
        key: object,
        make: Callable[[], _Value],
        *,
        images: bool = False,
    ) -> _Value:
        """Return what ``make`` returns, made once for as long as nodes stay as they are.

        ``make`` may look at the nodes' labels and taints, and at what is in the ``key``; with
        ``images`` at their images too. Nobody may write to what is returned.
        """
        version = self.version_of(snapshot, images=images)
        known = self._kept.get(("made", key))
        if isinstance(known, _KeptFact) and known.version == version:
            found: _Value = known.value
            return found
        found = make()
        if isinstance(found, np.ndarray):
            found.setflags(write=False)
        self._keep(("made", key), _KeptFact(version, found))
        return found

    def _keep(self, key: tuple[object, ...], entry: KeptMask | _KeptFact) -> None:
        value = entry.mask if isinstance(entry, KeptMask) else entry.value
        self._kept.put(key, entry, policy.MASKS_KEPT_BYTES_MAX, _bytes_of(value))

    def __len__(self) -> int:
        """Return how many answers are kept."""
        return len(self._kept)

    @property
    def bytes_kept(self) -> int:
        """How much memory they take, as it is counted."""
        return self._kept.size


def _bytes_of(value: object) -> int:
    parts = value if isinstance(value, tuple) else (value,)
    return policy.MASK_ENTRY_BYTES + sum(p.nbytes for p in parts if isinstance(p, np.ndarray))
