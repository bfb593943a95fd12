"""Events: their cells are made of two generations of fields."""

from __future__ import annotations

from typing import Any

from pocketkube.objects import Object, name_of
from pocketkube.registry.rules.events import to_core
from pocketkube.server.tables.words import since


def event(obj: Object, now_s: float) -> list[Any]:
    """Return LAST SEEN, TYPE, REASON, OBJECT and the rest of an Event of either API."""
    obj = to_core(obj)
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), now_s)
    last_time = obj.get("lastTimestamp")
    last = since(last_time, now_s) if last_time else first
    count = obj.get("count") or 1
    series = obj.get("series")
    if series is not None:
        last = since(series.get("lastObservedTime"), now_s)
        count = series.get("count", 0)
    about = obj.get("involvedObject") or {}
    target = about.get("kind", "").lower()
    if about.get("name"):
        target += f"/{about['name']}"
    source = obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        target,
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        obj.get("message", "").strip(),
        first,
        count,
        name_of(obj),
    ]
