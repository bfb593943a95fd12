"""Strategic merge patches: merge patches that know the keys of lists, by directives in the patch.

``$patch: replace`` or ``delete`` in an object; ``$deleteFromPrimitiveList/<field>``,
``$setElementOrder/<field>`` and ``$retainKeys`` beside fields; null deletes. Source of the rules
and of the errors: k8s.io/apimachinery ``pkg/util/strategicpatch`` of 1.36. What is no plain bad
request there is answered by the real server as 500, and so it is here. Whether the items of a patch
stand in the order that it wants is not checked.
"""

from __future__ import annotations

import copy

from pocketkube.errors import ApiError, bad_request
from pocketkube.objects import Object, json_type
from pocketkube.patch.ordering import in_order, partition
from pocketkube.patch.values import Json, same
from pocketkube.schema.shape import Shape, Type

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
ORDER_OF = "$setElementOrder"

BAD_DELETE = "invalid patch format of primitive list"
BAD_RETAIN = "invalid patch format of retainKeys"
BAD_ORDER = "invalid patch format of setElementOrder list"

Objects = dict[str, Json]


def strategic_merge(live: Object, patch: Json, shape: Shape) -> Object:
    """Return ``live`` with ``patch`` merged in, lists by their merge keys; neither is changed.

    Raises ApiError: 400 for a patch that is no object and for malformed directives, 422 for lists
    of lists, 500 for items without merge key and what else the real server answers so.
    """
    if patch is not None and not isinstance(patch, dict):
        where = "Go value of type map[string]interface {}"
        raise bad_request(f"json: cannot unmarshal {json_type(patch)} into {where}")
    return _merged(copy.deepcopy(live), copy.deepcopy(patch or {}), shape)


def _merged(live: Objects, patch: Objects, shape: Shape | None) -> Objects:
    """Merge into ``live``, which is changed, as is ``patch``."""
    if DIRECTIVE in patch:
        return _by_directive(patch)
    _retain_keys(live, patch)
    for key in [key for key in patch if key.startswith(ORDER_OF)]:
        _merge_ordered(live, patch, key, shape)
    for key, value in patch.items():
        name, deletes = key, key.startswith(DELETE_FROM)
        if deletes:
            name = _named_by(key, DELETE_FROM, BAD_DELETE)
        if value is None:
            live.pop(name, None)
        elif type(live.get(name)) is type(value):
            _merge_field(live, name, value, shape, deletes)
        elif not deletes:
            _set_new(live, name, value)
    return live


def _by_directive(patch: Objects) -> Objects:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive)


def _set_new(live: Objects, name: str, value: Json) -> None:
    """Take a value as it is, without its nulls and without what carries a directive."""
    _drop_nulls(value)
    kept, keep = _without_directives(value)
    if keep:
        live[name] = kept
    else:
        live.pop(name, None)


def _merge_field(live: Objects, name: str, value: Json, shape: Shape | None, deletes: bool) -> None:
    if isinstance(value, dict):
        field = _field(shape, name)
        replaces = field is not None and "replace" in field.patch_strategies
        live[name] = value if replaces else _merged(live[name], value, field)
    elif isinstance(value, list):
        field = _field(shape, name)
        live[name] = _merged_list(live[name], value, field, deletes)
    else:
        live[name] = value


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


def _merged_list(live: list[Json], patch: list[Json], shape: Shape | None, deletes: bool) -> Json:
    merges = shape is not None and "merge" in shape.patch_strategies
    if not merges and not deletes:
        return patch
    if not live and not patch:
        return live
    kind = _item_type(live, patch)
    key = shape.patch_merge_key if shape else ""
    if kind is not dict:
        if deletes:
            return [item for item in live if not any(same(item, gone) for gone in patch)]
        both = _without_repeats([*live, *patch])
        return in_order(*partition(both, patch, ""), patch, live, "")
    if not key:
        name = "slice" if shape is None or shape.item is None else "struct"
        raise _error(f"cannot merge lists without merge key for {name}")
    live, patch = _by_item_directives(live, patch, key)
    both = _merged_items(list(live), patch, key, shape.item if shape else None)
    return in_order(*_partition(both, patch, key), patch, live, key)


def _merged_items(
    merged: list[Json], patch: list[Json], key: str, shape: Shape | None
) -> list[Json]:
    for item in patch:
        wanted = _key_of(item, key)
        for index, there in enumerate(merged):
            if key in there and same(there[key], wanted):
                merged[index] = _merged(there, item, shape)
                break
        else:
            merged.append(item)
    return merged


