"""PodGroup ``scheduling.x-k8s.io``: scheduler-plugins from v0.25 on, Kubeflow, MPI, KubeRay."""

from __future__ import annotations

from quorate.core.model import GangKey, GangSpec, Membership
from quorate.core.model.reasons import GangView
from quorate.dialects import coscheduling
from quorate.dialects.base import PodFacts, Resource, StatusPatch

NAME = "x-k8s"
RESOURCE: Resource | None = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
LABEL = "scheduling.x-k8s.io/pod-group"
NAMED_BY = f"label {LABEL}"


def membership(facts: PodFacts) -> Membership | None:
    """Return the gang named by the label; an empty label names none."""
    name = facts.labels.get(LABEL)
    return Membership(GangKey(facts.namespace, NAME, name)) if name else None


def decode(raw: bytes) -> GangSpec:
    """Return what the PodGroup says. Its CRD has minimum 1, but absent and 0 are met at once."""
    return coscheduling.decode(raw, NAME, least=0)


def status(view: GangView, raw: bytes, now_s: float) -> StatusPatch | None:
    """Return the patch of ``/status`` by the phase machine of scheduler-plugins."""
    del now_s  # no field of this status is a time that HEAD sets
    body = coscheduling.status_body(view, raw)
    return StatusPatch(body, subresource=True) if body else None
