"""Holds the members of a CronJob's next run while an earlier run is the gang. See ADR 30.

In: a gang as it is when all news are in. Out: members moved to or from ``Where.NEXT_RUN``. Called
by ``advancing`` before each decision.
"""

from __future__ import annotations

from functools import partial

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, Where


def hold_next_runs(gang: GangEntry, cluster: Cluster) -> None:
    """Move the members that have to wait for another run, and let those go that have not to."""
    if not (gang.runs.jobs or gang.counts[Where.NEXT_RUN]):
        return
    cron_job_of = partial(cluster.owners.cron_job_of, gang.key.namespace)
    held = gang.runs.to_hold(cron_job_of, gang.stated_min)
    if gang.runs.holds(held):
        return
    for entry in list(gang.members.values()):
        is_held = entry.pod.run in held
        if entry.where is Where.WAITING and is_held:
            cluster.move(entry, Where.NEXT_RUN, "")
        elif entry.where is Where.NEXT_RUN and not is_held:
            cluster.move(entry, Where.WAITING, "")
