"""PodGroup ``scheduling.sigs.k8s.io``: scheduler-plugins up to v0.24, CoreWeave's scheduler."""

from __future__ import annotations

from quorate.core.model import GangKey, GangSpec, Membership
from quorate.core.model.reasons import GangView
from quorate.dialects import coscheduling
from quorate.dialects.base import INT32_MAX, PodFacts, Resource, StatusPatch

NAME = "sigs"
RESOURCE: Resource | None = Resource("scheduling.sigs.k8s.io", "v1alpha1", "podgroups", "PodGroup")
LABEL = "pod-group.scheduling.sigs.k8s.io"
NAMED_BY = f"label {LABEL}"


def membership(facts: PodFacts) -> Membership | None:
    """Return the gang named by the label; an empty label names none."""
    name = facts.labels.get(LABEL)
    return Membership(GangKey(facts.namespace, NAME, name)) if name else None


def decode(raw: bytes) -> GangSpec:
    """Return what the PodGroup says. Its CRD has no minimum: 0 and less are met at once."""
    return coscheduling.decode(raw, NAME, least=-INT32_MAX)


def status(view: GangView, raw: bytes, now_s: float) -> StatusPatch | None:
    """Return the patch of ``/status``, which CRDs before v0.24.9 have in the object itself."""
    del now_s  # no field of this status is a time that HEAD sets
    body = coscheduling.status_body(view, raw)
    return StatusPatch(body, subresource=True, fallback_to_main=True) if body else None
