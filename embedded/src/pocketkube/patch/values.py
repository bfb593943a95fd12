"""JSON values as the real server, written in Go, compares and prints them."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value as JSON decodes it."""


_GO_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),  # before int: in Python a bool is one
    (int, "int64"),
    (float, "float64"),
    (str, "string"),
    (list, "[]interface {}"),
    (dict, "map[string]interface {}"),
)


def same(one: Json, other: Json) -> bool:
    """Tell whether two JSON values are equal; unlike in Python, ``true`` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def go_type(value: Json) -> str:
    """Return the type that Go decodes a JSON value to, as ``%T`` prints it."""
    if value is None:
        return "%!s(<nil>)"
    for kind, name in _GO_TYPES:
        if isinstance(value, kind):
            return name
    raise TypeError(f"no JSON value: {value!r}")


def go_text(value: Json) -> str:
    """Return a value as ``%v`` prints it: ``map[a:1 b:[x y]]``."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    return str(value)


def json_type(value: Json) -> str:
    """Return the word for a value's type in Go's errors about JSON."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    return "string" if isinstance(value, str) else "number"
