"""One cycle: place the gangs that are ready, one after the other, each whole or not at all.

In: gangs in queue order, the cluster, the room. Out: for each gang its binds, or that it does not
fit. Called by ``scheduler.decide``; what is placed is assumed in the cluster at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from quorate.core.plan.fill import fill
from quorate.core.plan.filters import AttributeMasks
from quorate.core.plan.gang import Demand, DoesNotFit, place_gang
from quorate.core.plan.held_room import end_taken, pods_of, withheld_from, without
from quorate.core.plan.min_resources import shortage
from quorate.core.plan.plan import Bind
from quorate.core.plan.room import Room
from quorate.core.policy import Policy
from quorate.core.state.cluster import Cluster
from quorate.core.state.encoding import Ints, PodClass
from quorate.core.state.gangs import GangEntry
from quorate.core.state.holds import Hold


def demand_of(gang: GangEntry, cluster: Cluster) -> Demand:
    """Return what the gang's waiting members ask for."""
    classes = tuple(
        (cluster.classes.by_id[class_id], len(entries))
        for class_id, entries in gang.waiting.items()
    )
    return Demand(classes, gang.need)


@dataclass(slots=True)
class Cycle:
    """The state of one cycle: the room that is left, and which demands were met with no room.

    ``hopeless`` holds demands that did not fit, with the number of holds that were withheld: room
    only shrinks within a cycle, so another gang that asks for the same need not be tried. What is
    withheld from gangs without holds of their own differs by priority alone, so its number says
    what it is. Both are forgotten when a hold ends.
    """

    cluster: Cluster
    policy: Policy
    masks: AttributeMasks
    room: Room
    hopeless: set[tuple[Demand, int]] = field(default_factory=set)
    _rooms: dict[int, Room] = field(default_factory=dict)
    """The room without what is withheld, by its number of holds; for gangs without own holds."""

    def place(self, gang: GangEntry) -> tuple[Bind, ...]:
        """Place the gang and assume it; no binds when it does not fit whole."""
        holds = self.cluster.holds
        if not holds:
            return self._place(gang, ())
        binds = self._place_on_held(gang)
        for withheld in withheld_from(gang, holds):
            if gang.waits:
                binds += self._place(gang, withheld)
        return binds

    def _place_on_held(self, gang: GangEntry) -> tuple[Bind, ...]:
        """Place replacements where room is held for their likes."""
        own = [hold for hold in self.cluster.holds.of(gang.key) if hold.node not in gang.avoid]
        if not own:
            return ()
        others = withheld_from(gang, self.cluster.holds)[0]
        room = without(self.room, others).copy()  # the tally of this call: ``_assume`` takes too
        placed = []
        for pod_class, pods in pods_of(own, self.room):
            count = len(gang.waiting.get(pod_class.id, ()))
            slots = np.minimum(pods, room.slots(pod_class))
            placed.append((pod_class, fill(pod_class, count, slots, room, self.policy.packing)))
            room.take(*placed[-1])
        return self._assume(gang, placed)

    def _place(self, gang: GangEntry, withheld: Sequence[Hold]) -> tuple[Bind, ...]:
        demand = demand_of(gang, self.cluster)
        has_own = bool(self.cluster.holds.of(gang.key))
        if not has_own and (demand, len(withheld)) in self.hopeless:
            return ()
        room = self._without(withheld, is_common=not has_own)
        if gang.avoid:
            room = self._without_avoided(room, gang)
        else:
            gang.is_short = not gang.started and bool(shortage(gang, room, self.cluster.resources))
            if gang.is_short:
                return ()
        found = place_gang(demand, room, self.policy.packing, self.policy.search_steps_max)
        if isinstance(found, DoesNotFit):
            if not (has_own or gang.avoid):
                self.hopeless.add((demand, len(withheld)))
            return ()
        return self._assume(gang, found.pods, found.room if room is self.room else None)

    def _without(self, withheld: Sequence[Hold], *, is_common: bool) -> Room:
        if not is_common:
            return without(self.room, withheld)
        room = self._rooms.get(len(withheld))
        if room is None:
            room = self._rooms[len(withheld)] = without(self.room, withheld)
        return room

    def _without_avoided(self, room: Room, gang: GangEntry) -> Room:
        """Return the room of other nodes than those whose kubelets refused the gang."""
        rows = self.cluster.nodes.rows
        avoided = [rows[node] for node in gang.avoid if node in rows]
        room = room.copy()
        room.free[avoided] = -1  # no slot for any pod, as each takes at least one of ``pods``
        return room

    def _assume(
        self,
        gang: GangEntry,
        placed: Sequence[tuple[PodClass, Ints]],
        after: Room | None = None,
    ) -> tuple[Bind, ...]:
        """Assume that pods are placed; ``after`` is the room that is left, where it is known."""
        if after is None:
            after = self.room.copy()
            for pod_class, pods in placed:
                after.take(pod_class, pods)
        self.room = after
        self._rooms.clear()
        binds: list[Bind] = []
        held_before = len(self.cluster.holds)
        for pod_class, pods in placed:
            used = np.flatnonzero(pods)
            rows = np.repeat(used, pods[used]).tolist()
            waiting = gang.waiting.get(pod_class.id, {})
            entries = list(islice(waiting.values(), len(rows)))
            self.cluster.assume(entries, rows)
            binds += [
                Bind(entry.pod.uid, entry.pod.namespace, entry.pod.name, entry.node)
                for entry in entries
            ]
        if held_before and (end_taken(self.cluster) or len(self.cluster.holds) < held_before):
            self.hopeless.clear()
        return tuple(binds)
