"""One cycle: place the gangs that are ready, one after the other, each whole or not at all.

In: gangs in queue order, the cluster, the room. Out: for each gang its binds, or that it does not
fit. Called by ``scheduler.decide``; what is placed is assumed in the cluster at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from quorate.core.plan.filters import AttributeMasks
from quorate.core.plan.gang import Demand, DoesNotFit, Placement, place_gang
from quorate.core.plan.min_resources import shortage
from quorate.core.plan.plan import Bind
from quorate.core.plan.room import Room
from quorate.core.policy import Policy
from quorate.core.state.cluster import Cluster
from quorate.core.state.encoding import PodClass
from quorate.core.state.gangs import GangEntry, PodEntry
from quorate.core.state.neighbours import uses_selectors

Members = dict[PodClass, list[PodEntry]]


def members_of(gang: GangEntry, cluster: Cluster) -> Members:
    """Return the gang's waiting members by class: by shape, and by whom their labels concern."""
    neighbours = cluster.neighbours
    members: Members = {}
    for class_id, entries in gang.waiting.items():
        base = cluster.classes.by_id[class_id]
        if neighbours.is_idle:
            members[base] = list(entries.values())
            continue
        for entry in entries.values():
            matched = neighbours.matched(entry.label_set)
            members.setdefault(cluster.classes.matching(base, matched), []).append(entry)
    return members


def demand_of(gang: GangEntry, members: Members) -> Demand:
    """Return what the waiting members ask for."""
    classes = tuple((pod_class, len(entries)) for pod_class, entries in members.items())
    return Demand(classes, gang.need)


def _looks_at_pods(demand: Demand) -> bool:
    return any(uses_selectors(pod_class.shape) for pod_class, _ in demand.classes)


@dataclass(slots=True)
class Cycle:
    """The state of one cycle: the room that is left, and which demands were met with no room.

    ``hopeless`` holds demands that did not fit: room only shrinks within a cycle, so another gang
    that asks for the same need not be tried.
    """

    cluster: Cluster
    policy: Policy
    masks: AttributeMasks
    room: Room
    hopeless: set[Demand] = field(default_factory=set)

    def place(self, gang: GangEntry) -> tuple[Bind, ...]:
        """Place the gang and assume it; no binds when it does not fit whole."""
        members = members_of(gang, self.cluster)
        demand = demand_of(gang, members)
        if demand in self.hopeless:
            return ()
        if gang.avoid:
            return self._place_elsewhere(gang, demand, members)
        gang.is_short = not gang.started and bool(shortage(gang, self.room, self.cluster.resources))
        if gang.is_short:
            return ()
        found = place_gang(demand, self.room, self.policy.packing, self.policy.search_steps_max)
        if isinstance(found, DoesNotFit):
            self.hopeless.add(demand)
            return ()
        self.room = found.room
        if any(pod_class.matched for pod_class in members):
            # Others may have waited for these pods: what they repel, they may also attract.
            self.hopeless = {one for one in self.hopeless if not _looks_at_pods(one)}
        return self._assume(members, found)

    def _place_elsewhere(
        self, gang: GangEntry, demand: Demand, members: Members
    ) -> tuple[Bind, ...]:
        """Place a gang on other nodes than those whose kubelets refused it."""
        rows = self.cluster.nodes.rows
        avoided = [rows[node] for node in gang.avoid if node in rows]
        room = self.room.copy()
        room.free[avoided] = -1  # no slot for any pod, as each takes at least one of ``pods``
        found = place_gang(demand, room, self.policy.packing, self.policy.search_steps_max)
        if isinstance(found, DoesNotFit):
            return ()
        found.room.free[avoided] = self.room.free[avoided]
        self.room = found.room
        return self._assume(members, found)

    def _assume(self, members: Members, placement: Placement) -> tuple[Bind, ...]:
        binds: list[Bind] = []
        for pod_class, pods in placement.pods:
            used = np.flatnonzero(pods)
            rows = np.repeat(used, pods[used]).tolist()
            entries = members[pod_class][: len(rows)]
            self.cluster.assume(entries, rows)
            binds += [
                Bind(entry.pod.uid, entry.pod.namespace, entry.pod.name, entry.node)
                for entry in entries
            ]
        self.room.settle()
        return tuple(binds)
