"""Objects between the version in which they are asked for and the one in which they are stored."""

from __future__ import annotations

from itertools import islice

from pocketkube.objects import Object
from pocketkube.registry.rules.events import to_core, to_events_k8s_io
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
