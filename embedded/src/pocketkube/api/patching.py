"""From an object and a patch to the object that the patch asks for."""

from __future__ import annotations

import json

from pocketkube import causes, errors
from pocketkube.api.checking import checked
from pocketkube.api.lifecycle import place
from pocketkube.api.scale import scale_of, scale_resource, scaled
from pocketkube.api.writing import Patch, Writing
from pocketkube.objects import Object, namespace_of
from pocketkube.patch.apply import apply
from pocketkube.patch.json_patch import apply_json_patch, apply_merge_patch
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
    subresource: str,
    namespace: str,
    name: str,
) -> Object:
    """Return the patched object, checked against its shape; ``old`` is left as it was.

    Raises ApiError: 400 and 422 for a patch that cannot be applied, 415 for a
    strategic patch of a custom resource.
    """
    if patch.type == "strategic" and resource.crd:
        raise errors.unsupported_media_type(SUPPORTED)
    if subresource == "scale":
        assert old is not None, "only an object that is there has a scale"
        return scaled(resource, old, _patched_scale(resource, old, patch, how, name))
    if patch.type == "apply":
        return _applied(resource, old, patch, how, namespace, name)
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
        patch = Patch("merge", patch.body)
    found = _checked(_apply(before, patch, scale.shape), scale, how)
    place(scale, namespace_of(old), found, name=name)
    return found


def _checked(obj: Object, resource: Resource, how: Writing) -> Object:
    """Check what a patch led to: what does not decode is the patch's fault, so 422 and not 400."""
    try:
        return checked(obj, resource, how)
    except errors.ApiError as error:
        if error.code != 400:
            raise
        why = error.message.rpartition(f"cannot be handled as a {resource.kind}: ")[2]
        shown = json.dumps(obj, separators=(",", ":"))
        raise errors.invalid("", "", "", [causes.invalid("patch", shown, why)]) from None


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
    namespace: str,
    name: str,
) -> Object:
    if not isinstance(patch.body, dict):
        raise errors.bad_request("the body of an apply patch has to be an object")
    together = apply(
        old, patch.body, resource.shape, api_version=resource.api_version, kind=resource.kind
    )
    found = checked(together, resource, how)
    if old is None:
        place(resource, namespace, found, name=name)
    return found
