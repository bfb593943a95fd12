r"""The part of JSONPath that printer columns of CRDs use.

In: ``.status.conditions[?(@.type=="Ready")].status``, ``.metadata.labels.a\.b/c``, ``.x['y'][0]``,
``.x[*].y``, ``.x[1:3]``. Out: the values that are found. Source of the syntax: Kubernetes'
documentation of kubectl's JSONPath; recursion (``..``) and unions are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

Step = Callable[[Iterable[Any]], list[Any]]

_PART = re.compile(
    r"\.(?P<name>(?:\\.|[^.\[\\])+)"
    r"|\[(?P<star>\*)\]"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[(?P<start>-?\d*):(?P<end>-?\d*)\]"
    r"|\['(?P<quoted>[^']*)'\]"
    r"|\[\?\(\s*@(?P<inner>[^=!<>]*?)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<value>.*?))?\s*\)\]"
)


@lru_cache(maxsize=1024)
def compiled(path: str) -> Callable[[Any], list[Any]] | None:
    """Return a function that finds a path's values in an object; None for what is not read."""
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _PART.match(path, at)
        if match is None:
            return None
        step = _step(match)
        if step is None:
            return None
        steps.append(step)
        at = match.end()

    def find(obj: Any) -> list[Any]:
        found = [obj]
        for step in steps:
            found = step(found)
        return found

    return find


def _step(match: re.Match[str]) -> Step | None:
    if match["name"] is not None:
        name = re.sub(r"\\(.)", r"\1", match["name"])
        return _all if name == "*" else _field(name)
    if match["quoted"] is not None:
        return _field(match["quoted"])
    if match["star"]:
        return _all
    if match["index"] is not None:
        return _item(int(match["index"]))
    if match["start"] is not None:
        start, end = (int(text) if text else None for text in (match["start"], match["end"]))
        return lambda found: [one for v in found if isinstance(v, list) for one in v[start:end]]
    return _filter(match["inner"], match["operator"], match["value"])


def _field(name: str) -> Step:
    return lambda found: [v[name] for v in found if isinstance(v, dict) and name in v]


def _item(index: int) -> Step:
    def step(found: Iterable[Any]) -> list[Any]:
        return [v[index] for v in found if isinstance(v, list) and -len(v) <= index < len(v)]

    return step


def _all(found: Iterable[Any]) -> list[Any]:
    values: list[Any] = []
    for one in found:
        if isinstance(one, list):
            values += one
        elif isinstance(one, dict):
            values += one.values()
    return values


def _filter(inner: str, operator: str | None, text: str | None) -> Step | None:
    find = compiled(inner)
    if find is None:
        return None
    if operator is None or text is None:
        return lambda found: [one for one in _all(found) if find(one)]
    try:
        wanted = json.loads(text.replace("'", '"'))
    except ValueError:
        return None

    def step(found: Iterable[Any]) -> list[Any]:
        return [one for one in _all(found) if any(_holds(v, operator, wanted) for v in find(one))]

    return step


def _holds(value: Any, operator: str, wanted: Any) -> bool:
    if operator in ("==", "!="):
        return bool(value == wanted) is (operator == "==")
    if isinstance(value, int | float) and isinstance(wanted, int | float):
        if operator.startswith("<"):
            return value < wanted or (operator == "<=" and value == wanted)
        return value > wanted or (operator == ">=" and value == wanted)
    return False
