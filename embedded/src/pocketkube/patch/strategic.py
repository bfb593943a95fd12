"""Strategic merge patches: merge patches that know the keys of lists, by directives in the patch.

``$patch: replace`` or ``delete`` in an object; ``$deleteFromPrimitiveList/<field>``,
``$setElementOrder/<field>`` and ``$retainKeys`` beside fields; null deletes. Source of the rules:
k8s.io/apimachinery ``pkg/util/strategicpatch`` of 1.36. What is no plain bad request there is
answered by the real server as 500, and so it is here.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from pocketkube.errors import ApiError, bad_request
from pocketkube.objects import Json, Object, json_type, same
from pocketkube.schema.shape import Shape, Type

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER_OF = "$setElementOrder/"


def strategic_merge(live: Object, patch: Json, shape: Shape) -> Object:
    """Return ``live`` with ``patch`` merged in, lists by their merge keys; neither is changed.

    Raises ApiError: 400 for a patch that is no object, 500 for items without merge key and for
    directives that nobody knows.
    """
    if not isinstance(patch, dict):
        where = "Go value of type map[string]interface {}"
        raise bad_request(f"json: cannot unmarshal {json_type(patch)} into {where}")
    return _merged(copy.deepcopy(live), copy.deepcopy(patch), shape)


def _merged(live: Object, patch: Object, shape: Shape | None) -> Object:
    """Merge into ``live``, which is changed, as is ``patch``."""
    directive = patch.pop(_DIRECTIVE, None)
    if directive == "delete":
        return {}
    if directive == "replace":
        return patch
    if directive not in (None, "merge"):
        raise _error(f"unknown patch type: {directive}")
    retained = patch.pop(_RETAIN_KEYS, None)
    if retained is not None:
        if not isinstance(retained, list):
            raise bad_request("invalid patch format of retainKeys")
        for name in [name for name in live if name not in retained]:
            del live[name]
    for key, value in patch.items():
        name = key.removeprefix(_DELETE_FROM)
        if key.startswith(_ORDER_OF):
            continue
        if key != name:
            live[name] = [item for item in live.get(name) or () if not _is_in(item, value, "")]
        elif value is None:
            live.pop(name, None)
        elif isinstance(value, dict) and isinstance(live.get(name), dict):
            field = _field(shape, name)
            replaces = field is not None and "replace" in field.patch_strategies
            live[name] = value if replaces else _merged(live[name], value, field)
        elif isinstance(value, list) and isinstance(live.get(name), list):
            live[name] = _merged_list(live[name], value, _field(shape, name))
        else:
            live[name] = _without_directives(value)
            if live[name] is None:
                del live[name]
    for key, order in patch.items():
        name = key.removeprefix(_ORDER_OF)
        if key != name and isinstance(live.get(name), list):
            if not isinstance(order, list):
                raise bad_request("invalid patch format of setElementOrder list")
            field = _field(shape, name)
            merge_key = field.patch_merge_key if field else ""
            live[name] = _in_order(live[name], order, live[name], merge_key)
    return live


def _field(shape: Shape | None, name: str) -> Shape | None:
    """Return a field's shape. Raises ApiError (500) for a field that the type does not have."""
    if shape is None or shape.type is Type.ANY:
        return None
    if shape.type is Type.MAP:
        return shape.item
    if name in shape.fields:
        return shape.fields[name]
    if shape.preserve_unknown or not shape.fields:
        return None
    what = shape.name.rpartition(".")[2]
    raise _error(f'unable to find api field in struct {what} for the json field "{name}"')


def _merged_list(live: list[Json], patch: list[Json], shape: Shape | None) -> list[Json]:
    if shape is None or "merge" not in shape.patch_strategies:
        return patch
    key = shape.patch_merge_key
    directives = [item.get(_DIRECTIVE) if isinstance(item, dict) else None for item in patch]
    merged: list[Json] = [] if "replace" in directives else list(live)
    kept: list[Json] = []
    for item, directive in zip(patch, directives, strict=True):
        if directive == "delete":
            merged = [there for there in merged if not _is_in(there, [item], key)]
        elif directive is None:
            kept.append(item)
            place = _place(merged, item, key)
            if place < 0:
                merged.append(_without_directives(item))
            elif key:
                merged[place] = _merged(merged[place], item, shape.item)
        elif directive != "replace":
            raise _error(f"unknown patch type: {directive}")
    return _in_order(merged, kept, live, key)


def _in_order(
    items: Sequence[Json], order: Sequence[Json], live: Sequence[Json], key: str
) -> list[Json]:
    """Return the items that ``order`` names in that order, the others where they were.

    Each of the others comes before the first of those that was behind it in ``live``; so an item
    that is new goes to the front.
    """
    named = sorted(
        (item for item in items if _is_in(item, order, key)),
        key=lambda item: _place(order, item, key),
    )
    others = [item for item in items if not _is_in(item, order, key)]
    out: list[Json] = []
    while others and named:
        before, after = _place(live, others[0], key), _place(live, named[0], key)
        out.append((others if 0 <= before < after else named).pop(0))
    return out + others + named


def _is_in(item: Json, items: Sequence[Json], key: str) -> bool:
    return _place(items, item, key) >= 0


def _place(items: Sequence[Json], item: Json, key: str) -> int:
    """Return where an item is, by its key or, without one, its value; -1 when it is not there."""
    wanted = _known_by(item, key)
    return next((i for i, other in enumerate(items) if same(_known_by(other, key), wanted)), -1)


def _known_by(item: Json, key: str) -> Json:
    if not key:
        return item
    if not isinstance(item, dict) or key not in item:
        raise _error(f"an item of a list does not contain declared merge key: {key}")
    return item[key]


def _without_directives(value: Json) -> Json:
    """Return what is new, without nulls, and without what carries a directive."""
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _is_directive(item)]
    if not isinstance(value, dict):
        return value
    if _is_directive(value):
        return None
    inner = {key: _without_directives(item) for key, item in value.items() if key[:1] != "$"}
    return {key: item for key, item in inner.items() if item is not None}


def _is_directive(value: Json) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _error(message: str) -> ApiError:
    """500, which the real server answers because its code foresees no better."""
    return ApiError(500, "", message)
