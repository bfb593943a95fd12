"""The minResources gate: the cluster must have room in sum before a gang's first pod may start.

Rule: scheduler-plugins' PreFilter. Free resources of nodes are summed; the gang's own pods do not
count as used, and nothing is asked again for members that have done their work; any shortage holds
the gang. The gate is necessary, not sufficient. Spark and LeaderWorkerSet rely on it: their min is
1, and the gang is in minResources.

Unlike there, only nodes count that the members may use: what waiting members ask for must be free
where one of them may run, by all rules about the nodes' attributes; what members ask for that do
not exist yet, on nodes whose taints a member tolerates: they may have other selectors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.nodes.encoding import PodClass, Resources
from quorate.core.room.room import Room, Sums
from quorate.core.rules.masks import mask_of, tolerated_by


class Nodes(NamedTuple):
    """Nodes over which free resources are summed: those that one of the classes may use.

    Without ``by_labels`` the pods need only tolerate the taints. No classes: all nodes, and without
    ``by_labels`` only those that are not cordoned.
    """

    by_labels: bool
    classes: tuple[PodClass, ...] = ()

    @property
    def name(self) -> object:
        """What equal sums have in common."""
        return self.by_labels, frozenset(one.attributes for one in self.classes)

    def in_sum(self, room: Room) -> Sums:
        """Return float64[r]: what is free on them in sum."""
        return room.in_sum(self.name, lambda: self.mask(room))

    def mask(self, room: Room) -> Mask:
        """Return bool[n]: which nodes they are."""
        if not self.classes:
            alive = room.snapshot.alive
            return alive if self.by_labels else alive & ~room.snapshot.unschedulable
        passes = mask_of if self.by_labels else tolerated_by
        found = passes(self.classes[0], room)
        for one in self.classes[1:]:
            found = found | passes(one, room)
        return found


EVERY_NODE, ALL_OPEN = Nodes(by_labels=True), Nodes(by_labels=False)


class Short(NamedTuple):
    """A resource that minResources lack: ``free`` (the gang's own included) of ``wanted``."""

    free: int
    wanted: int
    nodes: Nodes
    threshold: int
    """How much has to be free on these nodes in sum."""
    is_elsewhere: bool
    """Whether more is free on nodes that the members may not use."""


def shortage(gang: GangEntry, room: Room, resources: Resources) -> dict[str, Short]:
    """Return each resource that is short."""
    if gang.spec is None or not gang.spec.min_resources:
        return {}
    own: dict[str, int] = {}
    for entry in gang.members.values():
        if entry.row >= 0 or gang.runs.has_done(entry):
            _add(own, entry.pod_class, 1)
    asked, classes = dict(own), []
    for alike in gang.waiting.values():
        for entry in alike.values():
            classes.append(entry.pod_class)
            _add(asked, entry.pod_class, len(alike))
            break
    short = {}
    for name, wanted in gang.spec.min_resources:
        column = resources.columns.get(name)
        known = min(wanted, asked.get(name, 0))
        for nodes, least in _sums(classes, known, wanted):
            here = int(nodes.in_sum(room)[column]) if column is not None else 0
            mine = own.get(name, 0)
            if mine + here < least:
                there = int(ALL_OPEN.in_sum(room)[column]) if column is not None else 0
                short[name] = Short(mine + here, wanted, nodes, least - mine, there > here)
                break
    return short


def _sums(classes: list[PodClass], known: int, wanted: int) -> Iterable[tuple[Nodes, int]]:
    """Yield nodes, and how much of a resource they must have free, or the gang's own hold."""
    if not classes:
        yield ALL_OPEN, wanted
        return
    yield Nodes(True, tuple(classes)), known
    yield Nodes(False, tuple(classes)), wanted


def _add(amounts: dict[str, int], pod_class: PodClass, pods: int) -> None:
    for name, amount in pod_class.asked:
        amounts[name] = amounts.get(name, 0) + pods * amount
