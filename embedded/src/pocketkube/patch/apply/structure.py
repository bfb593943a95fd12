"""How values and shapes go together for server-side apply: which fields a value has, what differs.

Source of the rules: sigs.k8s.io/structured-merge-diff v6, ``typed``; which type of list or map a
field is comes from its shape.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final, NamedTuple

from pocketkube.patch.apply.field_paths import (
    Fields,
    Path,
    field,
    item_by_keys,
    item_by_value,
)
from pocketkube.patch.values import Json, same
from pocketkube.schema.roundtrip import filled
from pocketkube.schema.shape import Merge, Shape, Type


class _Absent(enum.Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""In place of a value that is not there, which is something else than null."""

DEDUCED = Shape(type=Type.ANY)
"""Of fields that no schema names: objects are merged by field, lists are replaced."""

_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_UNTYPED = Shape(type=Type.ANY, name=_RAW)
"""Of values that are owned as a whole, whatever they are."""


class MismatchError(Exception):
    """A value is not of its shape."""


class Parts(enum.Enum):
    """What a value is made of, for owning and merging it."""

    NONE = "none"  # scalars, and lists and maps that are owned as a whole
    FIELDS = "fields"
    ITEMS = "items"


def parts(shape: Shape, *values: Json) -> Parts:
    """Return how the values of one place are taken apart."""
    if shape.type in (Type.OBJECT, Type.MAP):
        return Parts.NONE if shape.merge is Merge.ATOMIC else Parts.FIELDS
    if shape.type is Type.LIST:
        return Parts.ITEMS if shape.merge in (Merge.SET, Merge.MAP) else Parts.NONE
    if shape.type is Type.ANY and shape.name != _RAW:
        there = [value for value in values if value is not None and value is not ABSENT]
        by_field = bool(there) and all(isinstance(value, dict) for value in there)
        return Parts.FIELDS if by_field else Parts.NONE
    return Parts.NONE


def is_named(shape: Shape, name: str) -> bool:
    """Tell whether the shape names this field, as opposed to a key of a map."""
    return shape.type is Type.OBJECT and name in shape.fields


def field_shape(shape: Shape, name: str) -> Shape:
    """Return the shape of an object's field or of a map's value."""
    if shape.type is Type.OBJECT:
        return shape.fields.get(name, DEDUCED)
    return (shape.item or DEDUCED) if shape.type is Type.MAP else DEDUCED


def item_shape(shape: Shape) -> Shape:
    """Return the shape of a list's items."""
    return shape.item or _UNTYPED


def shape_below(shape: Shape, element: str) -> Shape:
    """Return the shape that an element of a path leads to."""
    return field_shape(shape, element[2:]) if element[0] == "f" else item_shape(shape)


