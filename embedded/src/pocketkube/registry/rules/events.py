"""Events, in both of their APIs, stored in the form of the core group; other kinds' stored forms.

Source: kubernetes ``pkg/apis/events/v1/conversion.go`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from pocketkube.objects import Object
from pocketkube.registry.rules.common import Rules, text_of
from pocketkube.schema.resource import Resource


def to_storage(resource: Resource, obj: Object) -> Object:
    """Return the object in its stored form, with apiVersion and kind as the first two keys."""
    if resource.bucket == "events":
        obj = to_core(obj) if resource.group else obj
        return _first("v1", "Event", obj)
    group = f"{resource.group}/" if resource.group else ""
    return _first(f"{group}{resource.storage_version or resource.version}", resource.kind, obj)


def from_storage(resource: Resource, stored: Object) -> Object:
    """Return a stored object in this resource's version."""
    if resource.bucket == "events" and resource.group:
        return _first(resource.api_version, "Event", to_events_k8s_io(stored))
    if stored["apiVersion"] != resource.api_version:
        stored["apiVersion"] = resource.api_version
    return stored


def _first(api_version: str, kind: str, obj: Object) -> Object:
    head = {"apiVersion": api_version, "kind": kind}
    if list(islice(obj.items(), 2)) == list(head.items()):
        return obj
    return {**head, **{key: value for key, value in obj.items() if key not in head}}


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
        "type": text_of("type"),
    },
)
