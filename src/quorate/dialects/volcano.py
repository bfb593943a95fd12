"""PodGroup ``scheduling.volcano.sh``: Volcano's own users, and Kubeflow, MPI, Ray, Spark with it.

Phases are those of Volcano's session: clients wait for ``Inqueue`` before they
make a single pod, and vcjob's controller acts on ``Unknown``. Status has no subresource.
"""

from __future__ import annotations

from typing import cast

import msgspec

from quorate.core.model import GangKey, GangSpec, Membership, policy
from quorate.core.model.reasons import GangState, GangView, Reason
from quorate.dialects.base import (
    LIKE,
    UNLIKE,
    Dialect,
    GangObject,
    Gathering,
    Malformed,
    PodFacts,
    PodKey,
    Resource,
    StatusPatch,
)
from quorate.dialects.common import conditions, fields

NAME = "volcano"
SCHEDULER = "volcano"
"""For the word of the scheduler of this name on a PodGroup its controllers and others wait."""
ANNOTATION = "scheduling.k8s.io/group-name"
TASK = "volcano.sh/task-spec"
"""The annotation, or else the label, that names a pod's task, as ``spec.minTaskMember`` does."""

_FIELDS = (
    "minMember",
    "minTaskMember",
    "queue",
    "priorityClassName",
    "minResources",
    "networkTopology",
    "subGroupPolicy",
)
"""Fields of its CRD's spec."""
_NOT_LOOKED_AT = (
    "sla-waiting-time",
    "volcano.sh/sla-waiting-time",
    "volcano.sh/preemptable",
    "volcano.sh/revocable-zone",
    "volcano.sh/cooldown-time",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
    "volcano.sh/numa-topology-policy",
)
"""Annotations that Volcano's plugins act on; its controllers copy them from jobs and pods."""
_TRANSITION_ID = "quorate"
"""Volcano writes its session's uid here; a stable text keeps the status free of churn."""
_TOO_FEW_PODS = (Reason.NOT_ENOUGH_MEMBERS, Reason.OWNER_MAKES_TOO_FEW, Reason.MEMBERS_GATED)


def _membership(facts: PodFacts) -> Membership | None:
    """Return the gang named by the annotation, the only key that Volcano's scheduler reads."""
    name = facts.annotations.get(ANNOTATION)
    if not name:
        return None
    task = facts.annotations.get(TASK) or facts.labels.get(TASK, "")
    return Membership(GangKey(facts.namespace, NAME, name), task=task)


def _decode(raw: bytes) -> GangSpec:
    """Return what the PodGroup says. An absent minMember is 0; the CRD's minimum is 0."""
    meta, whole = fields.read_object(raw)
    try:
        spec = fields.mapping(whole, "spec", "spec")
        queue = _name(spec, "queue")
        min_count = fields.whole_number(spec, "minMember", "spec.minMember", least=0) or 0
        _refuse_subgroups(spec)
        by_task, of_tasks = _min_by_task(spec, min_count)
        is_of_job = meta.owner is not None and meta.owner.api_version.startswith("batch.volcano.sh")
        said = (_of_topology(spec), "" if is_of_job else of_tasks, _of_annotations(whole))
        return GangSpec(
            key=GangKey(meta.namespace, NAME, meta.name),
            min_count=min_count,
            uid=meta.uid,
            created_s=meta.created_s,
            min_resources=fields.resources(spec, "minResources", "spec.minResources"),
            queue=queue,
            owner=meta.owner,
            warning="; ".join(filter(None, said)),
            min_by_task=by_task,
            priority_class=_name(spec, "priorityClassName"),
            mixed=True,  # a task's priority is among those of its job: plugins/priority
            admitted=_is_admitted(whole.get("status")),
            unanswered_by="" if _is_answered(whole.get("status")) else SCHEDULER,
        )
    except fields.FieldError as error:
        return fields.invalid_gang(NAME, meta, str(error))


def _of_annotations(whole: fields.JsonObject) -> str:
    metadata = cast(fields.JsonObject, whole["metadata"])
    written = metadata.get("annotations")
    known = written if isinstance(written, dict) else {}
    # Preemptable is what all are in Volcano but those that say false.
    found = [key for key in _NOT_LOOKED_AT if known.get(key, "true") != "true"]
    are = "annotation {} is" if len(found) == 1 else "annotations {} are"
    return f"{are.format(' and '.join(found))} not looked at" if found else ""


def _is_admitted(status: object) -> bool:
    return isinstance(status, dict) and fields.text(status, "phase") not in ("", "Pending")


def _is_answered(status: object) -> bool:
    """Whether a scheduler has written it. Controllers make it Pending, without conditions."""
    return _is_admitted(status) or (isinstance(status, dict) and bool(status.get("conditions")))


def _name(spec: fields.JsonObject, field: str) -> str:
    value = spec.get(field)
    if value is not None and not isinstance(value, str):
        raise fields.FieldError(f"spec.{field}: {fields.shown(value)} is not a name; write one")
    return value or ""


def _min_by_task(
    spec: fields.JsonObject, min_count: int
) -> tuple[tuple[tuple[str, int], ...], str]:
    """Return the minimum of each task, and a warning where they do not count.

    By Volcano's rule (CheckTaskValid and CheckTaskReady of its job_info.go) they count only where
    minMember is no less than their sum. Its controller writes all replicas of each task for a Job
    whose minAvailable is smaller: nobody is warned of that.
    """
    path = "spec.minTaskMember"
    written = fields.mapping(spec, "minTaskMember", path)
    if len(written) > policy.TASKS_PER_GANG_MAX:
        most = policy.TASKS_PER_GANG_MAX
        raise fields.FieldError(f"{path}: {len(written)} tasks are too many; write {most} at most")
    least = {
        task: fields.whole_number(written, task, f"{path}.{task[:100]}", least=0) or 0
        for task in sorted(written)
    }
    total = sum(least.values())
    if total > min_count:
        return (), (
            f"{path} adds up to {total}, which is more than spec.minMember {min_count}: "
            "as in Volcano, minMember alone counts then"
        )
    return tuple((task, count) for task, count in least.items() if count), ""


