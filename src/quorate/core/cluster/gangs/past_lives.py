"""Members of a gang's earlier life that a new leader finds beside a life that a dead one began.

In: a gang as the API shows it, and the previous leader's journal. Out: the members to set aside.
Called by ``cluster.state`` before each decision. ``GangEntry.past_members`` covers a gang of which
no member is alive; here some are alive. See ADR 10.
"""

from __future__ import annotations

from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where
from quorate.core.model.journal import Journal, is_older


def left_of_earlier_life(gang: GangEntry, before: Journal | None) -> list[PodEntry]:
    """Return the members that count for nothing, because a dead leader was binding a new life.

    The binds of a started gang are all marked. So where no living member bears a mark, and their
    attempts had not ended, their life has not started: a mark of an older attempt belongs to
    another life. Where the order of attempts is not known, nothing is returned.
    """
    life = gang.lifecycle
    if life.is_looked_at or not gang.alive or gang.key.is_single:
        return []
    life.is_looked_at = True
    own = gang.own
    alive = [entry.pod for entry in own if entry.is_alive]
    attempts = {pod.attempt for pod in alive}
    if len(alive) == len(own) or "" in attempts or any(pod.started for pod in alive):
        return []
    if before is not None and before.is_settled(gang.key, attempts):
        return []
    older = [
        entry
        for entry in own
        if not entry.is_alive and all(is_older(entry.pod.attempt, id, before) for id in attempts)
    ]
    marked = [entry for entry in own if entry.pod.started]
    if not marked:
        # What finished may be of this life, except that failed members complete no gang.
        older = [entry for entry in older if entry.pod.phase == "Failed"]
    elif any(entry not in older for entry in marked):
        return []  # a mark of this life
    return [] if _is_met_without(gang, older) else older


def _is_met_without(gang: GangEntry, members: list[PodEntry]) -> bool:
    """Whether the other bound members reach min, in all and for each task."""
    but = {entry.pod.uid for entry in members}
    stays = gang.stays - sum(not entry.is_leaving for entry in members)
    lacks = gang.lacking((Where.BOUND,), but)
    return gang.quorum_is_known and stays >= gang.min_count and not lacks
