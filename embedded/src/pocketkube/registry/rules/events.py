"""Events, in both of their APIs; stored in the form of the core group.

Source: kubernetes ``pkg/apis/events/v1/conversion.go`` and ``pkg/apis/core/validation/events.go``
of 1.36. Updates through events.k8s.io may change nothing but the series and the metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pocketkube.causes import immutable, invalid, required
from pocketkube.errors import Cause
from pocketkube.names import invalid_text, label_key
from pocketkube.objects import Object
from pocketkube.registry.rules.base import Rules

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

TEXT_LENGTH_MAX = 128
NOTE_LENGTH_MAX = 1024


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


def _text(field: str, text: str, length_max: int, *, needed: bool = True) -> list[Cause]:
    if needed and not text:
        return [required(field)]
    too_long = len(text.encode()) > length_max
    return [invalid(field, "", f"can have at most {length_max} characters")] if too_long else []


def _legacy_causes(event: Object, controller_field: str) -> list[Cause]:
    """Check what both APIs ask; ``event`` is in the form of the core group."""
    namespace = event["metadata"].get("namespace", "")
    involved = (event.get("involvedObject") or {}).get("namespace", "")
    causes: list[Cause] = []
    mismatch = [invalid("involvedObject.namespace", involved, "does not match event.namespace")]
    if not event.get("eventTime"):
        if involved != namespace and (involved or namespace != "default"):
            causes += mismatch
        return causes
    if not involved and namespace not in ("default", "kube-system"):
        causes += mismatch
    controller = event.get("reportingComponent") or ""
    if not controller:
        causes.append(required(controller_field))
    causes += invalid_text(controller_field, controller, label_key)
    causes += _text("reportingInstance", event.get("reportingInstance") or "", TEXT_LENGTH_MAX)
    causes += _text("action", event.get("action") or "", TEXT_LENGTH_MAX)
    causes += _text("reason", event.get("reason") or "", TEXT_LENGTH_MAX)
    causes += _text("message", event.get("message") or "", NOTE_LENGTH_MAX, needed=False)
    return causes


def _core_causes(event: Object) -> list[Cause]:
    return _legacy_causes(event, "reportingComponent")


def _series_causes(event: Object) -> list[Cause]:
    series = event.get("series")
    causes: list[Cause] = []
    if series is not None:
        if series.get("count", 0) < 2:
            causes.append(invalid("series.count", "", "should be at least 2"))
        if not series.get("lastObservedTime"):
            causes.append(required("series.lastObservedTime"))
    return causes


def _new_causes(event: Object) -> list[Cause]:
    """Check an Event of events.k8s.io; fields are named as in the core group, as upstream does."""
    return _legacy_causes(to_core(event), "reportingController") + _series_causes(event)


def _new_create_causes(event: Object) -> list[Cause]:
    core = to_core(event)
    causes: list[Cause] = []
    if not core.get("eventTime"):
        causes.append(required("eventTime"))
    if core.get("type") not in ("Normal", "Warning"):
        causes.append(invalid("type", "", f"has invalid value: {core.get('type', '')}"))
    unset = "needs to be unset"
    causes += [
        invalid(key, "", unset)
        for key in ("firstTimestamp", "lastTimestamp", "count")
        if core.get(key)
    ]
    if core["source"].get("component") or core["source"].get("host"):
        causes.append(invalid("source", "", unset))
    return causes


_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


def _new_update_causes(event: Object, old: Object) -> list[Cause]:
    new, before = to_core(event), to_core(old)
    causes: list[Cause] = []
    for key in _FIXED:
        field = "reportingController" if key == "reportingComponent" else key
        causes += immutable(field, new.get(key), before.get(key))
    return causes


def _of(*path: str) -> Callable[[Object], str]:
    def read(event: Object) -> str:
        found: Any = event
        for key in path:
            found = found.get(key) or {}
        return str(found or "")

    return read


_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _source(event: Object) -> str:
    component = (event.get("source") or {}).get("component")
    return str(component or event.get("reportingComponent") or "")


CORE_EVENTS = Rules(
    defaults=_default_core,
    validate=_core_causes,
    name_is="path-segment",
    selectable={
        **{f"involvedObject.{key}": _of("involvedObject", key) for key in _INVOLVED},
        "reason": _of("reason"),
        "reportingComponent": _of("reportingComponent"),
        "source": _source,
        "type": _of("type"),
    },
)
NEW_EVENTS = Rules(
    defaults=_default_new,
    validate=_new_causes,
    validate_create=_new_create_causes,
    validate_update=_new_update_causes,
    selectable={
        **{f"regarding.{key}": _of("regarding", key) for key in _INVOLVED},
        "reason": _of("reason"),
        "reportingController": _of("reportingController"),
        "type": _of("type"),
    },
)
