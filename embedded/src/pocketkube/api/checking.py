"""From decoded JSON to an object of a resource's type: kinds, unknown fields, wrong types."""

from __future__ import annotations

from functools import lru_cache

from pocketkube import errors
from pocketkube.api.writing import Writing
from pocketkube.objects import Object
from pocketkube.schema.check import Mismatch, decode_error, findings
from pocketkube.schema.custom import crd
from pocketkube.schema.fast import FastCheck
from pocketkube.schema.resource import Resource
from pocketkube.schema.roundtrip import filled, pruned
from pocketkube.schema.shape import Shape


def checked(obj: Object, resource: Resource, how: Writing, raw: bytes | None = None) -> Object:
    """Return the object as a real server would decode it; it may be the same object, changed.

    ``raw`` is the JSON from which it came, when there is one: most bodies pass a quick check of
    that. Raises ApiError (400) for another kind, a wrong type, or (Strict) an unknown field. What a
    CRD's schema forbids is found later, by ``custom_causes``.
    """
    if not isinstance(obj, dict):
        raise errors.bad_request(f"the body of a {resource.kind} has to be an object")
    if resource.crd and not obj.get("kind"):
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): "
            "Object 'Kind' is missing"
        )
    _check_kind(obj, resource)
    if raw is not None and not resource.crd and _fast(resource.shape).accepts(raw):
        return obj
    found = findings(obj, resource.shape)
    # A CRD's schema speaks of what is wrong below; metadata is decoded as of any other kind.
    wrong = _metadata_mismatches(obj, resource) if resource.crd else found.mismatches
    if wrong:
        raise errors.bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {decode_error(wrong[0])}"
        )
    _report_unknown(found.unknown, resource, how)
    if resource.crd:
        return _custom(obj, resource)
    typed: Object = pruned(obj, resource.shape)
    return typed


def custom_causes(obj: Object, resource: Resource) -> list[errors.Cause]:
    """Return what a CRD's schema forbids; nothing for other kinds."""
    return crd.causes(obj, resource.shape) if resource.crd else []


def completed(obj: Object, resource: Resource) -> Object:
    """Add what a real server's encoder writes for fields that nobody gave, such as a status."""
    if not resource.crd:
        filled(obj, resource.shape)
    return obj


@lru_cache(maxsize=1024)
def _fast(shape: Shape) -> FastCheck:
    return FastCheck(shape)


def _check_kind(obj: Object, resource: Resource) -> None:
    api_version = obj.setdefault("apiVersion", resource.api_version)
    kind = obj.setdefault("kind", resource.kind)
    if api_version != resource.api_version:
        raise errors.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if kind != resource.kind:
        raise errors.bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        )


def _report_unknown(unknown: list[str], resource: Resource, how: Writing) -> None:
    if not unknown:
        return
    texts = [f'unknown field "{path}"' for path in unknown]
    if how.field_validation == "Strict":
        head = f'{resource.kind} in version "{resource.version}" cannot be handled as a '
        raise errors.bad_request(
            f"{'' if resource.crd else head + resource.kind + ': '}"
            f"strict decoding error: {', '.join(texts)}"
        )
    if how.field_validation == "Warn":
        for text in texts:
            how.warn(text)


def _metadata_mismatches(obj: Object, resource: Resource) -> list[Mismatch]:
    return findings(obj.get("metadata"), resource.shape.fields["metadata"]).mismatches


def _custom(obj: Object, resource: Resource) -> Object:
    typed: Object = crd.with_defaults(crd.pruned(obj, resource.shape), resource.shape)
    if "metadata" in typed:
        typed["metadata"] = pruned(typed["metadata"], resource.shape.fields["metadata"])
    return typed
