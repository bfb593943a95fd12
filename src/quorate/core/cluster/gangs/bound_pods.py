"""A fast path for pods that stay on their node and are counted there as before.

In: a pod with a node, and its newer version or the outcome of its bind. Only the counts of its gang
are updated. Most changes of bound pods are of this kind. Called by ``state`` with its parts.
"""

from __future__ import annotations

from quorate.core.cluster.change_log import Log
from quorate.core.cluster.gangs.gangs import PLACED, PodEntry, Where
from quorate.core.cluster.gangs.reservation import placed
from quorate.core.cluster.gangs.reservations import Reservations
from quorate.core.cluster.priorities.precedence import Precedence
from quorate.core.model import Pod


def update_in_place(
    entry: PodEntry,
    pod: Pod,
    where: Where,
    node: str,
    precedence: Precedence,
    log: Log,
    reservations: Reservations,
) -> bool:
    """Take a pod's version if it is bound to its node and counted there as before.

    Return whether that is the case. It is not if the pod uses volumes or devices, because what is
    assumed for them ends with its bind.
    """
    if not _stays(entry, pod, where, node):
        return False
    gang, was, bound_for = entry.gang, placed(entry), entry.pod.bound_for
    may_yield = entry.where is not Where.BOUND and precedence.bound is not None
    has_been = entry.where is Where.BOUND or bool(pod.bound_for)
    if gang is not None:
        gang.detach(entry)
    if entry.row >= 0:
        precedence.released(entry)
    entry.note_version(pod)
    entry.pod, entry.where = pod, Where.BOUND
    if gang is not None:
        if pod.bound_for != bound_for:
            entry.adopted = has_been and not gang.knows_attempt_of(pod)
        gang.attach(entry, Where.BOUND)
    if entry.row >= 0:
        precedence.took(entry)
        if may_yield:  # the room for pods that preempt has changed on that row
            log.note(entry.row)
    reservations.note(was, entry)
    return True


def _stays(entry: PodEntry, pod: Pod, where: Where, node: str) -> bool:
    before = entry.pod
    if entry.where not in PLACED or where is not Where.BOUND or node != entry.node:
        return False
    if before.finished or pod.finished or before.terminating or pod.terminating:
        return False
    if before.claims or before.device_claims or before.spec.disks or before.spec.extended:
        return False
    return pod is before or _what_counts(pod) == _what_counts(before)


def _what_counts(pod: Pod) -> tuple[object, ...]:
    """Return all that decides how a bound pod is counted on its node and in its gang."""
    return (
        pod.spec,
        pod.labels,
        pod.membership,
        pod.scheduler,
        pod.priority,
        pod.owner,
        pod.run,
        pod.claims,
        pod.device_claims,
    )
