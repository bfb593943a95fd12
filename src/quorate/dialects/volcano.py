"""PodGroup ``scheduling.volcano.sh``: Volcano's own users, and Kubeflow, MPI, Ray, Spark with it.

Phases are those of Volcano's session: clients wait for ``Inqueue`` before they
make a single pod, and vcjob's controller acts on ``Unknown``. Status has no subresource.
"""

from __future__ import annotations

import msgspec

from quorate.core.model import GangKey, GangSpec, Membership
from quorate.core.reasons import GangState, GangView, Reason
from quorate.dialects import conditions, fields
from quorate.dialects.base import Malformed, PodFacts, Resource, StatusPatch

NAME = "volcano"
RESOURCE: Resource | None = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
ANNOTATION = "scheduling.k8s.io/group-name"
NAMED_BY = f"annotation {ANNOTATION}"

_TRANSITION_ID = "quorate"
"""Volcano writes its session's uid here; a stable text keeps the status free of churn."""
_TOO_FEW_PODS = (Reason.NOT_ENOUGH_MEMBERS, Reason.OWNER_MAKES_TOO_FEW, Reason.MEMBERS_GATED)


def membership(facts: PodFacts) -> Membership | None:
    """Return the gang named by the annotation, the only key that Volcano's scheduler reads."""
    name = facts.annotations.get(ANNOTATION)
    return Membership(GangKey(facts.namespace, NAME, name)) if name else None


def decode(raw: bytes) -> GangSpec:
    """Return what the PodGroup says. An absent minMember is 0; the CRD's minimum is 0."""
    meta, whole = fields.read_object(raw)
    try:
        spec = fields.mapping(whole, "spec", "spec")
        queue = spec.get("queue")
        if queue is not None and not isinstance(queue, str):
            raise fields.FieldError(f"spec.queue: {fields.shown(queue)} is not a name; write one")
        return GangSpec(
            key=GangKey(meta.namespace, NAME, meta.name),
            min_count=fields.whole_number(spec, "minMember", "spec.minMember", least=0) or 0,
            uid=meta.uid,
            created_s=meta.created_s,
            min_resources=fields.resources(spec, "minResources", "spec.minResources"),
            queue=queue or "",
            owner=meta.owner,
        )
    except fields.FieldError as error:
        return fields.invalid_gang(NAME, meta, str(error))


def status(view: GangView, raw: bytes, now_s: float) -> StatusPatch | None:
    """Return the patch of phase, counts and conditions; it goes to the object itself."""
    try:
        meta, whole = fields.read_object(raw)
        now = fields.mapping(whole, "status", "status")
    except (Malformed, fields.FieldError):
        return None
    if view.uid and meta.uid and view.uid != meta.uid:
        return None
    changed: dict[str, object] = {}
    phase = _phase(fields.text(now, "phase"), view)
    if phase != now.get("phase"):
        changed["phase"] = phase
    for count in ("running", "succeeded", "failed"):
        value = getattr(view.members, count)
        if (now.get(count) or 0) != value:
            changed[count] = value
    wanted = _conditions(conditions.present(now), view, now_s)
    if wanted != (now.get("conditions") or []):
        changed["conditions"] = wanted
    if not changed:
        return None
    return StatusPatch(msgspec.json.encode({"status": changed}), subresource=False)


def _phase(phase: str, view: GangView) -> str:
    members = view.members
    if members.running and _is_unschedulable(view):
        return "Unknown"
    # By the letter a min of 0 is Completed while its first pods still wait; only an empty one is.
    if members.bound >= members.needed and (members.bound or not members.total):
        ended = members.succeeded + members.failed >= members.bound
        return "Completed" if ended else "Running"
    # A started gang that lost a member must not fall back to Pending: vcjob's controller would not
    # make the replacement, and so nothing would ever bring the gang back.
    admitted = view.admitted or view.state is GangState.STARTED
    return "Inqueue" if phase == "Inqueue" or admitted else "Pending"


def _is_unschedulable(view: GangView) -> bool:
    """Whether members below min have been tried, and found no node.

    The condition behind ``Unknown``, on which vcjob's policies may restart the whole job. So not
    while binds are under way, not for extras beyond min, and not when a lost pod is yet to be made.
    """
    members = view.members
    return (
        members.bound + members.assumed < members.needed
        and members.waiting > 0
        and view.reason.nodes_would_help
    )


def _conditions(
    found: list[fields.JsonObject], view: GangView, now_s: float
) -> list[fields.JsonObject]:
    members = view.members
    if not members.total:
        return found
    if members.bound >= members.needed:
        if conditions.find(found, "Unschedulable"):
            found = _put(found, "Unschedulable", "False", "", "", now_s)
        ready = "tasks in gang are ready to be scheduled"
        return _put(found, "Scheduled", "True", ready, "", now_s)
    if members.assumed or view.state is GangState.STARTING:
        return found
    reason = "NotEnoughTasks" if view.reason in _TOO_FEW_PODS else "NotEnoughResources"
    unready = members.needed - members.bound
    message = f"{unready}/{members.total} tasks in gang unschedulable: {view.sentence}"
    if conditions.find(found, "Scheduled"):
        found = _put(found, "Scheduled", "False", reason, "", now_s)
    return _put(found, "Unschedulable", "True", reason, message, now_s)


def _put(
    found: list[fields.JsonObject], kind: str, state: str, reason: str, message: str, now_s: float
) -> list[fields.JsonObject]:
    return conditions.put(
        found, kind, state, now_s, reason=reason, message=message, transitionID=_TRANSITION_ID
    )
