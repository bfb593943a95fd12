"""JSON patches, RFC 6902, with what the real server's library takes beyond the standard.

``jsonpatch`` does the operations. Before each, the operation is put in the form of the standard:
upstream (evanphx/json-patch v4) lets ``replace`` create a field, a missing ``value`` mean null,
negative indices count from the end, and overlooks what a path has before its first slash.
"""

from __future__ import annotations

import copy

import jsonpatch
import jsonpointer

from pocketkube.errors import ApiError, bad_request
from pocketkube.objects import Object, json_type
from pocketkube.patch.values import Json, same

MAX_OPERATIONS = 10_000

_VERBS = ("add", "remove", "replace", "move", "test", "copy")


class _FailedError(Exception):
    """An operation cannot be done."""


def apply_json_patch(live: Object, operations: Json) -> Object:
    """Return ``live`` after all ``operations``; neither is changed.

    Raises ApiError: 400 for what is no JSON patch, 413 for too many operations, 422 when one fails,
    such as a test or a missing path. As upstream, 422 does not say which.
    """
    _check(operations)
    document: Json = copy.deepcopy(live)
    try:
        for operation in operations or []:
            document = _done(document, operation)
    except (_FailedError, jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        message = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", message) from error
    if not isinstance(document, dict):
        raise bad_request("Object 'Kind' is missing in the patched object")
    return document


def _check(operations: Json) -> None:
    cannot = "error decoding patch: json: cannot unmarshal {} into Go {}"
    if operations is None:
        return
    if not isinstance(operations, list):
        where = "value of type []handlers.jsonPatchOp"
        raise bad_request(cannot.format(json_type(operations), where))
    for operation in operations:
        if operation is not None and not isinstance(operation, dict):
            where = "value of type handlers.jsonPatchOp"
            raise bad_request(cannot.format(json_type(operation), where))
        for name in ("op", "path", "from"):
            value = (operation or {}).get(name)
            if value is not None and not isinstance(value, str):
                where = f"struct field jsonPatchOp.{name} of type string"
                raise bad_request(cannot.format(json_type(value), where))
    if len(operations) > MAX_OPERATIONS:
        allowed = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}"
        message = f"Request entity too large: {allowed}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", message)


def _done(document: Json, operation: Object | None) -> Json:
    given = operation or {}
    verb, path = given.get("op"), given.get("path")
    if verb not in _VERBS or path is None:
        raise _FailedError("no such operation, or no path")
    value = given.get("value")
    if path == "":
        return _done_to_all(document, verb, value)
    standard: Object = {"op": verb, "value": value}
    if verb in ("move", "copy"):
        source = _place(document, given.get("from") or "")
        standard["from"] = source.pointer
        if verb == "copy" and not source.exists:
            standard = {"op": "add", "value": None}
        elif verb == "move":
            return _moved(document, source, path)
    place = _place(document, path, adding=verb in ("add", "copy"))
    if verb == "test":
        if not same(place.value, value):
            raise _FailedError("the test fails")
        return document
    if verb == "replace" and not place.exists:
        standard["op"] = "add"
    return _standard(document, {**standard, "path": place.pointer})


def _done_to_all(document: Json, verb: str, value: Json) -> Json:
    """Do what may be done to the whole document: replace and test."""
    if verb == "replace" and isinstance(value, dict | list):
        return copy.deepcopy(value)
    if verb == "test" and same(document, value):
        return document
    raise _FailedError("not to the whole document")


def _moved(document: Json, source: _Place, path: str) -> Json:
    """Remove, then add: upstream finds the destination after the removal."""
    if not source.exists:
        raise _FailedError("nothing to move")
    document = _standard(document, {"op": "remove", "path": source.pointer})
    place = _place(document, path, adding=True)
    return _standard(document, {"op": "add", "path": place.pointer, "value": source.value})


def _standard(document: Json, operation: Object) -> Json:
    return jsonpatch.JsonPatch([operation]).apply(document, in_place=True)


class _Place:
    """Where a path leads: the standard's pointer to it, and what is there."""

    def __init__(self, parts: list[str], value: Json, exists: bool) -> None:
        self.pointer: str = jsonpointer.JsonPointer.from_parts(parts).path
        self.value = value
        self.exists = exists


def _place(document: Json, path: str, adding: bool = False) -> _Place:
    """Find a path's place. Raises _FailedError when what should hold it is missing."""
    if "/" not in path:
        raise _FailedError("no path")
    parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
    holder, found = document, []
    for part in parts[:-1]:
        found.append(_key(holder, part))
        holder = _inside(holder, found[-1])
    last = parts[-1]
    if isinstance(holder, list):
        if adding and last == "-":
            return _Place([*found, last], None, False)
        last = _key(holder, last, room=len(holder) + 1 if adding else len(holder))
        index = int(last)
        there = index < len(holder)
        return _Place([*found, last], holder[index] if there else None, there)
    if not isinstance(holder, dict):
        raise _FailedError("nothing holds it")
    return _Place([*found, last], holder.get(last), last in holder)


def _key(holder: Json, part: str, room: int | None = None) -> str:
    """Return the key of an object, or a list's index from 0."""
    if not isinstance(holder, list):
        return part
    size = len(holder) if room is None else room
    try:
        index = int(part)
    except ValueError as error:
        raise _FailedError("no index") from error
    index += size if index < 0 else 0
    if not 0 <= index < size:
        raise _FailedError("no such index")
    return str(index)


def _inside(holder: Json, key: str) -> Json:
    value = holder[int(key)] if isinstance(holder, list) else _fields(holder).get(key)
    if value is None:
        raise _FailedError("nothing there")
    return value


def _fields(holder: Json) -> Object:
    if not isinstance(holder, dict):
        raise _FailedError("no object")
    return holder