def _by_item_directives(
    live: list[Json], patch: list[Json], key: str
) -> tuple[list[Json], list[Json]]:
    """Do what items of the patch order: delete one, or replace the list; return what is left."""
    kept, replaces = [], False
    for item in patch:
        directive = item.get(DIRECTIVE)
        if DIRECTIVE not in item:
            kept.append(item)
        elif directive == "delete":
            gone = _key_of(item, key)
            live = [there for there in live if key not in there or not same(there[key], gone)]
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise _error("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive)
    return (kept, []) if replaces else (live, kept)


def _retain_keys(live: Objects, patch: Objects) -> None:
    """Drop the fields of ``live`` that ``$retainKeys`` does not list, as of a union of types."""
    if RETAIN_KEYS not in patch:
        return
    retained = patch.pop(RETAIN_KEYS)
    if not isinstance(retained, list):
        raise bad_request(BAD_RETAIN)
    for key, value in patch.items():
        directive = key.startswith((DELETE_FROM, ORDER_OF))
        if value is not None and not directive and key not in retained:
            raise bad_request(BAD_RETAIN)
    for key in [key for key in live if key not in retained]:
        del live[key]


def _merge_ordered(live: Objects, patch: Objects, key: str, shape: Shape | None) -> None:
    """Merge the list that ``$setElementOrder`` is about, and bring it in that order."""
    wanted = patch.pop(key)
    name = _named_by(key, ORDER_OF, BAD_ORDER)
    there, new = live.get(name, []), patch.get(name, [])
    if not all(isinstance(one, list) for one in (wanted, there, new)):
        raise _error(f"{key} and {name} have to be lists")
    field = _field(shape, name)
    merge_key = field.patch_merge_key if field else ""
    if name not in live and name not in patch:
        return
    if name not in patch:
        merged = there
    elif name not in live:
        merged, _ = _without_directives(new)
    else:
        merged = _merged_list(there, new, field, False)
    _item_type(there, new)
    if merge_key:
        for item in wanted:
            _key_of(item, merge_key)
    live[name] = in_order(*_partition(merged, wanted, merge_key), wanted, there, merge_key)
    patch.pop(name, None)


def _partition(items: list[Json], chosen: list[Json], key: str) -> tuple[list[Json], list[Json]]:
    if key:
        for item in items:
            _key_of(item, key)
    return partition(items, chosen, key)


def _item_type(*lists: list[Json]) -> type:
    """Return the one type of all items. Raises ApiError when there is none, or more than one."""
    kinds = {type(item) for items in lists for item in items}
    if not kinds:
        raise _error("no elements in any of the given slices")
    if len(kinds) > 1:
        raise _error("list element types are not identical")
    kind = kinds.pop()
    if kind is list:
        message = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", message)
    return kind


def _key_of(item: Json, key: str) -> Json:
    if not isinstance(item, dict):
        raise _error(f"an item of a list with the merge key {key} is no object")
    if key not in item:
        raise _error(f"an item of a list does not contain declared merge key: {key}")
    return item[key]


def _named_by(key: str, prefix: str, problem: str) -> str:
    """Return the field that a directive names: ``$setElementOrder/containers``."""
    start, slash, name = key.partition("/")
    if start != prefix or not slash:
        raise bad_request(problem)
    return name


def _drop_nulls(value: Json) -> None:
    if isinstance(value, dict):
        for key in [key for key, inner in value.items() if inner is None]:
            del value[key]
    inside = value.values() if isinstance(value, dict) else value
    for inner in inside if isinstance(value, dict | list) else ():
        _drop_nulls(inner)


def _without_directives(value: Json) -> tuple[Json, bool]:
    """Return a new value less what carries ``$patch``, and whether anything is left of it."""
    if isinstance(value, list):
        items = [_without_directives(item) for item in value]
        return [item for item, keep in items if keep], True
    if not isinstance(value, dict):
        return value, True
    if DIRECTIVE in value:
        return None, False
    fields = {key: _without_directives(inner) for key, inner in value.items()}
    return {key: inner for key, (inner, keep) in fields.items() if keep}, True


def _without_repeats(items: list[Json]) -> list[Json]:
    kept: list[Json] = []
    for item in items:
        if not any(same(item, other) for other in kept):
            kept.append(item)
    return kept


def _unknown_directive(directive: Json) -> ApiError:
    return _error(f"unknown patch type: {directive}")


def _error(message: str) -> ApiError:
    """500, which the real server answers because its code foresees no better."""
    return ApiError(500, "", message)
