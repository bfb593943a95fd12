"""The cells of built-in kinds, as ``cells.yaml`` lists them.

In: an object of a built-in kind, and the time. Out: its cells. Source: Kubernetes 1.36
``pkg/printers/internalversion``, and Tables of a real API server. Kinds that are in neither file
have a name, an age and empty columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from pocketkube.matching.selectors import selector_of
from pocketkube.objects import Object, name_of
from pocketkube.server.tables import pod_cells
from pocketkube.server.tables.event_cells import event
from pocketkube.server.tables.words import (
    Cells,
    age,
    condition,
    containers,
    labels,
    since,
)
from pocketkube.server.tables.written_cells import WRITTEN

Cell = Callable[[Object, float], list[Any]]


@cache
def cells_of(bucket: str) -> Cells | None:
    """Return what makes the cells of a bucket, such as ``pods`` or ``deployments.apps``."""
    if bucket in _WHOLE:
        return _WHOLE[bucket]
    listed = _listed().get(bucket)
    if listed is None:
        return None
    cells = [_cell(text) for text in listed]
    return lambda obj, now_s: [one for cell in cells for one in cell(obj, now_s)]


_WHOLE: Mapping[str, Cells] = {"events": event, "pods": pod_cells.pod}


@cache
def _listed() -> dict[str, list[str]]:
    text = resources.files(__package__).joinpath("cells.yaml").read_text("utf-8")
    found: dict[str, list[str]] = yaml.safe_load(text)
    return found


def _cell(text: str) -> Cell:
    text, _, otherwise = (part.strip() for part in text.partition("|"))
    word, *paths = text.split()
    if word.startswith("@"):
        write = WRITTEN[word[1:]]
        return lambda obj, now_s: [write(obj, now_s)]
    if word == "name":
        return lambda obj, _: [name_of(obj)]
    if word == "age":
        return lambda obj, now_s: [age(obj, now_s)]
    if not paths:
        return lambda obj, _: [_text(at(obj, word), otherwise)]
    return _VERBS[word](paths, otherwise)


def at(obj: Any, path: str) -> Any:
    """Return the field at a path, None when it is not there."""
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj


def _text(value: Any, otherwise: str) -> str:
    return otherwise if value in (None, "") else str(value)


def _since(paths: list[str], otherwise: str) -> Cell:
    def cell(obj: Object, now_s: float) -> list[Any]:
        time = at(obj, paths[0])
        return [since(time, now_s) if time else otherwise]

    return cell


def _condition(paths: list[str], otherwise: str) -> Cell:
    path, kind = paths
    return lambda obj, _: [condition(at(obj, path), kind).get("status", otherwise)]


_VERBS: Mapping[str, Callable[[list[str], str], Cell]] = {
    "number": lambda paths, _: lambda obj, __: [at(obj, paths[0]) or 0],
    "flag": lambda paths, _: lambda obj, __: [bool(at(obj, paths[0]))],
    "ratio": lambda paths, _: lambda obj, __: ["/".join(str(at(obj, path) or 0) for path in paths)],
    "count": lambda paths, _: lambda obj, __: [sum(len(at(obj, path) or ()) for path in paths)],
    "labels": lambda paths, _: lambda obj, __: [labels(at(obj, paths[0]))],
    "selector": lambda paths, none: (
        lambda obj, __: [str(selector_of(at(obj, paths[0]) or {})) or none]
    ),
    "containers": lambda paths, _: lambda obj, __: [*containers(at(obj, paths[0]))],
    "since": _since,
    "condition": _condition,
}
