"""Garbage collection in a scheduler that runs for months. Called by ``app`` and ``loop``.

The state of a cluster is millions of objects that live long, with hardly any cycles. A full
collection finds little, and stops everything for as long as it takes.
"""

from __future__ import annotations

import gc
from typing import Final

YOUNG_MAX: Final = 20_000
"""Objects in a collection of the youngest generation: about 1 ms."""
MIDDLE_MAX: Final = 5
"""Collections of the youngest generation before one of the middle one: about 5 ms."""
OLD_MAX: Final = 200
"""Collections of the middle generation before a full one: once in 20 million objects."""
YOUNG_CHANGES_MAX: Final = 1000
"""Changes of pods that make about ``YOUNG_MAX`` objects."""


def prepare_memory() -> None:
    """Set the thresholds, and exclude modules and classes. Call it before anything is listed."""
    gc.freeze()  # modules and classes
    gc.set_threshold(YOUNG_MAX, MIDDLE_MAX, OLD_MAX)


def freeze_memory() -> None:
    """Exclude what was listed from collections: it lives long."""
    gc.collect(1)
    gc.freeze()


class YoungCollector:
    """Collects new objects in time while each of them replaces an older one.

    Python counts objects made less objects dropped. A new list of known pods drops as many as it
    makes, so that no collection begins; then one has to go through all of them, for a second.
    """

    def __init__(self) -> None:
        self._changes = 0
        self._searches = 0

    def changed(self, count: int) -> None:
        """Note that ``count`` changes were observed."""
        self._changes += count
        if self._changes >= YOUNG_CHANGES_MAX:
            self._changes = 0
            self._searches += 1
            gc.collect(1 if self._searches % MIDDLE_MAX == 0 else 0)
