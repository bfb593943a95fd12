"""A cache of what rules and scores computed about all nodes; it outlives the decision.

In: a key and a function. Out: read-only arrays. A fact is computed again when node attributes have
changed. A mask is updated row by row by ``rules.masks``, the only module that reads and writes
masks here. When the cache takes too much memory (``policy.MASKS_KEPT_BYTES_MAX``), the least
recently used entry is evicted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.lru_cache import LruCache
from quorate.core.cluster.nodes.encoding import PodClasses
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.model import policy
from quorate.core.room.devices.outcomes import Outcomes

_Value = TypeVar("_Value")
Version = tuple[int, int]


class CachedMask(NamedTuple):
    """Nodes that pass, as of a position in ``NodeTable.attributes_log``."""

    mask: Mask
    seen: int


class _CachedFact(NamedTuple):
    """A value computed from one version of the node attributes."""

    version: Version
    value: Any


class RuleCache:
    """Masks by what the rules of kind NODE read of a pod class, and other facts by their keys."""

    def __init__(self) -> None:
        self._kept: LruCache[tuple[object, ...], CachedMask | _CachedFact] = LruCache()
        self.outcomes = Outcomes()
        """The device allocations that claims get on kinds of nodes."""
        self._given_back = 0

    def give_back(self, classes: PodClasses) -> None:
        """Drop the masks of attributes that no pod has, once they may be half of all masks."""
        if classes.given_back - self._given_back <= max(
            policy.ANSWERS_UNUSED_FEW, len(self._kept) // 2
        ):
            return
        self._given_back = classes.given_back
        for key in list(self._kept):
            if key[0] == "mask" and not classes.has_attributes(key[1]):
                self._kept.drop(key)

    @staticmethod
    def version_of(snapshot: Snapshot) -> Version:
        """Return a value that changes whenever labels, taints or the set of nodes change."""
        return snapshot.attributes_version, len(snapshot)

    def mask(self, attributes: object) -> CachedMask | None:
        """Return the mask cached for these attributes of a class, and mark it as used."""
        found = self._kept.get(("mask", attributes))
        return found if isinstance(found, CachedMask) else None

    def has_mask(self, attributes: object) -> bool:
        """Whether a mask is cached for these attributes of a class."""
        return ("mask", attributes) in self._kept

    def keep_mask(self, attributes: object, kept: CachedMask) -> None:
        """Add a mask to the cache as the most recently used entry."""
        self._keep(("mask", attributes), kept)

    def replace_mask(self, attributes: object, kept: CachedMask) -> None:
        """Replace a cached mask by one of the same size."""
        self._kept.replace(("mask", attributes), kept)

    def fact(self, snapshot: Snapshot, key: object, make: Callable[[], _Value]) -> _Value:
        """Return what ``make`` returns, read-only; it is called once for each version of the nodes.

        ``make`` may depend on the nodes' labels and taints and on the ``key``.
        """
        version = self.version_of(snapshot)
        known = self._kept.get(("made", key))
        if isinstance(known, _CachedFact) and known.version == version:
            found: _Value = known.value
            return found
        found = make()
        if isinstance(found, np.ndarray):
            found.setflags(write=False)
        self._keep(("made", key), _CachedFact(version, found))
        return found

    def _keep(self, key: tuple[object, ...], entry: CachedMask | _CachedFact) -> None:
        value = entry.mask if isinstance(entry, CachedMask) else entry.value
        self._kept.put(key, entry, policy.MASKS_KEPT_BYTES_MAX, _bytes_of(value))

    def __len__(self) -> int:
        """Return the number of cached answers."""
        return len(self._kept)

    @property
    def bytes_kept(self) -> int:
        """The memory of all cached answers, in bytes, by this class's own count."""
        return self._kept.size


def _bytes_of(value: object) -> int:
    parts = value if isinstance(value, tuple) else (value,)
    return policy.MASK_ENTRY_BYTES + sum(p.nbytes for p in parts if isinstance(p, np.ndarray))
