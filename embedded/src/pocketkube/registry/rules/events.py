"""Events, in both of their APIs; stored in the form of the core group.

Source: kubernetes ``pkg/apis/events/v1/conversion.go`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pocketkube.objects import Object
from pocketkube.registry.rules.base import Rules
from pocketkube.registry.rules.common import text_of

_NEW_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES = {new: core for core, new in _NEW_NAMES.items()}


def to_core(event: Object) -> Object:
    """Return an Event of events.k8s.io as one of the core group; one of the core group as it is."""
    if not event.get("apiVersion", "").startswith("events.k8s.io/"):
        return event
    found = {_CORE_NAMES.get(key, key): value for key, value in event.items()}
    _fill(found, _ALWAYS_CORE)
    return {**found, "apiVersion": "v1"}


def to_events_k8s_io(event: Object) -> Object:
    """Return an Event of the core group as one of events.k8s.io; one of the latter as it is."""
    if event.get("apiVersion", "").startswith("events.k8s.io/"):
        return event
    found = {_NEW_NAMES.get(key, key): value for key, value in event.items()}
    for key in ("reportingController", "reportingInstance"):
        if not found.get(key):
            found.pop(key, None)
    _fill(found, _ALWAYS_NEW)
    return {**found, "apiVersion": "events.k8s.io/v1"}


# Fields that Go writes even when they are empty.
_ALWAYS_CORE: Mapping[str, Any] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_ALWAYS_NEW: Mapping[str, Any] = {
    "eventTime": None,
    "regarding": {},
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}


def _fill(event: Object, fields: Mapping[str, Any]) -> None:
    for key, value in fields.items():
        if key not in event:
            event[key] = dict(value) if isinstance(value, dict) else value


def _default_core(event: Object) -> None:
    _fill(event, _ALWAYS_CORE)


def _default_new(event: Object) -> None:
    _fill(event, _ALWAYS_NEW)


_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _core_text(*path: str) -> Callable[[Object], str]:
    """Return how to read a field of the core form, from an Event in either."""
    read = text_of(*path)
    return lambda event: read(to_core(event))


def _source(event: Object) -> str:
    component = (event.get("source") or {}).get("component")
    return str(component or event.get("reportingComponent") or "")


CORE_EVENTS = Rules(
    defaults=_default_core,
    name_is="path-segment",
    selectable={
        **{f"involvedObject.{key}": text_of("involvedObject", key) for key in _INVOLVED},
        "reason": text_of("reason"),
        "reportingComponent": text_of("reportingComponent"),
        "source": _source,
        "type": text_of("type"),
    },
)
NEW_EVENTS = Rules(
    defaults=_default_new,
    selectable={
        **{f"regarding.{key}": _core_text("involvedObject", key) for key in _INVOLVED},
        "reason": text_of("reason"),
        "reportingController": _core_text("reportingComponent"),
        "type": text_of("type"),
    },
)
