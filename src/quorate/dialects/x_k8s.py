"""PodGroup ``scheduling.x-k8s.io``: scheduler-plugins from v0.25 on, Kubeflow, MPI, KubeRay."""

from __future__ import annotations

from quorate.core.model import GangSpec
from quorate.core.model.reasons import GangView
from quorate.dialects.base import Dialect, GangObject, PodKey, Resource, StatusPatch
from quorate.dialects.common import scheduler_plugins
from quorate.dialects.common.label_name import named_by_label

NAME = "x-k8s"
LABEL = "scheduling.x-k8s.io/pod-group"
OTHER_LABEL = "pod-group.scheduling.x-k8s.io"
"""What manuals spread that moved the older API's label into the newer API's domain."""


def _decode(raw: bytes) -> GangSpec:
    """Return what the PodGroup says. Its CRD has minimum 1, but absent and 0 are met at once."""
    return scheduler_plugins.decode(raw, NAME, least=0)


def _status(view: GangView, raw: bytes, now_s: float) -> StatusPatch | None:
    """Return the patch of ``/status`` by the phase machine of scheduler-plugins."""
    del now_s  # no field of this status is a time that HEAD sets
    body = scheduler_plugins.status_body(view, raw)
    return StatusPatch(body, subresource=True) if body else None


def _takes_the_rest(key: str) -> int:
    """Return 1: what looks like a gang's key and like nobody else's was meant for this API."""
    del key
    return 1


DIALECT = Dialect(
    name=NAME,
    member_key=PodKey("label", LABEL),
    other_keys=(PodKey("label", OTHER_LABEL),),
    membership=named_by_label(NAME, LABEL, OTHER_LABEL),
    likeness=_takes_the_rest,
    object=GangObject(
        resource=Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"),
        decode=_decode,
        status=_status,
        fields=scheduler_plugins.FIELDS,
        min_path=("spec", "minMember"),
        min_least=1,
    ),
)