def _of_topology(spec: fields.JsonObject) -> str:
    """Return a warning about a soft topology. Raises ``FieldError`` for a hard one."""
    path = "spec.networkTopology"
    if spec.get("networkTopology") is None:
        return ""
    mode = fields.mapping(spec, "networkTopology", path).get("mode") or "hard"  # the default
    if mode == "soft":
        return f"{path} is soft and not looked at: members go to any nodes that have room"
    if mode != "hard":
        said = fields.shown(mode)
        raise fields.FieldError(f"{path}.mode: {said} is neither hard nor soft; write soft")
    raise fields.FieldError(
        f"{path}.mode: hard cannot be kept, topologies are not supported yet; write soft, or "
        f"remove {path} and give the pods affinity to one another by a label of the nodes"
    )


def _refuse_subgroups(spec: fields.JsonObject) -> None:
    if spec.get("subGroupPolicy"):
        raise fields.FieldError(
            "spec.subGroupPolicy: it cannot be kept, subgroups are not supported yet; "
            "remove it, or make a PodGroup for each subgroup"
        )


def _status(view: GangView, raw: bytes, now_s: float) -> StatusPatch | None:
    """Return the patch of phase, counts and conditions; it goes to the object itself."""
    try:
        meta, whole = fields.read_object(raw)
        now = fields.mapping(whole, "status", "status")
    except (Malformed, fields.FieldError):
        return None
    if not view.scheduler_known or (view.uid and meta.uid and view.uid != meta.uid):
        return None
    if now.get("phase") == "Completed" and _is_cleaned_up(view):
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
    if members.placed >= members.needed and (members.placed or not members.total):
        ended = members.succeeded + members.failed >= members.placed
        return "Completed" if ended else "Running"
    # A started gang that lost a member must not fall back to Pending: vcjob's controller would not
    # make the replacement, and so nothing would ever bring the gang back.
    admitted = view.admitted or view.state is GangState.STARTED
    return "Inqueue" if phase == "Inqueue" or admitted else "Pending"


def _is_cleaned_up(view: GangView) -> bool:
    """Whether too few pods are left for min, none of which still has to run.

    By the letter a group that has ended would wait again as soon as one of its pods is deleted.
    """
    members = view.members
    return members.placed < members.needed and members.total == members.succeeded + members.failed


def _is_unschedulable(view: GangView) -> bool:
    """Whether members below min have been tried, and found no node.

    The condition behind ``Unknown``, on which vcjob's policies may restart the whole job. So not
    while binds are under way, not for extras beyond min, and not when a lost pod is yet to be made.
    """
    members = view.members
    return (
        members.placed + members.assumed < members.needed
        and members.waiting > 0
        and view.reason.nodes_would_help
    )


def _conditions(
    found: list[fields.JsonObject], view: GangView, now_s: float
) -> list[fields.JsonObject]:
    members = view.members
    if not members.total and not view.reason.holds_the_first_pod:
        is_over = view.admitted and conditions.find(found, "Unschedulable")
        return _put(found, "Unschedulable", "False", "", "", now_s) if is_over else found
    if members.placed >= members.needed:
        if conditions.find(found, "Unschedulable"):
            found = _put(found, "Unschedulable", "False", "", "", now_s)
        ready = "tasks in gang are ready to be scheduled"
        return _put(found, "Scheduled", "True", ready, "", now_s)
    if members.assumed or view.state is GangState.STARTING:
        return found
    reason = "NotEnoughTasks" if view.reason in _TOO_FEW_PODS else "NotEnoughResources"
    unready = members.needed - members.placed
    tasks = members.total or members.needed
    message = f"{unready}/{tasks} tasks in gang unschedulable: {view.message}"
    if conditions.find(found, "Scheduled"):
        found = _put(found, "Scheduled", "False", reason, "", now_s)
    return _put(found, "Unschedulable", "True", reason, message, now_s)


def _put(
    found: list[fields.JsonObject], kind: str, state: str, reason: str, message: str, now_s: float
) -> list[fields.JsonObject]:
    put = conditions.put(
        found, kind, state, now_s, reason=reason, message=message, transitionID=_TRANSITION_ID
    )
    # Its clients put the whole object back without what is empty: that must not look different.
    return [
        {key: it for key, it in one.items() if it != ""} if one.get("type") == kind else one
        for one in put
    ]


def _likeness(key: str) -> int:
    return LIKE if "volcano" in key or key.endswith("k8siogroupname") else UNLIKE


DIALECT = Dialect(
    name=NAME,
    member_key=PodKey("annotation", ANNOTATION),
    membership=_membership,
    task_key=PodKey("annotation", TASK),
    mistaken_keys=(
        PodKey("label", "scheduling.volcano.sh/group-name"),
        PodKey("annotation", "scheduling.volcano.sh/group-name"),
    ),
    likeness=_likeness,
    object=GangObject(
        resource=Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"),
        decode=_decode,
        status=_status,
        fields=_FIELDS,
        min_path=("spec", "minMember"),
        former_versions=(
            "scheduling.incubator.k8s.io/v1alpha1",
            "scheduling.volcano.sh/v1alpha1",
            "scheduling.volcano.sh/v1alpha2",
        ),
        awaited_under=SCHEDULER,
        gathering=Gathering("scheduling.volcano.sh/group-min-member", "Volcano's controllers"),
        has_queues=True,
    ),
)
