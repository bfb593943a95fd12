"""JSON values as the real server, written in Go, compares them."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value as JSON decodes it."""


def same(one: Json, other: Json) -> bool:
    """Tell whether two JSON values are equal; unlike in Python, ``true`` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
