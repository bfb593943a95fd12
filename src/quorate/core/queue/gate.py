"""The gates: what holds a gang back before any node is looked at. The check is cheap.

In: a gang, the cluster, the time. Out: a ``Reason``. ``planning`` calls it to decide, and ``words``
to explain, so the two always agree.
"""

from __future__ import annotations

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import EXISTING, GangEntry, Where
from quorate.core.cluster.gangs.owners import OwnerFacts
from quorate.core.cluster.unlisted_kinds import problem_for
from quorate.core.model import GangKey, Owner, Pod, Queue
from quorate.core.model.reasons import Reason


def held_by(gang: GangEntry, cluster: Cluster, now_s: float) -> Reason:
    """Return why the gang may not be placed now, or ``Reason.NONE``.

    It takes O(1); O(members) for a gang with minima by task and enough members for min, or while a
    kind of object cannot be listed.
    """
    if gang.memory.aside.is_active(now_s):
        return Reason.INTERNAL_ERROR
    if _is_of_another(gang, cluster):
        return Reason.OTHER_SCHEDULER
    if cluster.unserved and problem_for(gang, cluster) is not None:
        return Reason.API_NOT_AVAILABLE
    if (reason := _of_object(gang, cluster)) is not Reason.NONE:
        return reason
    if gang.started:
        return _held_pods(gang) if not gang.waits else _not_yet(gang, cluster, now_s)
    if gang.disagrees:
        return Reason.MEMBERS_DISAGREE
    if gang.exist < gang.min_count or not gang.waits:
        return _too_few(gang, cluster)
    if gang.lacking(EXISTING):
        return _too_few_of_task(gang)
    return _not_yet(gang, cluster, now_s)


def _is_of_another(gang: GangEntry, cluster: Cluster) -> bool:
    """Whether another scheduler has to start it, or to admit it before it has pods."""
    if gang.members or gang.spec is None:
        return not gang.ours and gang.counts[Where.FOREIGN] > 0
    return gang.min_count > 0 and gang.spec.unanswered_by not in ("", *cluster.scheduler_names)


def unanswered_since_s(gang: GangEntry, cluster: Cluster) -> float | None:
    """Return since when (epoch seconds) another scheduler has said nothing of a gang.

    None: it is ours, it cannot be whole yet, or something was said or done. It takes O(members).
    """
    if not _is_of_another(gang, cluster):
        return None
    members = gang.members.values()
    if gang.spec is not None and not members:
        return gang.spec.created_s
    is_whole = len(members) >= gang.min_count and gang.quorum_is_known
    is_silent = all(entry.where is Where.FOREIGN and entry.pod.unanswered for entry in members)
    return max(entry.pod.created_s for entry in members) if is_whole and is_silent else None


def _of_object(gang: GangEntry, cluster: Cluster) -> Reason:
    """Return what is wrong with the gang's object, or with the queue that it names.

    Volcano neither admits nor places the gang of a queue that is missing or not open. A started one
    goes on here, and where no queue is known, as while none can be listed, none is asked for.
    """
    spec, queues = gang.spec, cluster.queues
    if not gang.quorum_is_known:
        return _object_missing(gang.key, cluster)
    if spec is None:
        return Reason.NONE
    if spec.defect:
        return Reason.GANG_OBJECT_INVALID
    if gang.started or not (spec.queue and queues) or Queue.__name__ in cluster.unserved:
        return Reason.NONE
    if spec.queue not in queues:
        return Reason.QUEUE_MISSING
    return Reason.QUEUE_CLOSED if queues[spec.queue].closed else Reason.NONE


def _not_yet(gang: GangEntry, cluster: Cluster, now_s: float) -> Reason:
    if now_s < gang.memory.not_before_s:
        return Reason.BACKING_OFF
    facts = said_by_owner(gang, cluster)
    if facts is None:
        return Reason.NONE
    if facts.meant:
        return Reason.UNKNOWN_GANG_LABEL
    return Reason.GANG_OBJECT_MISSING if facts.gathered else Reason.API_NOT_AVAILABLE


