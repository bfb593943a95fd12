"""Server-side apply as a merge: what is applied is written over what is there, by the last writer.

Objects are merged by field and lists by what their shape knows items by; nobody owns a field, so
nothing conflicts, and a field that is no longer applied stays until somebody sets it to null.
"""

from __future__ import annotations

import copy

from pocketkube.errors import ApiError, bad_request
from pocketkube.objects import Json, Object, meta, same
from pocketkube.schema.shape import Merge, Shape, Type

_DEDUCED = Shape(type=Type.ANY)
"""Of fields that no schema names: objects are merged by field, lists are replaced."""


def apply(
    live: Object | None, applied: Object, shape: Shape, *, api_version: str, kind: str
) -> Object:
    """Return ``live`` with ``applied`` merged in; neither is changed. None: there is no object yet.

    Raises ApiError: 400 for another kind or version, or for managedFields in ``applied``; 500 for
    an item without its keys. Whether the result has the shape is for the caller to check.
    """
    if applied.get("apiVersion") != api_version or applied.get("kind") != kind:
        what = f"{applied.get('apiVersion', '')}, Kind={applied.get('kind', '')}"
        raise bad_request(f"invalid object type: {what}")
    if "managedFields" in meta(applied):
        raise bad_request("metadata.managedFields must be nil")
    found: Object = _merged(copy.deepcopy(live or {}), copy.deepcopy(applied), shape)
    return found


def _merged(live: Json, applied: Json, shape: Shape) -> Json:
    if isinstance(applied, dict) and isinstance(live, dict) and _is_merged_by_field(shape):
        for name, value in applied.items():
            if value is None:
                live.pop(name, None)
            else:
                live[name] = _merged(live.get(name), value, _field_shape(shape, name))
        return live
    if isinstance(applied, list) and isinstance(live, list) and shape.type is Type.LIST:
        if shape.merge is Merge.SET:
            new = [item for item in applied if not any(same(item, other) for other in live)]
            return live + new
        if shape.merge is Merge.MAP:
            return _merged_items(live, applied, shape)
    return applied


def _is_merged_by_field(shape: Shape) -> bool:
    typed = shape.type in (Type.OBJECT, Type.MAP)
    return shape.merge is not Merge.ATOMIC if typed else shape.type is Type.ANY


def _field_shape(shape: Shape, name: str) -> Shape:
    if shape.type is Type.OBJECT:
        return shape.fields.get(name, _DEDUCED)
    return (shape.item or _DEDUCED) if shape.type is Type.MAP else _DEDUCED


def _merged_items(live: list[Json], applied: list[Json], shape: Shape) -> list[Json]:
    """Merge each applied item into the one with its keys; others stay where they are."""
    inside = shape.item or _DEDUCED
    places = {_keys_of(item, shape, inside): place for place, item in enumerate(live)}
    for item in applied:
        place = places.get(_keys_of(item, shape, inside))
        if place is None:
            live.append(item)
        else:
            live[place] = _merged(live[place], item, inside)
    return live


def _keys_of(item: Json, shape: Shape, inside: Shape) -> tuple[str, ...]:
    """Return what an item is known by. Raises ApiError (500) for an item without any key."""
    if not isinstance(item, dict) or not any(_key(item, name, inside) for name in shape.keys):
        names = " ".join(f'"{name}"' for name in shape.keys)
        why = f"associative list with keys has an element that omits all key fields [{names}]"
        raise ApiError(500, "", f"failed to create typed live object: {why}")
    return tuple(str(_key(item, name, inside)) for name in shape.keys)


def _key(item: Object, name: str, inside: Shape) -> Json:
    default = inside.fields[name].default if name in inside.fields else None
    return item.get(name, default)
