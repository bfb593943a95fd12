"""Where the decisions of a random case come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Object = dict[str, Any]


class Choice(Protocol):
    """Where decisions come from: hypothesis, or a seed."""

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the values."""

    def number(self, least: int, most: int) -> int:
        """Return a whole number, both ends included."""

    def chance(self, percent: int) -> bool:
        """Return True that often; shrinks to False."""
