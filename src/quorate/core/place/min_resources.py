"""The minResources gate: the cluster must have room in sum before a gang's first pod may start.

Rule: scheduler-plugins' PreFilter. Free resources of all nodes are summed; the gang's own pods do
not count as used, and nothing is asked again for members that have done their work; any shortage
holds the gang. The gate is necessary, not sufficient. Spark and LeaderWorkerSet rely on it: their
min is 1, and the gang is in minResources.
"""

from __future__ import annotations

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.nodes.encoding import Resources
from quorate.core.room.room import Room


def shortage(gang: GangEntry, room: Room, resources: Resources) -> dict[str, tuple[int, int]]:
    """Return ``{resource: (free, wanted)}`` for each resource that is short."""
    if gang.spec is None or not gang.spec.min_resources:
        return {}
    free_by_column = room.in_sum()
    own: dict[str, int] = {}
    for entry in gang.members.values():
        if entry.row >= 0 or gang.runs.has_done(entry):
            for name, amount in entry.pod_class.asked:
                own[name] = own.get(name, 0) + amount
    short = {}
    for name, wanted in gang.spec.min_resources:
        column = resources.columns.get(name)
        if column is None and name in resources.backed and room.snapshot.nodes_alive:
            continue  # devices are given instead
        free = own.get(name, 0)
        if column is not None:
            free += int(free_by_column[column])
        if free < wanted:
            short[name] = (free, wanted)
    return short
