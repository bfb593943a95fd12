"""Decisions of a seed: the same seed draws the same case, on any machine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Seeded:
    """A ``Choice`` of random numbers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[int(self._random.random() * len(values))]

    def number(self, least: int, most: int) -> int:
        """Return a whole number, both ends included."""
        return least + int(self._random.random() * (most - least + 1))

    def chance(self, percent: int) -> bool:
        """Return True that often."""
        return self._random.random() * 100 < percent
