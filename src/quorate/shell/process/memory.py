"""How Python looks after memory in a scheduler that runs for months. Called by ``app``.

What is known of a cluster is millions of objects that live on, and hardly any cycles: a search for
cycles through all of them finds little, and everything stops for as long as it takes.
"""

from __future__ import annotations

import gc
from typing import Final

YOUNG_MAX: Final = 20_000
"""So many new objects are looked through at a time: about 1 ms."""
MIDDLE_MAX: Final = 5
"""So many times as many at a time are looked through once more: about 5 ms."""
OLD_MAX: Final = 200
"""All are looked through after so many times as many again: about once in 20 million objects."""
YOUNG_CHANGES_MAX: Final = 1000
"""The news of so many pods makes about as many objects as ``YOUNG_MAX``."""


def prepare_memory() -> None:
    """Look for cycles among new objects only: before anything is listed."""
    gc.freeze()  # modules and classes
    gc.set_threshold(YOUNG_MAX, MIDDLE_MAX, OLD_MAX)


def freeze_memory() -> None:
    """What was listed lives on: do not look through it for cycles at all."""
    gc.collect(1)
    gc.freeze()


class YoungMemory:
    """Has new objects looked through in time where each of them takes the place of an older one.

    Python counts what was made less what was dropped. A list of pods that are all known drops as
    much as it makes: without this a single search would look through all of it, for a second.
    """

    def __init__(self) -> None:
        self._changes = 0
        self._searches = 0

    def changed(self, count: int) -> None:
        """Note that so many changes were taken in."""
        self._changes += count
        if self._changes >= YOUNG_CHANGES_MAX:
            self._changes = 0
            self._searches += 1
            gc.collect(1 if self._searches % MIDDLE_MAX == 0 else 0)
