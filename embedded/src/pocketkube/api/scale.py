"""The subresource ``scale``: one number of an object, in a form that is the same for all kinds."""

from __future__ import annotations

import dataclasses
from typing import Any

from pocketkube import errors
from pocketkube.causes import negative
from pocketkube.matching.selectors import selector_of
from pocketkube.objects import Object, at
from pocketkube.schema.document import Document
from pocketkube.schema.resource import Resource

_SCALE = "io.k8s.api.autoscaling.v1.Scale"


def scale_resource(resource: Resource) -> Resource:
    """Return what the subresource of a resource reads and writes, as a resource of its own."""
    return dataclasses.replace(
        resource,
        group="autoscaling",
        version="v1",
        kind="Scale",
        shape=Document.load().shape(_SCALE),
        crd="",
    )


def scale_of(resource: Resource, obj: Object) -> Object:
    """Return the Scale (autoscaling/v1) of an object."""
    paths = resource.extras.get("scale", {})
    replicas = at(obj, paths.get("specReplicasPath", ".spec.replicas")[1:])
    current = at(obj, paths.get("statusReplicasPath", ".status.replicas")[1:])
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: dict[str, Any] = {"replicas": current or 0}
    selector = _selector(resource, obj, paths)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def scaled(resource: Resource, obj: Object, scale: Object) -> Object:
    """Return a copy of the object with the Scale's replicas. Raises ApiError (409, 422)."""
    name = obj["metadata"]["name"]
    replicas = (scale.get("spec") or {}).get("replicas", 0) or 0
    causes = [] if resource.crd else negative("spec.replicas", replicas)
    if causes:
        raise errors.invalid("autoscaling", "Scale", name, causes)
    version = scale.get("metadata", {}).get("resourceVersion")
    if version and version != obj["metadata"]["resourceVersion"]:
        raise errors.conflict(resource.group, resource.plural, name, errors.MODIFIED)
    path = resource.extras.get("scale", {}).get("specReplicasPath", ".spec.replicas")
    return _with(obj, path.lstrip(".").split("."), replicas)


def _with(obj: Object, path: list[str], value: object) -> Object:
    head, *rest = path
    inner = obj.get(head)
    if rest:
        value = _with(inner if isinstance(inner, dict) else {}, rest, value)
    return {**obj, head: value}


def _selector(resource: Resource, obj: Object, paths: dict[str, str]) -> str:
    if resource.crd:
        path = paths.get("labelSelectorPath", "")
        return str(at(obj, path[1:]) or "") if path else ""
    selector = obj.get("spec", {}).get("selector") or {}
    plain = not {"matchLabels", "matchExpressions"} & selector.keys()  # of ReplicationControllers
    return str(selector_of({"matchLabels": selector} if plain else selector))
