"""One cycle: place the gangs that are ready, one after the other, each whole or not at all.

In: gangs in queue order, the cluster, the room. Out: for each gang its binds, or that it does not
fit. Called by ``scheduler.decide``; what is placed is assumed in the cluster at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from quorate.core.model import SpreadConstraint
from quorate.core.plan.devices.giving import assume_devices
from quorate.core.plan.filters import AttributeMasks
from quorate.core.plan.gang import Demand, DoesNotFit, Placement, place_gang
from quorate.core.plan.min_resources import shortage
from quorate.core.plan.plan import Bind
from quorate.core.plan.room import Room
from quorate.core.policy import Policy
from quorate.core.state.cluster import Cluster
from quorate.core.state.encoding import PodClass
from quorate.core.state.gangs import GangEntry, PodEntry

Members = dict[PodClass, list[PodEntry]]


def members_of(gang: GangEntry, cluster: Cluster) -> Members:
    """Return the gang's waiting members by class: by shape, labels and claims of devices."""
    neighbours = cluster.neighbours
    members: Members = {}
    for class_id, entries in gang.waiting.items():
        base = cluster.classes.by_id[class_id]
        defaults = _defaults(base, next(iter(entries.values())), cluster)
        if neighbours.is_idle and cluster.devices.has_no_users:
            members[base] = list(entries.values())
            continue
        for entry in entries.values():
            matched = neighbours.matched(entry.label_set)
            ask = cluster.asks.of(entry.pod) if entry.pod.claims else None
            pod_class = cluster.classes.matching(base, matched, defaults, ask)
            members.setdefault(pod_class, []).append(entry)
    return members


def _defaults(base: PodClass, entry: PodEntry, cluster: Cluster) -> tuple[SpreadConstraint, ...]:
    """Return the default spread constraints; pods of a gang and shape have the same owner."""
    if base.profile.packs_gangs or base.shape.spread:
        return ()
    defaults = cluster.spread_defaults.constraints(entry.pod, base.profile)
    for one in defaults:
        cluster.neighbours.host(one.selector)
    return defaults


def demand_of(gang: GangEntry, members: Members) -> Demand:
    """Return what the waiting members ask for."""
    classes = tuple((pod_class, len(entries)) for pod_class, entries in members.items())
    return Demand(classes, gang.need)


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
            if not any(pod_class.shape.affinity for pod_class in members):
                self.hopeless.add(demand)  # else a pod placed later in this cycle could help
            return ()
        self.room = found.room
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
            gives = assume_devices(pod_class, entries, rows, self.room, self.cluster)
            binds += [
                Bind(entry.pod.uid, entry.pod.namespace, entry.pod.name, entry.node, given)
                for entry, given in zip(entries, gives, strict=True)
            ]
        self.room.settle()
        return tuple(binds)
