"""Reviews promises of room to nominated pods when their nodes change.

In: the cluster's nominations and the room. Out: gangs to try again, and promises to take back.
Called by ``lifecycle.advancing``. If a node no longer suits the pod (it is gone, relabelled,
tainted or cordoned), the promise ends, because it would hold room that nobody can use.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.nodes.slots import checked_of
from quorate.core.model import GangKey, Node
from quorate.core.model.plan import Preemption
from quorate.core.preempt.cycle_preemptions import promise
from quorate.core.room.room import Room
from quorate.core.rules.masks import mask_of

_Facts = tuple[Node | None, tuple[int, ...]]
"""A node, and the free amount of each resource there, by column."""


class Nominating:
    """Remembers the nodes of promises as they were at the last review."""

    def __init__(self) -> None:
        self._seen: dict[str, _Facts] = {}

    def step(
        self,
        cluster: Cluster,
        ask_room: Callable[[], Room],
        grown: set[int],
        taken_back: list[Preemption],
    ) -> set[GangKey]:
        """Return the gangs to try again; append to ``taken_back`` promises to end in the API.

        Rows in ``grown`` count as changed, even if the same amount is free there as before.
        """
        nominated = cluster.precedence.nominated
        if not nominated:
            self._seen.clear()
            return set()
        room = ask_room()
        ended: list[PodEntry] = []
        again: set[GangKey] = set()
        seen: dict[str, _Facts] = {}
        for node in nominated:
            facts = seen[node] = _facts_of(node, cluster)
            if self._seen.get(node) == facts and cluster.nodes.rows.get(node) not in grown:
                continue
            for entry in nominated.on(node):
                if not _suits(entry, node, room):
                    ended.append(entry)
                if entry.gang is not None and node in self._seen:
                    again.add(entry.gang.key)
        taken_back += [promise(e, e.gang.key, "") for e in ended if e.gang is not None]
        for entry in ended:
            cluster.precedence.nominate(entry, "")
        self._seen = seen
        return again


def _facts_of(node: str, cluster: Cluster) -> _Facts:
    table = cluster.nodes
    row = table.rows.get(node)
    if row is None:
        return None, ()
    return table.nodes[row], tuple(table.free[row].tolist())


def _suits(entry: PodEntry, node: str, room: Room) -> bool:
    """Whether the node exists and would take the pod if it were empty."""
    row, pod_class = room.snapshot.table.rows.get(node), entry.pod_class
    if row is None or not mask_of(pod_class, room)[row]:
        return False
    has = room.snapshot.allocatable[row]
    return all(column < len(has) and has[column] >= n for column, n in checked_of(pod_class))
