"""The seed of a run of random tests: the kept one of ``tests/seed``, or ``QUORATE_SEED``.

So the same commit draws the same in each run. ``make explore`` sets ``QUORATE_SEED`` to fresh
ones. It is put into the environment, so that all processes of one run have the same. Seeds
that once failed are kept in ``kept_seeds.toml`` and drawn again in each run.
"""

from __future__ import annotations

import os
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

_HERE = Path(__file__).parent
_KEPT = _HERE / "kept_seeds.toml"
SEED = int(os.environ.setdefault("QUORATE_SEED", (_HERE.parent / "seed").read_text().strip()))

seeds = st.integers(0, 2**32)
"""What a property draws whose world comes from ``random``."""


def times(count: int) -> int:
    """Return how many of ``count`` draws are made: a tenth, or ``QUORATE_TIMES`` as many."""
    return max(1, round(count * float(os.environ.get("QUORATE_TIMES", "0.1"))))


def drawn(examples: int) -> settings:
    """Return settings, a decorator, for ``times`` so many examples of a property.

    What else holds for all properties is in the profile of the root ``conftest.py``.
    """
    slow = [HealthCheck.too_slow, HealthCheck.large_base_example]
    return settings(max_examples=times(examples), suppress_health_check=slow)


def chances(count: int) -> Iterator[random.Random]:
    """Yield ``times`` so many sources of chance."""
    for seed in range(SEED, SEED + times(count)):
        yield random.Random(seed)


def first(of: str) -> int:
    """Return the first of this run's seeds of one kind of draw, such as ``parity``."""
    return random.Random(f"{SEED} {of}").randrange(1, 2**32)


def kept(of: str) -> list:
    """Return the seeds of one kind of draw that failed once. Raises KeyError: there is no such.

    What chaos draws is kept as a list: the run's seed, the world, the function, the call. A seed of
    the simulation that is played without themes is a list of that seed alone.
    """
    return list(tomllib.loads(_KEPT.read_text())[of]["seeds"])