def item_element(shape: Shape, item: Json) -> str:
    """Return what an item of a list is known by. Raises MismatchError."""
    if shape.merge is not Merge.MAP:
        if isinstance(item, dict):
            raise MismatchError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise MismatchError("not supported: associative list with lists as elements")
        if item is None:
            raise MismatchError(
                "associative list without keys has an element that's an explicit null"
            )
        return item_by_value(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise MismatchError(f"associative list with keys may not have {what}")
    keys = {name: item.get(name, _default(shape, name)) for name in shape.keys}
    known = {name: value for name, value in keys.items() if value is not None or name in item}
    if not known:
        names = " ".join(f'"{name}"' for name in shape.keys)
        raise MismatchError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return item_by_keys(known)


def _default(shape: Shape, name: str) -> Json:
    key = field_shape(item_shape(shape), name)
    return key.default if key.has_default else None


def fields_of(value: Json, shape: Shape) -> Fields:
    """Return what a writer who sends ``value`` owns: every leaf, and each item of a list.

    Raises MismatchError for items without keys.
    """
    return frozenset(_owned(value, shape, ()))


def _owned(value: Json, shape: Shape, path: Path) -> Iterator[Path]:
    how = parts(shape, value)
    if how is Parts.NONE:
        if path:
            yield path
    elif how is Parts.FIELDS and isinstance(value, dict):
        for name, inner in value.items():
            below = (*path, field(name))
            yield from _owned(inner, field_shape(shape, name), below)
            if inner is None or inner == {} or not is_named(shape, name):
                yield below
    elif how is Parts.ITEMS and isinstance(value, list):
        for element, items in by_element(shape, value).items():
            below = (*path, element)
            yield below
            if len(items) == 1:  # what is there twice is owned only as a whole
                yield from _owned(items[0], item_shape(shape), below)


def by_element(shape: Shape, items: Json) -> dict[str, list[Json]]:
    """Return a list's items by what they are known by. Raises MismatchError."""
    found: dict[str, list[Json]] = {}
    for item in items if isinstance(items, list) else ():
        found.setdefault(item_element(shape, item), []).append(item)
    return found


class Difference(NamedTuple):
    """What one value has and another has not.

    Only an item that was there twice and is not any more, or the reverse, is in two of the sets.
    """

    removed: Fields
    modified: Fields
    added: Fields

    @property
    def written(self) -> Fields:
        """Return what has a new value."""
        return self.modified | self.added


def difference(before: Json, after: Json, shape: Shape) -> Difference:
    """Compare two values of one shape. Raises MismatchError for items without keys."""
    found: tuple[set[Path], set[Path], set[Path]] = (set(), set(), set())
    _compare(before, after, shape, (), found)
    removed, modified, added = (frozenset(paths - {()}) for paths in found)
    return Difference(removed, modified, added)


def _compare(
    before: Json,
    after: Json,
    shape: Shape,
    path: Path,
    found: tuple[set[Path], set[Path], set[Path]],
) -> None:
    removed, modified, added = found
    how = parts(shape, before, after)
    # Two that hold nothing are compared as a whole, so that null and empty differ.
    whole = how is Parts.NONE or not (holds_something(before) or holds_something(after))
    if before is ABSENT:
        added.add(path)
    elif after is ABSENT:
        removed.add(path)
    elif whole and not same(before, after):
        modified.add(path)
    if whole and not _became_object(shape, before, after):
        return
    if how is not Parts.ITEMS:
        old, new = _object(before), _object(after)
        for name in {**old, **new}:
            inner = field_shape(shape, name)
            below = (*path, field(name))
            _compare(old.get(name, ABSENT), new.get(name, ABSENT), inner, below, found)
    else:
        _compare_items(before, after, shape, path, found)


def _became_object(shape: Shape, before: Json, after: Json) -> bool:
    """Tell whether a value without a schema is an object on one side, something else on the other.

    It is modified then, and so is what is in the object.
    """
    if shape.type is not Type.ANY or shape.name == _RAW or before is ABSENT or after is ABSENT:
        return False
    return isinstance(before, dict) != isinstance(after, dict)


def _compare_items(
    before: Json,
    after: Json,
    shape: Shape,
    path: Path,
    found: tuple[set[Path], set[Path], set[Path]],
) -> None:
    removed, modified, added = found
    old, new = by_element(shape, before), by_element(shape, after)
    for element in {**old, **new}:
        below, had, has = (*path, element), old.get(element, []), new.get(element, [])
        if len(had) < 2 and len(has) < 2:
            first, then = (had or [ABSENT])[0], (has or [ABSENT])[0]
            _compare(first, then, item_shape(shape), below, found)
        elif len(had) > 1 and len(has) > 1:
            if not same(had, has):
                modified.add(below)
        elif len(had) > 1:
            if has:
                _compare(ABSENT, has[0], item_shape(shape), below, found)
            removed.add(below)
        else:
            if had:
                _compare(had[0], ABSENT, item_shape(shape), below, found)
            added.add(below)


def holds_something(value: Json) -> bool:
    """Tell whether it is an object or a list, and not an empty one."""
    return isinstance(value, dict | list) and bool(value)


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def with_named_parents(fields: Fields, shape: Shape) -> Fields:
    """Add the named fields on the way to each path, which are not members by themselves."""
    found = set(fields)
    for path in fields:
        at = shape
        for depth, element in enumerate(path[:-1], start=1):
            if element[0] == "f" and is_named(at, element[2:]):
                found.add(path[:depth])
            at = shape_below(at, element)
    return frozenset(found)


def settled(fields: Fields, shape: Shape) -> Fields:
    """Cut each path where its shape is owned as a whole, as after a change of a CRD's schema."""
    return frozenset(_cut(path, shape) for path in fields)


def _cut(path: Path, shape: Shape) -> Path:
    at = shape
    for depth, element in enumerate(path):
        typed = at.type in (Type.OBJECT, Type.MAP, Type.LIST)
        if depth and typed and parts(at) is Parts.NONE:
            return path[:depth]
        at = shape_below(at, element)
    return path


def nothing_like(shape: Shape) -> Json:
    """Return what a new object of a built-in type holds before anybody has written to it.

    The server's types, unlike JSON, have their inner objects from the start; so nobody comes to own
    ``spec`` by writing its first field. Types of CRDs have no names and nothing from the start.
    """
    if not shape.name:
        return {}
    found: Json = filled({}, shape)
    return found
