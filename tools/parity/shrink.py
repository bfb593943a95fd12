"""Make a case that differs smaller, as long as it differs: a fixture should say one thing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Path = tuple[str | int, ...]
_KEPT = frozenset({"metadata", "name", "namespace", "spec", "status", "containers", "kind"})


def shrink(case: dict[str, Any], differs: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return a part of ``case`` for which ``differs`` still holds, and of which no part will do."""
    smaller = True
    while smaller:
        smaller = False
        for path in sorted(_parts(case), key=len):
            tried = _without(case, path)
            if tried is not None and differs(tried):
                case, smaller = tried, True
                break
    return case


def _parts(value: Any, path: Path = ()) -> Iterator[Path]:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in _KEPT and path:
                yield (*path, key)
            yield from _parts(one, (*path, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield (*path, index)
            yield from _parts(one, (*path, index))


def _without(case: dict[str, Any], path: Path) -> dict[str, Any] | None:
    tried = copy.deepcopy(case)
    inner: Any = tried
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    has_all = tried.get("nodes") and tried["pod"]["spec"].get("containers")
    return tried if has_all else None
