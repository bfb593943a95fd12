"""The seed of a run of random tests: fresh each time, unless ``QUORATE_SEED`` says which.

It is put into the environment, so that all processes of one run have the same, and
``conftest.py`` prints it at the end of each run, also when all is well. Seeds that once
failed are kept in ``kept_seeds.toml`` and drawn again in each run.
"""

from __future__ import annotations

import os
import random
import tomllib
from pathlib import Path

SEED = int(os.environ.setdefault("QUORATE_SEED", str(random.SystemRandom().randrange(2**32))))
_KEPT = Path(__file__).with_name("kept_seeds.toml")


def number(name: str, otherwise: int) -> int:
    """Return a number that the environment may set."""
    return int(os.environ.get(name, otherwise))


def first(of: str) -> int:
    """Return the first of this run's seeds of one kind of draw, such as ``parity``."""
    return random.Random(f"{SEED} {of}").randrange(1, 2**32)


def kept(of: str) -> list:
    """Return the seeds of one kind of draw that failed once. Raises KeyError: there is no such.

    What chaos draws is kept as a list: the run's seed, the world, the function, the call.
    """
    return list(tomllib.loads(_KEPT.read_text())[of]["seeds"])
