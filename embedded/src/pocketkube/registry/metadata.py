"""The checks of metadata that all kinds share.

In: objects. Out: causes. Called by ``api``. Source of the rules and of their words:
k8s.io/apimachinery ``api/validation`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pocketkube.causes import forbidden, immutable, invalid, required, too_long
from pocketkube.errors import Cause
from pocketkube.names import (
    ANNOTATIONS_BYTES_MAX,
    Messages,
    dns_1035_label,
    dns_label,
    dns_subdomain,
    invalid_text,
    label_causes,
    label_key,
    path_segment,
)
from pocketkube.objects import Object
from pocketkube.schema.resource import Resource

_FORMS: Mapping[str, Callable[[str], Messages]] = {
    "dns-subdomain": dns_subdomain,
    "dns-label": dns_label,
    "dns-1035-label": dns_1035_label,
    "path-segment": path_segment,
}


def metadata_causes(obj: Object, resource: Resource, name_is: str) -> list[Cause]:
    """Check the metadata of an object that is new or changed.

    ``name_is`` is the form of its name: dns-subdomain, dns-label, dns-1035-label or path-segment.
    """
    metadata = obj["metadata"]
    causes = _name_causes(metadata, _FORMS[name_is])
    if not resource.namespaced and metadata.get("namespace"):
        causes.append(forbidden("metadata.namespace", "not allowed on this type"))
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    if labels:
        causes += label_causes(labels, "metadata.labels")
    if annotations:
        causes += annotation_causes(annotations, "metadata.annotations")
    if metadata.get("finalizers"):
        causes += _finalizer_causes(metadata["finalizers"])
    return causes


def _name_causes(metadata: Mapping[str, Any], check: Callable[[str], Messages]) -> list[Cause]:
    causes: list[Cause] = []
    base, name = metadata.get("generateName"), metadata.get("name")
    if base:
        # A dash before the suffix is fine: it is not the last character of the name.
        masked = f"{base[:-2]}a" if len(base) > 1 and base.endswith("-") else base
        causes += [invalid("metadata.generateName", base, message) for message in check(masked)]
    if not name:
        return [*causes, required("metadata.name", "name or generateName is required")]
    return causes + invalid_text("metadata.name", name, check) if check(name) else causes


def annotation_causes(annotations: Mapping[str, str], field: str) -> list[Cause]:
    """Check annotations: keys like labels', in any case; 256 KiB in all."""
    causes: list[Cause] = []
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        causes += [invalid(field, key, message) for message in label_key(key.lower())]
    if size > ANNOTATIONS_BYTES_MAX:
        causes.append(too_long(field, ANNOTATIONS_BYTES_MAX))
    return causes


def _finalizer_causes(finalizers: list[str]) -> list[Cause]:
    field = "metadata.finalizers"
    causes = [cause for one in finalizers for cause in invalid_text(field, one, label_key)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(invalid(field, finalizers, why))
    return causes


_FIXED = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def metadata_update_causes(
    obj: Object, old: Object, resource: Resource, name_is: str
) -> list[Cause]:
    """Check the metadata of a changed object.

    What identifies it may not change; while it is being deleted, no finalizers may come.
    """
    metadata, before = obj["metadata"], old["metadata"]
    causes = metadata_causes(obj, resource, name_is)
    if "deletionTimestamp" in before:
        known = before.get("finalizers") or []
        extra = sorted(set(metadata.get("finalizers") or []) - set(known))
        if extra:
            listed = ", ".join(f'"{one}"' for one in extra)
            why = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            causes.append(forbidden("metadata.finalizers", why))
    for key in _FIXED:
        new, kept = metadata.get(key), before.get(key)
        if new != kept:
            causes += immutable(f"metadata.{key}", new, kept)
    return causes
