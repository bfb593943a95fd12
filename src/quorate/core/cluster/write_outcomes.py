"""What became of our writes, and of those of the leader before us: taken into the cluster.

Called by ``cluster`` for each such change, with itself.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.core.cluster.gangs.gangs import PodEntry, Where, place_of
from quorate.core.cluster.gangs.pods import SETTLED, UNDER_WAY
from quorate.core.cluster.state import ClusterState
from quorate.core.model import changes
from quorate.core.model.changes import BindFailure


def journal_found(cluster: ClusterState, change: changes.JournalFound) -> None:
    """Take the journal of the previous leader."""
    cluster.previous_journal = change.journal


def preemption_failed(cluster: ClusterState, change: changes.PreemptionFailed) -> None:
    """Have a failed preemption's pod and victims considered again."""
    cluster.touched |= cluster.precedence.failed(change, cluster.pods)


def pod_bound(cluster: ClusterState, change: changes.PodBound) -> None:
    """Count the pod as bound."""
    cluster.devices.forget(change.uid)
    entry = cluster.pods.get(change.uid)
    if entry is None or not _is_bound_by_us(entry):
        return
    if entry.where is Where.RELABELLED:
        entry.adopted = True  # until the watch shows for which gang it was bound
    if entry.where not in (*SETTLED, Where.REFUSED):  # the watch may have shown a later state
        cluster.move(entry, Where.BOUND, change.node)
    if entry.gang is not None:
        cluster.settle(entry.gang, change.uid)


def bind_failed(cluster: ClusterState, change: changes.BindFailed) -> None:
    """Count the pod as waiting again, or at its present place."""
    cluster.devices.forget(change.uid)
    if change.failure is BindFailure.GONE:
        cluster.pod_gone(changes.PodGone(change.uid))
    entry = cluster.pods.get(change.uid)
    if entry is None or not _is_bound_by_us(entry):
        return
    gang = entry.gang
    if entry.where in UNDER_WAY and change.failure is BindFailure.ELSEWHERE:
        if gang is not None and gang.attempt is not None:
            gang.attempt.completing.discard(change.uid)  # a foreign bind completes no gang
        entry.elsewhere = True
        cluster.move(entry, Where.BOUND, change.node)
    elif entry.where in UNDER_WAY and entry.node == change.node:
        if (
            gang is not None
            and change.failure is not BindFailure.NOT_SENT
            and entry.where is Where.ASSUMED
        ):
            memory = gang.memory
            memory.failed, memory.last_failure = True, change.message
            if change.failure is BindFailure.UNVERIFIED:
                memory.failures = max(1, memory.failures)  # what is planned at once is as wrong
        cluster.move(entry, place_of(entry.pod, None, cluster.scheduler_names), "")
    if gang is not None:
        cluster.settle(gang, change.uid)


def _is_bound_by_us(entry: PodEntry) -> bool:
    """Whether an outcome of our bind counts: what stands in for a pod may have no gang."""
    return entry.gang is not None or entry.where in UNDER_WAY


def note_prepared(cluster: ClusterState, change: changes.PrepareFailed | changes.Undone) -> None:
    """Take the outcome of writes that precede a gang's binds."""
    if change.key in cluster.gangs:
        cluster.gangs[change.key].note_prepared(change)
        cluster.touched.add(change.key)


def claim_written(cluster: ClusterState, change: changes.ClaimWritten) -> None:
    """Take what we wrote into a claim, unless it is gone; it comes before its pod's outcome."""
    claim = change.claim
    known = cluster.devices.claims.get((claim.namespace, claim.name))
    if known is not None and known.uid == claim.uid:
        cluster.devices.put_written(claim)


HANDLERS: dict[type[changes.Change], Callable[..., None]] = {
    changes.PodBound: pod_bound,
    changes.BindFailed: bind_failed,
    changes.PreemptionFailed: preemption_failed,
    changes.PrepareFailed: note_prepared,
    changes.Undone: note_prepared,
    changes.ClaimWritten: claim_written,
    changes.JournalFound: journal_found,
}
