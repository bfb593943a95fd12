"""JSON merge patches, RFC 7386."""

from __future__ import annotations

import copy

from pocketkube.errors import bad_request
from pocketkube.objects import Object, json_type
from pocketkube.patch.values import Json


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
