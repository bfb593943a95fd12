"""Merging what a writer applies into what is there, and taking fields out of it.

Source of the rules: sigs.k8s.io/structured-merge-diff v6, ``typed/merge.go`` and ``remove.go``.
"""

from __future__ import annotations

from typing import Any

from pocketkube.patch.apply.field_paths import SELF, Fields, field, write_fields
from pocketkube.patch.apply.structure import (
    ABSENT,
    Parts,
    by_element,
    field_shape,
    holds_something,
    item_element,
    item_shape,
    parts,
)
from pocketkube.patch.values import Json
from pocketkube.schema.shape import Shape


def merged(live: Json, applied: Json, shape: Shape) -> Json:
    """Return ``live`` with ``applied`` over it; parts of both may be shared, so copy first.

    Nothing is removed. Items of lists keep their order; where the two differ, ``applied`` decides.
    Raises MismatchError for items without keys.
    """
    how = parts(shape, live, applied)
    if how is Parts.NONE or not (holds_something(live) or holds_something(applied)):
        return live if applied is ABSENT else applied
    if how is Parts.ITEMS:
        return _merged_items(live, applied, shape) or ABSENT
    old = live if isinstance(live, dict) else {}
    new = applied if isinstance(applied, dict) else {}
    found: dict[str, Json] = {}
    for name in {**old, **new}:
        value = merged(old.get(name, ABSENT), new.get(name, ABSENT), field_shape(shape, name))
        if value is not ABSENT:
            found[name] = value
    return found or ABSENT


def _merged_items(live: Json, applied: Json, shape: Shape) -> list[Json]:
    """Walk both lists at once: items of only one list stay between the shared ones around them."""
    left = list(live) if isinstance(live, list) else []
    left_names = [item_element(shape, item) for item in left]
    old, new = by_element(shape, left), by_element(shape, applied)
    right_names = list(new)
    shared = [name for name in right_names if name in old]
    out: list[Json] = []
    done: set[str] = set()

    def take(name: str) -> None:
        done.add(name)
        was = old.get(name, [])
        # What was there twice is not merged into, but replaced.
        below = ABSENT if len(was) != 1 else was[0]
        out.append(merged(below, new[name][0], item_shape(shape)))
        if shared and shared[0] == name:
            shared.pop(0)

    at = to = 0
    while at < len(left_names) or to < len(right_names):
        name = left_names[at] if at < len(left_names) else ""
        if name and to < len(right_names):
            if name == right_names[to]:
                take(name)
                at, to = at + 1, to + 1
                continue
            if name in new and shared and shared[0] != name:
                at += 1  # it is shared, but its turn comes where ``applied`` has it
                continue
        if name and name not in new:
            out.append(left[at])
            at += 1
            continue
        at += 1 if name in done else 0
        if to < len(right_names):
            take(right_names[to])
            to += 1
    return [item for item in out if item is not ABSENT]


def without(value: Json, fields: Fields, shape: Shape) -> Json:
    """Return ``value`` less these fields and items, each with what is in it.

    What becomes empty becomes null, as upstream.
    """
    return _without(value, write_fields(fields), shape) if fields else value


def _without(value: Json, tree: dict[str, Any], shape: Shape) -> Json:
    how = parts(shape, value)
    if how is Parts.FIELDS and isinstance(value, dict):
        found: dict[str, Json] = {}
        for name, inner in value.items():
            below = tree.get(field(name))
            if not _is_member(below):
                inside = field_shape(shape, name)
                found[name] = _without(inner, below, inside) if below else inner
        return found or None
    if how is Parts.ITEMS and isinstance(value, list):
        inside, items = item_shape(shape), []
        for item in value:
            below = tree.get(item_element(shape, item))
            if not _is_member(below):
                items.append(_without(item, below, inside) if below else item)
        return items or None
    return None if isinstance(value, dict | list) else value


def _is_member(node: dict[str, Any] | None) -> bool:
    """Tell whether FieldsV1 has the field itself, and not only something inside it."""
    return node is not None and (not node or SELF in node)