def said_by_owner(gang: GangEntry, cluster: Cluster) -> OwnerFacts | None:
    """Return what holds a pod of no gang that could be placed: see ``Owners.of_single``."""
    if not (gang.key.is_single and gang.waits):
        return None
    pod = next(iter(gang.members.values())).pod
    if pod.owner is None:
        return None
    may_be = bool(pod.gathered_by) and cluster.served.get(pod.gathered_by, False)
    return cluster.owners.of_single(gang.key.namespace, pod.owner, may_be_gathered=may_be)


def asked_owners(gang: GangEntry | None, cluster: Cluster) -> tuple[Owner, ...]:
    """Return the owner that has to be read before a pod of no gang is placed, again if it was."""
    if gang is None or said_by_owner(gang, cluster) is None:
        return ()
    return tuple(owner for owner in gang.owners if owner)


def _object_missing(key: GangKey, cluster: Cluster) -> Reason:
    if namesake(key, cluster) is not None:
        return Reason.GANG_OBJECT_IN_OTHER_API
    if not cluster.served.get(key.dialect, True):
        return Reason.GANG_API_NOT_INSTALLED
    return Reason.GANG_OBJECT_MISSING


def namesake(key: GangKey, cluster: Cluster) -> GangKey | None:
    """Return a gang with the same name whose object is of another API, or None."""
    for dialect in cluster.served:
        other = cluster.gangs.get(key._replace(dialect=dialect))
        if dialect != key.dialect and other is not None and other.spec is not None:
            return other.key
    return None


def _too_few(gang: GangEntry, cluster: Cluster) -> Reason:
    """Return why members are missing: they are held back, or they do not exist."""
    counts = gang.counts
    if gang.exist + counts[Where.INVALID] >= gang.min_count and counts[Where.INVALID]:
        return _held_pods(gang)
    if gang.exist + counts[Where.GATED] >= gang.min_count and counts[Where.GATED]:
        return Reason.MEMBERS_GATED
    if gang.exist >= gang.min_count:
        return Reason.NONE if gang.bound or gang.assumed else Reason.NOT_ENOUGH_MEMBERS
    total = owners_make(gang, cluster)
    if total is not None and total < gang.min_count:
        return Reason.OWNER_MAKES_TOO_FEW
    return Reason.NOT_ENOUGH_MEMBERS


def _too_few_of_task(gang: GangEntry) -> Reason:
    """Return why members of a task are missing: they are held back, or they do not exist."""
    if not gang.lacking(EXISTING | {Where.INVALID}):
        return _held_pods(gang)
    if not gang.lacking(EXISTING | {Where.GATED}):
        return Reason.MEMBERS_GATED
    return Reason.NOT_ENOUGH_MEMBERS


def _held_pods(gang: GangEntry) -> Reason:
    """Return the reason of the first invalid member or of a next run, or ``Reason.NONE``."""
    pod = first_invalid(gang)
    if pod is not None:
        return Reason(pod.defect_reason or Reason.POD_INVALID)
    return Reason.EARLIER_RUN if gang.counts[Where.NEXT_RUN] else Reason.NONE


def first_invalid(gang: GangEntry) -> Pod | None:
    """Return the invalid member with the first name, or None; so messages name the same one."""
    if not gang.counts[Where.INVALID]:
        return None
    invalid = [entry.pod for entry in gang.members.values() if entry.where is Where.INVALID]
    return min(invalid, key=lambda pod: pod.name)


def owners_make(gang: GangEntry, cluster: Cluster) -> int | None:
    """Return how many pods the owners of the gang's members make; None if one is not known."""
    total = 0
    for owner in gang.owners:
        replicas = cluster.owners.makes(gang.key.namespace, owner) if owner else None
        if replicas is None:
            return None
        total += replicas
    return total if gang.owners else None
