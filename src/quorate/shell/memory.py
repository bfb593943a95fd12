"""How Python looks after memory in a scheduler that runs for months. Called by ``app``."""

from __future__ import annotations

import gc

_GC_THRESHOLDS = (20_000, 20, 50)
"""A burst of a thousand pods makes many objects that live on: look for cycles less often."""


def freeze_memory() -> None:
    """What was listed lives on: do not look through it for cycles again and again."""
    gc.collect(1)  # all of it would stop everything for a second, and find little
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
