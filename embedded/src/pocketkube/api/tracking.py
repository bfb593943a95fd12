"""Who manages which field, for objects that server-side apply has touched."""

from __future__ import annotations

from pocketkube.api.writing import Writing
from pocketkube.objects import Object, rfc3339
from pocketkube.patch.apply.field_paths import Path, named
from pocketkube.patch.apply.managed_fields import track_update
from pocketkube.schema.resource import Resource

_SPEC, _STATUS, _METADATA = named("spec"), named("status"), named("metadata")
_NOT_BY_STATUS: dict[str, tuple[Path, ...]] = {
    "deployments.apps": (_SPEC, named("metadata", "labels")),
    "pods": (
        _SPEC,
        named("metadata", "deletionTimestamp"),
        named("metadata", "ownerReferences"),
    ),
}


def unwritable(resource: Resource, subresource: str) -> tuple[Path, ...]:
    """Return the fields that a write cannot change, which nobody manages by it.

    Source: the ResetFields of each kind's strategy in Kubernetes 1.36.
    """
    if subresource == "status":
        if resource.crd:
            return (_SPEC, _METADATA)
        return _NOT_BY_STATUS.get(resource.bucket, (_SPEC,))
    return (_STATUS,) if "status" in resource.subresources else ()


def tracked(
    old: Object | None,
    obj: Object,
    resource: Resource,
    how: Writing,
    *,
    now_s: float,
    subresource: str = "",
) -> Object:
    """Return the object with the ownership of what this write changed moved to its manager.

    Objects without managedFields are left alone: most never meet an apply patch, and tracking them
    would cost more than the writes themselves.
    """
    had_managers = old is not None and "managedFields" in old["metadata"]
    if not had_managers and "managedFields" not in obj["metadata"]:
        return obj
    return track_update(
        old,
        obj,
        resource.shape,
        manager=how.field_manager or how.agent or "unknown",
        api_version=resource.api_version,
        now=rfc3339(now_s),
        subresource=subresource,
        ignored=unwritable(resource, subresource),
    )
