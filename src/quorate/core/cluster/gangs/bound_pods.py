"""A pod that stays on its node as it is counted there: its gang alone hears of it.

In: a pod that has a node, and a newer version of it, or the answer to its bind. Most news of bound
pods are of this kind. Called by ``state`` with its parts.
"""

from __future__ import annotations

from quorate.core.cluster.change_log import Log
from quorate.core.cluster.gangs.gangs import PLACED, PodEntry, Where
from quorate.core.cluster.gangs.reservations import Reservations, placed
from quorate.core.cluster.priorities.precedence import Precedence
from quorate.core.model import Pod


def stay(
    entry: PodEntry,
    pod: Pod,
    where: Where,
    node: str,
    precedence: Precedence,
    log: Log,
    reservations: Reservations,
) -> bool:
    """Take in a version of a pod if it is bound there, and counted there as it was before.

    Return whether that is so. Not if volumes or devices are counted for it: what is assumed of
    those ends with its bind.
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
    entry.note_nomination(pod)
    entry.pod, entry.where = pod, Where.BOUND
    if gang is not None:
        if pod.bound_for != bound_for:
            entry.adopted = has_been and not gang.knows_attempt_of(pod)
        gang.attach(entry, Where.BOUND)
    if entry.row >= 0:
        precedence.took(entry)
        if may_yield:  # those who preempt see other room on that row now
            log.note(entry.row)
    reservations.note(was, entry)
    return True


def _stays(entry: PodEntry, pod: Pod, where: Where, node: str) -> bool:
    before = entry.pod
    if entry.where not in PLACED or where is not Where.BOUND or node != entry.node:
        return False
    if before.finished or pod.finished or before.terminating or pod.terminating:
        return False
    if before.claims or before.device_claims or before.shape.disks or before.shape.extended:
        return False
    return pod is before or _what_counts(pod) == _what_counts(before)


def _what_counts(pod: Pod) -> tuple[object, ...]:
    """Return all by which a bound pod is counted on its node, and in which gang."""
    return (
        pod.shape,
        pod.labels,
        pod.membership,
        pod.scheduler,
        pod.priority,
        pod.owner,
        pod.claims,
        pod.device_claims,
    )
