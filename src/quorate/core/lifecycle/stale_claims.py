"""Finds node selections that an earlier attempt left on the claims of a waiting gang.

In: a gang and the cluster, which is only read. Out: what to undo. Called by ``turn.cycle``.
"""

from __future__ import annotations

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, Where
from quorate.core.model.plan import Prepare, Undo
from quorate.core.model.storage import Claim, ClaimKey


def stale_selections(gang: GangEntry, cluster: Cluster) -> Undo | None:
    """Return what to undo on claims of a gang that could not be placed, or None.

    Only claims count that are used by waiting pods of this gang alone: no other pod waits for them.
    """
    storage = cluster.storage
    if gang.lifecycle.is_undoing or gang.attempt is not None or not storage.users:
        return None
    left = []
    for alike in gang.waiting.values():
        for entry in alike.values():
            for use in entry.pod.claims:
                claim = storage.claims.get(ClaimKey(entry.pod.namespace, use.name))
                if claim is not None and _is_stale(claim, gang, cluster):
                    left.append(
                        Prepare(claim.namespace, claim.name, claim.uid, claim.selected_node or "")
                    )
    if not left:
        return None
    return Undo(gang.key, tuple(dict.fromkeys(left)))


def _is_stale(claim: Claim, gang: GangEntry, cluster: Cluster) -> bool:
    if claim.selected_node is None or claim.is_bound or claim.volume:
        return False
    users = cluster.storage.users_of.get(claim.key, {})
    entries = (cluster.pods.get(uid) for uid in users)
    return all(
        entry is not None and entry.gang is gang and entry.where is Where.WAITING
        for entry in entries
    )
