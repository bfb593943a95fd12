"""Small things about Kubernetes objects, which are plain dictionaries here."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

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


def rfc3339(instant_s: float) -> str:
    """Write seconds since 1970 as metav1.Time does: ``2026-11-21T12:00:00Z``."""
    when = datetime.datetime.fromtimestamp(int(instant_s), datetime.UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(instant_s: float) -> str:
    """Write seconds since 1970 as metav1.MicroTime does: ``2026-11-21T12:00:00.000000Z``."""
    when = datetime.datetime.fromtimestamp(instant_s, datetime.UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parsed_time_s(text: str) -> float:
    """Read an RFC 3339 time as seconds since 1970. Raises ValueError."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
