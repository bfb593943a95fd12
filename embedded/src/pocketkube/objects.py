"""Small things about Kubernetes objects, which are plain dictionaries here, and about JSON."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value as JSON decodes it."""


def same(one: Json, other: Json) -> bool:
    """Tell whether two JSON values are equal; unlike in Python, ``true`` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


Object = dict[str, Any]
"""An object as JSON decodes it: apiVersion, kind, metadata, spec, status, ..."""


def meta(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata, an empty one when there is none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def name_of(obj: Mapping[str, Any]) -> str:
    """Return ``metadata.name``; empty when there is none."""
    return str(meta(obj).get("name", ""))


def namespace_of(obj: Mapping[str, Any]) -> str:
    """Return ``metadata.namespace``; empty when there is none."""
    return str(meta(obj).get("namespace", ""))


def key_of(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Return namespace and name."""
    return namespace_of(obj), name_of(obj)


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels, an empty mapping when there are none."""
    return meta(obj).get("labels") or {}


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations, an empty mapping when there are none."""
    return meta(obj).get("annotations") or {}


def controller_of(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the owner reference that says ``controller: true``; None when there is none."""
    owners = meta(obj).get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def json_type(value: object) -> str:
    """Return the word for a JSON value's type in Go's errors about JSON."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    return "string" if isinstance(value, str) else "number"


def add_finalizer(obj: Object, finalizer: str) -> None:
    """Hold an object by a finalizer, once. In place."""
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        obj["metadata"]["finalizers"] = [*finalizers, finalizer]


def drop_finalizer(obj: Object, finalizer: str) -> None:
    """Hold an object by a finalizer no longer. In place."""
    kept = [one for one in obj["metadata"].get("finalizers") or () if one != finalizer]
    obj["metadata"]["finalizers"] = kept
    if not kept:
        del obj["metadata"]["finalizers"]


def drop_owners(obj: Object, uids: Collection[str]) -> None:
    """Take the owners with these UIDs off an object. In place."""
    owners = [one for one in obj["metadata"].get("ownerReferences") or () if one["uid"] not in uids]
    obj["metadata"]["ownerReferences"] = owners
    if not owners:
        del obj["metadata"]["ownerReferences"]


def say_disrupted(pod: Object, reason: str, message: str, now_s: float, **more: object) -> None:
    """Say in a pod's status that others end it, for controllers that count failures. In place."""
    status = pod.setdefault("status", {})
    others = [one for one in status.get("conditions") or () if one["type"] != "DisruptionTarget"]
    condition = {"type": "DisruptionTarget", **more, "status": "True"}
    condition |= {"lastTransitionTime": rfc3339(now_s), "reason": reason, "message": message}
    status["conditions"] = [*others, condition]


def at(obj: object, path: str) -> Json:
    """Return the field at a path such as ``spec.replicas``; None when it is not there."""
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj


def take(target: dict[str, Any], source: Mapping[str, Any], field: str) -> None:
    """Make a field what it is in the source, also when it is not there."""
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


def rfc3339(instant_s: float) -> str:
    """Write seconds since 1970 as metav1.Time does: ``2026-11-21T12:00:00Z``."""
    when = datetime.datetime.fromtimestamp(int(instant_s), datetime.UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def parsed_time_s(text: str) -> float:
    """Read an RFC 3339 time as seconds since 1970. Raises ValueError."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
