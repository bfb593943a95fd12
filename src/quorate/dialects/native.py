"""PodGroup ``scheduling.k8s.io``: Kubernetes' own, from 1.36 on behind alpha gates.

A pod names it in ``spec.schedulingGroup``. Policy ``basic`` groups pods without a quorum: each
starts on its own. The spec is immutable.
"""

from __future__ import annotations

import msgspec

from quorate.core.model import GangKey, GangSpec, Membership
from quorate.core.model.reasons import GangState, GangView
from quorate.dialects.base import (
    Dialect,
    GangObject,
    Malformed,
    PodFacts,
    PodKey,
    Resource,
    StatusPatch,
)
from quorate.dialects.common import conditions, fields

NAME = "native"

_FIELDS = (
    "schedulingPolicy",
    "podGroupTemplateRef",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
)
"""Fields of its spec, by the OpenAPI document of Kubernetes 1.36."""
_CONDITION = "PodGroupScheduled"
_MESSAGE_MAX = 32768
"""metav1.Condition's own limit."""


def _membership(facts: PodFacts) -> Membership | None:
    """Return the gang that the pod's spec names."""
    name = facts.scheduling_group
    return Membership(GangKey(facts.namespace, NAME, name)) if name else None


def _decode(raw: bytes) -> GangSpec:
    """Return what the PodGroup says; its policy is exactly one of ``gang`` and ``basic``."""
    meta, whole = fields.read_object(raw)
    try:
        spec = fields.mapping(whole, "spec", "spec")
        _refuse_topology(spec)
        return GangSpec(
            key=GangKey(meta.namespace, NAME, meta.name),
            min_count=_min_count(spec),
            uid=meta.uid,
            created_s=meta.created_s,
            owner=meta.owner,
        )
    except fields.FieldError as error:
        return fields.invalid_gang(NAME, meta, str(error))


def _refuse_topology(spec: fields.JsonObject) -> None:
    path = "spec.schedulingConstraints"
    if fields.mapping(spec, "schedulingConstraints", path).get("topology"):
        raise fields.FieldError(
            f"{path}.topology: it cannot be kept, topologies are not supported yet; make the "
            "PodGroup without it, and give the pods affinity to one another by that label"
        )


def _min_count(spec: fields.JsonObject) -> int:
    path = "spec.schedulingPolicy"
    policy = fields.mapping(spec, "schedulingPolicy", path)
    gang, basic = policy.get("gang"), policy.get("basic")
    if (gang is None) == (basic is None):
        many = "neither gang nor basic is" if gang is None else "both gang and basic are"
        raise fields.FieldError(f"{path}: {many} set; write exactly one of them")
    if gang is None:
        fields.mapping(policy, "basic", f"{path}.basic")
        return 0
    where = fields.mapping(policy, "gang", f"{path}.gang")
    min_count = fields.whole_number(where, "minCount", f"{path}.gang.minCount", least=1)
    if min_count is None:
        raise fields.FieldError(f"{path}.gang.minCount: missing; write 1 or more")
    return min_count


def _status(view: GangView, raw: bytes, now_s: float) -> StatusPatch | None:
    """Return the patch of condition PodGroupScheduled; True is never taken back."""
    try:
        meta, whole = fields.read_object(raw)
        now = fields.mapping(whole, "status", "status")
    except (Malformed, fields.FieldError):
        return None
    found = conditions.present(now)
    old = conditions.find(found, _CONDITION)
    scheduled = view.members.placed >= max(1, view.members.needed)
    settled = old is not None and old.get("status") == "True"
    nothing_to_say = not scheduled and (
        view.state is not GangState.WAITING or not view.members.total
    )
    if settled or nothing_to_say or (view.uid and meta.uid and view.uid != meta.uid):
        return None
    # Servers drop a 0, and this would be written for ever where they count no generations.
    generation = {"observedGeneration": meta.generation} if meta.generation else {}
    wanted = conditions.put(
        found,
        _CONDITION,
        "True" if scheduled else "False",
        now_s,
        reason="Scheduled" if scheduled else "Unschedulable",
        message="" if scheduled else view.message[:_MESSAGE_MAX],
        **generation,
    )
    if wanted == now.get("conditions"):
        return None
    return StatusPatch(msgspec.json.encode({"status": {"conditions": wanted}}), subresource=True)


DIALECT = Dialect(
    name=NAME,
    member_key=PodKey("field", "spec.schedulingGroup.podGroupName"),
    membership=_membership,
    object=GangObject(
        resource=Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup"),
        decode=_decode,
        status=_status,
        fields=_FIELDS,
        min_path=("spec", "schedulingPolicy", "gang", "minCount"),
        may_be_no_gang=True,  # policy basic
        kubernetes_places_it=True,
    ),
)
