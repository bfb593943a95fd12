"""The seed of a run of random tests: fresh each time, unless ``QUORATE_SEED`` says which.

It is put into the environment, so that all processes of one run have the same, and printed by
``tests/property/conftest.py`` when a test failed.
"""

from __future__ import annotations

import os
import random

SEED = int(os.environ.setdefault("QUORATE_SEED", str(random.SystemRandom().randrange(2**32))))


def number(name: str, otherwise: int) -> int:
    """Return a number that the environment may set."""
    return int(os.environ.get(name, otherwise))
