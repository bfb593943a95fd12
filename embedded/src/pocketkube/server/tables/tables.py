"""Tables (meta.k8s.io/v1): lists as ``kubectl get`` asks for them.

In: objects of one resource. Out: a Table. The columns of built-in kinds were recorded from a real
API server; their cells are in ``cells``, and kinds without have a name and an age. Those of custom
resources come from the paths of their printer columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from pocketkube.objects import Object, name_of
from pocketkube.schema.resource import Resource
from pocketkube.server.tables.cells import Cells, age, cells_of, since

Step = Callable[[Any], Iterable[Any]]
"""From one value to those that a part of a path finds in it."""

_PART = re.compile(
    r"\.(?P<name>(?:\\.|[^.\[\\])+)"
    r"|\[(?P<star>\*)\]"
    r"|\[(?P<index>-?\d+)\]"
    r"|\['(?P<quoted>[^']*)'\]"
    r"|\[\?\(\s*@(?P<inner>[^=!<>]*?)\s*==\s*(?P<value>.*?)\s*\)\]"
)


@lru_cache(maxsize=1024)
def compiled(path: str) -> Callable[[Any], list[Any]] | None:
    """Return a function that finds a path's values in an object; None for what is not read."""
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _PART.match(path, at)
        step = _step(match) if match else None
        if match is None or step is None:
            return None
        steps.append(step)
        at = match.end()

    def find(obj: Any) -> list[Any]:
        values = [obj]
        for step in steps:
            values = [found for value in values for found in step(value)]
        return values

    return find


def _step(match: re.Match[str]) -> Step | None:
    if match["index"] is not None:
        index = int(match["index"])
        return lambda value: (
            [value[index]] if isinstance(value, list) and -len(value) <= index < len(value) else []
        )
    if match["inner"] is not None:
        return _filter(match["inner"], match["value"])
    name = match["quoted"]
    if match["name"] is not None:
        name = re.sub(r"\\(.)", r"\1", match["name"])
    if match["star"] or name == "*":
        return _items
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _filter(inner: str, text: str) -> Step | None:
    find = compiled(inner)
    try:
        wanted = json.loads(text.replace("'", '"'))
    except ValueError:
        return None
    if find is None:
        return None
    return lambda value: [item for item in _items(value) if wanted in find(item)]


_META = "meta.k8s.io/v1"
_NAME = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
_AGE = {"name": "Age", "type": "string", "format": "", "description": "", "priority": 0}


def table(
    resource: Resource,
    objects: Iterable[Object],
    *,
    now_s: float,
    include_object: Literal["Metadata", "Object", "None"] = "Metadata",
    list_metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the Table of some objects; each row holds the object, its metadata, or nothing."""
    columns, cells = resource.columns, cells_of(resource.bucket)
    if not columns or not (cells or resource.crd):
        columns = (_NAME, _AGE)
    cells = cells or _cells_by_columns(columns)
    rows = [_row(obj, cells, now_s, include_object) for obj in objects]
    return {
        "kind": "Table",
        "apiVersion": _META,
        "metadata": dict(list_metadata or {}),
        "columnDefinitions": [
            {key: value for key, value in column.items() if key != "jsonPath"} for column in columns
        ],
        "rows": rows,
    }


def partial(obj: Object) -> Object:
    """Return a PartialObjectMetadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def _row(obj: Object, cells: Cells, now_s: float, include_object: str) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": cells(obj, now_s)}
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
