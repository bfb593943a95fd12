"""Words and numbers as ``kubectl get`` shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pocketkube.objects import Object, meta, parsed_time_s

Cells = Callable[[Object, float], list[Any]]
"""From an object and now_s to the cells of its row."""

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"

_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 24 * _HOUR_S
_YEAR_S = 365 * _DAY_S

_STEPS = (
    # shorter than, in this unit, and in this smaller one
    (2 * _MINUTE_S, 1, "s", 0, ""),
    (10 * _MINUTE_S, _MINUTE_S, "m", 1, "s"),
    (3 * _HOUR_S, _MINUTE_S, "m", 0, ""),
    (8 * _HOUR_S, _HOUR_S, "h", _MINUTE_S, "m"),
    (2 * _DAY_S, _HOUR_S, "h", 0, ""),
    (8 * _DAY_S, _DAY_S, "d", _HOUR_S, "h"),
    (2 * _YEAR_S, _DAY_S, "d", 0, ""),
    (8 * _YEAR_S, _YEAR_S, "y", _DAY_S, "d"),
    (10**12, _YEAR_S, "y", 0, ""),
)


def duration(elapsed_s: float) -> str:
    """Write a duration in two or three figures, such as 4m5s, 7h59m, 3d2h.

    Source: k8s.io/apimachinery ``pkg/util/duration`` (HumanDuration).
    """
    seconds = int(elapsed_s)
    if seconds < -1:
        return "<invalid>"  # further ahead than clocks differ
    seconds = max(0, seconds)
    _, large_s, large, small_s, small = next(step for step in _STEPS if seconds < step[0])
    head = f"{seconds // large_s}{large}"
    rest = seconds % large_s // small_s if small_s else 0
    return f"{head}{rest}{small}" if rest else head


def since(timestamp: str | None, now_s: float) -> str:
    """Write how long ago a time of an object was; ``<unknown>`` when there is none."""
    if not timestamp:
        return UNKNOWN
    try:
        return duration(now_s - parsed_time_s(timestamp))
    except ValueError:
        return "<invalid>"


def age(obj: Object, now_s: float) -> str:
    """Write how long ago an object was created."""
    return since(meta(obj).get("creationTimestamp"), now_s)


def labels(given: Mapping[str, str] | None) -> str:
    """Write labels as ``a=b,c=d``."""
    return ",".join(f"{key}={value}" for key, value in sorted((given or {}).items())) or NONE


def containers(spec: Mapping[str, Any] | None) -> tuple[str, str]:
    """Write the names and the images of a pod's containers."""
    found: Sequence[Mapping[str, Any]] = (spec or {}).get("containers") or []
    names = ",".join(one.get("name", "") for one in found)
    return names, ",".join(one.get("image", "") for one in found)


def condition(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> Mapping[str, Any]:
    """Return the condition of a type, the last one; an empty mapping when there is none."""
    found: Mapping[str, Any] = {}
    for one in conditions or ():
        if one.get("type") == kind:
            found = one
    return found
