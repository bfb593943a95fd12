"""PodGroup ``scheduling.sigs.k8s.io``: scheduler-plugins up to v0.24, CoreWeave's scheduler."""

from __future__ import annotations

from quorate.core.model import GangSpec
from quorate.core.model.reasons import GangView
from quorate.dialects.base import (
    INT32_MAX,
    LIKE,
    UNLIKE,
    Dialect,
    GangObject,
    PodKey,
    Resource,
    StatusPatch,
)
from quorate.dialects.common import scheduler_plugins
from quorate.dialects.common.label_name import named_by_label

NAME = "sigs"
LABEL = "pod-group.scheduling.sigs.k8s.io"


def _decode(raw: bytes) -> GangSpec:
    """Return what the PodGroup says. Its CRD has no minimum: 0 and less are met at once."""
    return scheduler_plugins.decode(raw, NAME, least=-INT32_MAX)


def _status(view: GangView, raw: bytes, now_s: float) -> StatusPatch | None:
    """Return the patch of ``/status``, which CRDs before v0.24.9 have in the object itself."""
    del now_s  # no field of this status is a time that HEAD sets
    body = scheduler_plugins.status_body(view, raw)
    return StatusPatch(body, subresource=True, fallback_to_main=True) if body else None


def _likeness(key: str) -> int:
    return LIKE if "sigs" in key else UNLIKE


DIALECT = Dialect(
    name=NAME,
    member_key=PodKey("label", LABEL),
    membership=named_by_label(NAME, LABEL),
    mistaken_keys=(PodKey("label", "scheduling.sigs.k8s.io/pod-group"),),
    likeness=_likeness,
    object=GangObject(
        resource=Resource("scheduling.sigs.k8s.io", "v1alpha1", "podgroups", "PodGroup"),
        decode=_decode,
        status=_status,
        fields=scheduler_plugins.FIELDS,
        min_path=("spec", "minMember"),
    ),
)
