"""Sets of fields as managedFields write them: FieldsV1, read into plain sets of paths and back.

A path is a tuple of elements, each as FieldsV1 spells it: ``f:spec`` is a field,
``k:{"name":"a"}`` an item known by its keys, ``v:"x"`` an item of a set, ``i:0`` a place. Because
elements are strings, union, difference and intersection are those of Python.
Source: sigs.k8s.io/structured-merge-diff v6, ``fieldpath``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

from pocketkube.patch.values import Json

Path = tuple[str, ...]
Fields = frozenset[Path]

NOTHING: Fields = frozenset()
SELF = "."
"""In FieldsV1: the field itself belongs to the set, and so does something inside it."""


def field(name: str) -> str:
    """Return the element of a field: ``f:spec``."""
    return f"f:{name}"


def item_by_keys(keys: dict[str, Json]) -> str:
    """Return the element of an item known by its keys: ``k:{"name":"a"}``."""
    return "k:" + _compact({name: keys[name] for name in sorted(keys)})


def item_by_value(value: Json) -> str:
    """Return the element of an item of a set: ``v:"x"``."""
    return "v:" + _compact(value)


def named(*names: str) -> Path:
    """Return the path of a field by names alone: ``named("metadata", "labels")``."""
    return tuple(field(name) for name in names)


def read_fields(fields_v1: Json) -> Fields:
    """Read FieldsV1. Elements of an unknown kind are skipped, as upstream. Raises ValueError."""
    found: set[Path] = set()
    _read_into(found, (), fields_v1)
    found.discard(())
    return frozenset(found)


def _read_into(found: set[Path], path: Path, node: Json) -> None:
    if node is not None and not isinstance(node, dict):
        raise ValueError(f"not a set of fields: {node!r}")
    before, node = len(found), node or {}
    for key, below in node.items():
        if key != SELF:
            element = _element(key)
            if element:
                _read_into(found, (*path, element), below)
    if len(found) == before or SELF in node:
        found.add(path)


def _element(text: str) -> str:
    """Return an element in the one spelling that we compare; empty when its kind is unknown."""
    if len(text) < 2 or text[1] != ":":
        raise ValueError(f"not a path element: {text!r}")
    kind, rest = text[0], text[2:]
    if kind == "f":
        return text
    if kind == "i":
        return f"i:{int(rest)}"
    if kind not in "kv":
        return ""
    value = json.loads(rest)
    if kind == "v":
        return item_by_value(value)
    if not isinstance(value, dict):
        raise ValueError(f"not the keys of an item: {text!r}")
    return item_by_keys(value)


def write_fields(fields: Fields) -> dict[str, Json]:
    """Write FieldsV1, in upstream's order."""
    root: dict[str, Json] = {}
    for path in sorted(fields, key=lambda path: [order(element) for element in path]):
        node = root
        for depth, element in enumerate(path, start=1):
            node = node.setdefault(element, {})
            if not node and depth < len(path) and path[:depth] in fields:
                node[SELF] = {}
    return root


def preorder(fields: Iterable[Path]) -> list[Path]:
    """Return the paths as upstream lists them: at each depth the members, then what is deeper."""

    def place(path: Path) -> list[tuple[bool, tuple[Json, ...]]]:
        return [(depth < len(path), order(e)) for depth, e in enumerate(path, start=1)]

    return sorted(fields, key=place)


def without_trees(fields: Fields, roots: Iterable[Path]) -> Fields:
    """Return the fields that are neither a root nor below one."""
    tops = set(roots)
    if not tops:
        return fields
    return frozenset(p for p in fields if not any(p[:n] in tops for n in range(1, len(p) + 1)))


@lru_cache(maxsize=4096)
def order(element: str) -> tuple[Json, ...]:
    """Return what elements are sorted by: fields, then keys, values, places."""
    kind, rest = element[0], element[2:]
    if kind == "k":
        return (1, tuple((name, *_order_of(value)) for name, value in json.loads(rest).items()))
    if kind == "v":
        return (2, _order_of(json.loads(rest)))
    return (3, int(rest)) if kind == "i" else (0, rest)


def _order_of(value: Json) -> tuple[int, Json]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, _compact(value))


def text_of(path: Path) -> str:
    """Return a path for people: ``.spec.containers[name="a"].image``."""
    return "".join(text_of_element(element) for element in path)


def text_of_element(element: str) -> str:
    """Return one element for people: ``.image``, ``[name="a"]``, ``[="x"]``, ``[0]``."""
    kind, rest = element[0], element[2:]
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        keys = json.loads(rest)
        return "[" + ",".join(f"{name}={_compact(keys[name])}" for name in keys) + "]"
    return f"[={rest}]" if kind == "v" else f"[{rest}]"


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
