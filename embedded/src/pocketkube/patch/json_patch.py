"""JSON patches (RFC 6902, by ``jsonpatch``) and JSON merge patches (RFC 7386).

As upstream, ``replace`` may create a field.
"""

from __future__ import annotations

import copy

import jsonpatch
import jsonpointer

from pocketkube.errors import ApiError, bad_request
from pocketkube.objects import Json, Object, json_type

_OPERATIONS_MAX = 10_000


def apply_json_patch(live: Object, operations: Json) -> Object:
    """Return ``live`` after all ``operations``; neither is changed.

    Raises ApiError: 400 for what is no JSON patch, 413 for too many operations, 422 when one fails,
    such as a test or a missing path. As upstream, 422 does not say which.
    """
    _check(operations)
    document: Json = copy.deepcopy(live)
    try:
        for operation in copy.deepcopy(operations):
            if operation.get("op") == "replace" and _is_new_field(document, operation):
                operation["op"] = "add"
            document = jsonpatch.JsonPatch([operation]).apply(document, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as error:
        message = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", message) from error
    if not isinstance(document, dict):
        raise bad_request("Object 'Kind' is missing in the patched object")
    return document


def _check(operations: Json) -> None:
    cannot = "error decoding patch: json: cannot unmarshal {} into Go {}"
    if not isinstance(operations, list):
        where = "value of type []handlers.jsonPatchOp"
        raise bad_request(cannot.format(json_type(operations), where))
    for operation in operations:
        if not isinstance(operation, dict):
            where = "value of type handlers.jsonPatchOp"
            raise bad_request(cannot.format(json_type(operation), where))
    if len(operations) > _OPERATIONS_MAX:
        allowed = f"The allowed maximum operations in a JSON patch is {_OPERATIONS_MAX}"
        message = f"Request entity too large: {allowed}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", message)


def _is_new_field(document: Json, operation: Object) -> bool:
    """Tell whether the path's last part names a field that its object does not have."""
    holder, name = jsonpointer.JsonPointer(operation.get("path") or "").to_last(document)
    return isinstance(holder, dict) and name is not None and name not in holder


def apply_merge_patch(live: Object, patch: Json) -> Object:
    """Return ``live`` with ``patch`` merged in; neither is changed.

    Raises ApiError (400) for a patch that is no object, with the real server's text.
    """
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        where = "Go value of type map[string]interface {}"
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_type(patch)} into {where}"
        )
    return copy.deepcopy(_merged(live, patch))


def _merged(live: Object, patch: Object) -> Object:
    merged = {key: value for key, value in live.items() if key not in patch}
    for key, value in patch.items():
        below = live.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            merged[key] = _merged(below, value)
        elif value is not None:
            merged[key] = _without_nulls(value)
    return merged


def _without_nulls(value: Json) -> Json:
    """Drop null fields of what is new, at any depth; as upstream, also inside lists."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
