"""The annotation of client-side ``kubectl apply``, for objects that move to server-side apply.

Only for the manager ``kubectl``: what the annotation says and the object still has may be taken
over without a conflict, and the annotation is kept up to date, so that both ways can be mixed.
Source: k8s.io/apimachinery ``pkg/util/managedfields`` of 1.36, ``lastapplied*.go``.
"""

from __future__ import annotations

import copy
import json

from pocketkube.objects import Object, annotations_of, meta
from pocketkube.patch.apply.field_paths import Fields, named
from pocketkube.patch.apply.mismatches import mismatch_of
from pocketkube.patch.apply.structure import difference, fields_of
from pocketkube.schema.shape import Shape

KUBECTL = "kubectl"
CLIENT_SIDE = "kubectl-client-side-apply"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
PATH = named("metadata", "annotations", ANNOTATION)
MAX_ANNOTATIONS_BYTES = 256 * 1024

_ESCAPED = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}  # as Go writes JSON


def unchanged_fields(live: Object, shape: Shape, api_version: str) -> Fields | None:
    """Return the fields that were applied from the client side and still have their values.

    None when the object has no such annotation, or one that cannot be read.
    """
    try:
        applied = json.loads(annotations_of(live).get(ANNOTATION, ""))
    except ValueError:
        return None
    if not isinstance(applied, dict) or applied.get("apiVersion") != api_version:
        return None
    if mismatch_of(applied, shape):
        return None
    change = difference(applied, live, shape)
    return fields_of(applied, shape) - change.written - change.removed


def refreshed(obj: Object, applied: Object) -> Object:
    """Return the object with what was applied now in its annotation, when it has that annotation.

    An annotation that would be too long is dropped.
    """
    annotations = dict(annotations_of(obj))
    if not annotations.get(ANNOTATION):
        return obj
    configuration = copy.deepcopy(applied)
    annotations_of(configuration).pop(ANNOTATION, None)
    if meta(configuration).get("annotations", {}) is None:
        del configuration["metadata"]["annotations"]
    text = json.dumps(configuration, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    annotations[ANNOTATION] = text.translate(_ESCAPED) + "\n"
    if sum(len(f"{key}{value}".encode()) for key, value in annotations.items()) > (
        MAX_ANNOTATIONS_BYTES
    ):
        del annotations[ANNOTATION]
    return {**obj, "metadata": {**meta(obj), "annotations": annotations}}
