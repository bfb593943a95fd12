"""Promises of room to waiting pods: each is looked at again when its node changes, or ends.

In: the cluster's nominations and the room. Out: pods to try again, and promises that are taken
back. Called by ``lifecycle.advancing``. A promise whose node stops to suit (it is gone, relabelled,
tainted, cordoned) holds room that nobody can use, so it ends.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.nodes.slots import checked_of
from quorate.core.model import GangKey, Node
from quorate.core.model.plan import Preemption
from quorate.core.preempt.clearing import promise
from quorate.core.room.room import Room
from quorate.core.rules.masks import mask_of

_Facts = tuple[Node | None, tuple[int, ...]]
"""A node, and how much of each resource is free there."""


class Nominating:
    """What the nodes of promises were like when they were last looked at."""

    def __init__(self) -> None:
        self._seen: dict[str, _Facts] = {}

    def step(
        self,
        cluster: Cluster,
        ask_room: Callable[[], Room],
        grown: set[int],
        taken_back: list[Preemption],
    ) -> set[GangKey]:
        """Return the gangs of pods to try again; add promises to be taken back in the API.

        Rows that have ``grown`` are others now, even if somebody has taken as much there since.
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
    """Whether the node is there, and what it is like lets the pod in, were it empty."""
    row, pod_class = room.snapshot.table.rows.get(node), entry.pod_class
    if row is None or not mask_of(pod_class, room)[row]:
        return False
    has = room.snapshot.allocatable[row]
    return all(column < len(has) and has[column] >= n for column, n in checked_of(pod_class))
