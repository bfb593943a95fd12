"""From an object and a patch to the object that the patch asks for."""

from __future__ import annotations

import json

from pocketkube import causes, errors
from pocketkube.api.checking import checked
from pocketkube.api.lifecycle import place
from pocketkube.api.scale import scale_of, scale_resource, scaled
from pocketkube.api.tracking import unwritable
from pocketkube.api.writing import Patch, Writing
from pocketkube.errors import Cause
from pocketkube.objects import Object, name_of, namespace_of, rfc3339
from pocketkube.patch.apply.apply import apply
from pocketkube.patch.json_patch import apply_json_patch
from pocketkube.patch.merge_patch import apply_merge_patch
from pocketkube.patch.strategic import strategic_merge
from pocketkube.schema.resource import Resource

SUPPORTED = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
]


def patched(
    resource: Resource,
    old: Object | None,
    patch: Patch,
    how: Writing,
    *,
    now_s: float,
    subresource: str,
    namespace: str,
    name: str,
) -> Object:
    """Return the patched object, checked against its shape; ``old`` is left as it was.

    Raises ApiError: 400 and 422 for a patch that cannot be applied, 409 for a conflict of managers,
    415 for a strategic patch of a custom resource.
    """
    if patch.type == "strategic" and resource.crd:
        raise errors.unsupported_media_type(SUPPORTED)
    if subresource == "scale":
        assert old is not None, "only an object that is there has a scale"
        return scaled(resource, old, _patched_scale(resource, old, patch, how, name))
    if patch.type == "apply":
        return _applied(resource, old, patch, how, now_s, subresource, namespace, name)
    assert old is not None, "only an apply patch may create"
    found = _apply(old, patch, resource.shape)
    if patch.type == "strategic" and isinstance(found, dict):  # it is applied to a typed object
        found = {**found, "apiVersion": old["apiVersion"], "kind": old["kind"]}
    return _checked(found, resource, how)


def _patched_scale(
    resource: Resource, old: Object, patch: Patch, how: Writing, name: str
) -> Object:
    scale, before = scale_resource(resource), scale_of(resource, old)
    if patch.type == "apply":
        body = patch.body if isinstance(patch.body, dict) else {}
        what = f"{body.get('apiVersion', '')}, Kind={body.get('kind', '')}"
        if what != f"{scale.api_version}, Kind={scale.kind}":
            raise errors.bad_request(f"invalid object type: {what}")
        patch = Patch("merge", body)
    found = _checked(_apply(before, patch, scale.shape), scale, how)
    place(scale, namespace_of(old), found, name=name)
    return found


def _checked(obj: Object, resource: Resource, how: Writing) -> Object:
    """Check what a patch led to: what does not decode is the patch's fault, so 422 and not 400."""
    if resource.crd and isinstance(obj, dict):
        _refuse_other_kind(obj, resource)
    try:
        return checked(obj, resource, how)
    except errors.ApiError as error:
        if error.code != 400:
            raise
        why = error.message.rpartition(f"cannot be handled as a {resource.kind}: ")[2]
        shown = json.dumps(obj, separators=(",", ":"))
        raise errors.invalid("", "", "", [causes.invalid("patch", shown, why)]) from None


def _refuse_other_kind(obj: Object, resource: Resource) -> None:
    kind, found = obj.get("kind"), list[Cause]()
    for field, wanted in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if obj.get(field) and obj[field] != wanted:
            found.append(causes.invalid(field, obj[field], f"must be {wanted}"))
    if found and isinstance(kind, str):
        raise errors.invalid(resource.group, kind, name_of(obj), found)


def _apply(live: Object, patch: Patch, shape: object) -> Object:
    if patch.type == "json":
        return apply_json_patch(live, patch.body)
    if patch.type == "merge":
        return apply_merge_patch(live, patch.body)
    return strategic_merge(live, patch.body, shape)  # type: ignore[arg-type]


def _applied(
    resource: Resource,
    old: Object | None,
    patch: Patch,
    how: Writing,
    now_s: float,
    subresource: str,
    namespace: str,
    name: str,
) -> Object:
    if not how.field_manager:
        cause = Cause(
            "FieldValueRequired", "Required value: is required for apply patch", "fieldManager"
        )
        raise errors.invalid("meta.k8s.io", "PatchOptions", "", [cause])
    if not isinstance(patch.body, dict):
        raise errors.bad_request("the body of an apply patch has to be an object")
    together = apply(
        old,
        patch.body,
        resource.shape,
        manager=how.field_manager,
        force=how.force,
        api_version=resource.api_version,
        now=rfc3339(now_s),
        subresource=subresource,
        ignored=unwritable(resource, subresource),
        kind=resource.kind,
    )
    try:
        found = checked(together, resource, how)
    except errors.ApiError as error:
        if error.code != 400 or "strict decoding" in error.message:
            raise
        raise errors.ApiError(500, "", error.message) from None
    if old is None:
        place(resource, namespace, found, name=name)
    return found
