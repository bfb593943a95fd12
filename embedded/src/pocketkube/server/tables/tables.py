"""Tables (meta.k8s.io/v1): lists as ``kubectl get`` asks for them.

In: objects of one resource. Out: a Table. The columns of built-in kinds were recorded from a real
API server; their cells are in ``cells``, those of custom resources come from the paths of
their printer columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pocketkube.objects import Object, meta, name_of
from pocketkube.schema.resource import Resource
from pocketkube.server.tables.cells import cells_of
from pocketkube.server.tables.json_path import compiled
from pocketkube.server.tables.words import Cells, age, since

_META = "meta.k8s.io/v1"
_NAME = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
_AGE = {"name": "Age", "type": "string", "format": "", "description": "", "priority": 0}
_FINISHED = {
    "Succeeded": {
        "type": "Completed",
        "status": "True",
        "reason": "Succeeded",
        "message": "The pod has completed successfully.",
    },
    "Failed": {
        "type": "Completed",
        "status": "True",
        "reason": "Failed",
        "message": "The pod failed.",
    },
}


def table(
    resource: Resource,
    objects: Iterable[Object],
    *,
    now_s: float,
    include_object: Literal["Metadata", "Object", "None"] = "Metadata",
    list_metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the Table of some objects; each row holds the object, its metadata, or nothing."""
    columns = resource.columns or (_NAME, _AGE)
    cells = cells_of(resource.bucket) or _cells_by_columns(columns)
    rows = [_row(resource, obj, cells, now_s, include_object) for obj in objects]
    plain = len(columns) > 1 and columns[1]["name"] == "Created At"  # of kinds without columns
    return {
        "kind": "Table",
        "apiVersion": _META,
        "metadata": dict(list_metadata or {}),
        "columnDefinitions": [
            {key: value for key, value in column.items() if key != "jsonPath"} for column in columns
        ],
        "rows": rows or (None if plain else []),
    }


_OF_VERSION = "deprecated.daemonset.template.generation"
"""An annotation of a DaemonSet as a whole: a real server adds it with the version, not before."""


def partial(obj: Object) -> Object:
    """Return a PartialObjectMetadata."""
    metadata = obj["metadata"]
    if obj.get("kind") == "DaemonSet" and _OF_VERSION in (metadata.get("annotations") or {}):
        kept = {key: text for key, text in metadata["annotations"].items() if key != _OF_VERSION}
        metadata = {key: value for key, value in metadata.items() if key != "annotations"}
        metadata |= {"annotations": kept} if kept else {}
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": metadata}


def _row(
    resource: Resource, obj: Object, cells: Cells, now_s: float, include_object: str
) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": cells(obj, now_s)}
    if resource.bucket == "pods":
        finished = _FINISHED.get((obj.get("status") or {}).get("phase", ""))
        if finished is not None:
            row["conditions"] = [finished]
    if include_object == "Object":
        row["object"] = obj
    elif include_object == "Metadata":
        row["object"] = partial(obj)
    else:
        row["object"] = None
    return row


def _cells_by_columns(columns: Iterable[Mapping[str, Any]]) -> Cells:
    """Make the cells of kinds without any of their own: by path, or what every object has."""
    kept = list(columns)

    def cells(obj: Object, now_s: float) -> list[Any]:
        return [_cell(column, obj, now_s) for column in kept]

    return cells


def _cell(column: Mapping[str, Any], obj: Object, now_s: float) -> Any:
    if "jsonPath" in column:
        return _cell_at(column, obj, now_s)
    match column["name"]:
        case "Name":
            return name_of(obj)
        case "Age":
            return age(obj, now_s)
        case "Created At":
            return meta(obj).get("creationTimestamp")
    return None if column["type"] in ("integer", "number", "boolean") else ""


def _cell_at(column: Mapping[str, Any], obj: Object, now_s: float) -> Any:
    """Return the first value at a printer column's path, if it is of the column's type."""
    find = compiled(column["jsonPath"])
    found = find(obj) if find is not None else []
    if not found:
        return None
    value = found[0]
    if value is None:
        return "<no value>" if column["type"] == "string" else None
    match column["type"]:
        case "string":
            return _text(value)
        case "date":
            return since(value, now_s) if isinstance(value, str) else None
        case "boolean":
            return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if column["type"] == "integer" else value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    for character in "<>&":  # which Go writes as escapes
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
