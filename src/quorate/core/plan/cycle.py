"""One cycle: place the gangs that are ready, one after the other, each whole or not at all.

In: gangs in queue order, the cluster, the room. Out: for each gang its binds, or that it does not
fit. Called by ``scheduler.decide``; what is placed is assumed in the cluster at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from quorate.core.model import SpreadConstraint
from quorate.core.model.storage import ClaimKey
from quorate.core.plan.clearing import Clearings, preempts
from quorate.core.plan.devices.giving import assume_devices
from quorate.core.plan.fill import fill
from quorate.core.plan.filters import AttributeMasks
from quorate.core.plan.gang import Demand, DoesNotFit, place_gang
from quorate.core.plan.held_room import end_taken, pods_of, withheld_from, without
from quorate.core.plan.min_resources import shortage
from quorate.core.plan.nominated import beside, promised_to_others
from quorate.core.plan.pack import constrain_one_another
from quorate.core.plan.plan import Bind, Give, Preemption, Prepare
from quorate.core.plan.room import Room
from quorate.core.plan.single import Singles
from quorate.core.policy import Policy
from quorate.core.state.arrays import Ints
from quorate.core.state.cluster import Cluster
from quorate.core.state.encoding import PodClass
from quorate.core.state.gangs import GangEntry, PodEntry
from quorate.core.state.holds import Hold
from quorate.core.state.wants import Wants, is_kept_for, unbound_claims, wants_of

Members = dict[PodClass, list[PodEntry]]


def members_of(gang: GangEntry, cluster: Cluster) -> Members:
    """Return the gang's waiting members by class: by shape, labels, and claims of both kinds."""
    neighbours, storage = cluster.neighbours, cluster.storage
    members: Members = {}
    with_problems: list[tuple[PodEntry, Wants]] = []
    for class_id, entries in gang.waiting.items():
        base = cluster.classes.by_id[class_id]
        defaults = _defaults(base, next(iter(entries.values())), cluster)
        may_ask = base.shape.extended and cluster.devices.backed
        asks_nothing = cluster.devices.has_no_users and not may_ask
        if neighbours.is_idle and not storage.users and asks_nothing:
            members[base] = list(entries.values())
            continue
        for entry in entries.values():
            wants = wants_of(entry.pod, storage)
            if wants is not None and wants.problems:
                with_problems.append((entry, wants))
                continue
            matched = neighbours.matched(entry.label_set)
            ask = cluster.asks.of(entry.pod)
            pod_class = cluster.classes.matching(base, matched, defaults, wants, ask)
            members.setdefault(pod_class, []).append(entry)
    _add_with_problems(members, with_problems, cluster)
    return members


def _add_with_problems(
    members: Members, found: list[tuple[PodEntry, Wants]], cluster: Cluster
) -> None:
    """Put pods that no node can take for a like problem into one class, named after the first."""
    first: dict[tuple[object, ...], Wants] = {}
    for entry, wants in sorted(found, key=lambda one: one[0].pod.name):
        base = entry.pod_class
        matched = cluster.neighbours.matched(entry.label_set)
        ask = cluster.asks.of(entry.pod)
        kind = base.id, matched, ask, *((one.rule, one.kind) for one in wants.problems)
        named = first.setdefault(kind, wants)
        pod_class = cluster.classes.matching(base, matched, wants=named, ask=ask)
        members.setdefault(pod_class, []).append(entry)


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

    ``hopeless`` holds demands that did not fit, with the number of holds that were withheld: room
    only shrinks within a cycle, so another gang that asks for the same need not be tried. What is
    withheld from gangs without holds of their own differs by priority alone, so its number says
    what it is. Both are forgotten when a hold ends. Where room is promised to nominated pods, the
    priority is part of it.
    """

    cluster: Cluster
    policy: Policy
    masks: AttributeMasks
    room: Room
    singles: Singles
    hopeless: set[tuple[Demand, int, int | None]] = field(default_factory=set)
    clearings: Clearings = field(init=False)
    _rooms: dict[int, Room] = field(default_factory=dict)
    """The room without what is withheld, by its number of holds; for gangs without own holds."""

    def __post_init__(self) -> None:
        """Begin with no preemption."""
        self.clearings = Clearings(self.cluster, self.cluster.precedence.next_start)

    def preempt(self, gang: GangEntry) -> Preemption | None:
        """Promise a pod that did not fit room that others have to leave; see ``Clearings``."""
        if not preempts(gang):
            return None
        ((pod_class, _),) = members_of(gang, self.cluster).items()
        holds = self.cluster.holds
        room = without(self.room, withheld_from(gang, holds)[-1]) if holds else self.room
        rows = self.cluster.nodes.rows
        avoided = [rows[node] for node in gang.avoid if node in rows]
        return self.clearings.clear_for(gang, pod_class, room, avoided)

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
        held = {held_class.base: pods for held_class, pods in pods_of(own, self.room)}
        members = members_of(gang, self.cluster)
        placed = []
        for pod_class, entries in members.items():
            if pod_class.base not in held:
                continue
            slots = np.minimum(held[pod_class.base], room.slots(pod_class))
            if constrain_one_another(pod_class, room):
                slots = slots.clip(max=1)
            pods = fill(pod_class, len(entries), slots, room, self.policy.packing)
            room.take(pod_class, pods)
            held[pod_class.base] = held[pod_class.base] - pods
            placed.append((pod_class, pods))
        return self._assume(members, placed, room, is_whole=False)

    def _place(self, gang: GangEntry, withheld: Sequence[Hold]) -> tuple[Bind, ...]:
        members = members_of(gang, self.cluster)
        demand = demand_of(gang, members)
        has_own = bool(self.cluster.holds.of(gang.key))
        nominated = self.cluster.precedence.nominated
        promised = promised_to_others(gang.priority, self.cluster, gang) if nominated else {}
        priority = gang.priority if nominated else None
        is_common = not has_own and not (nominated and nominated.has(gang))
        if is_common and (demand, len(withheld), priority) in self.hopeless:
            return ()
        room = self._without(withheld, is_common=not has_own)
        if gang.avoid:
            room = self._without_nodes(room, gang.avoid)
        elif gang.shun:
            room = self._without_nodes(room, gang.shun)
        elif gang.key.is_single and not withheld and not demand.classes[0][0].profile.packs_gangs:
            return self._place_single(members, demand, priority, is_common=is_common)
        else:
            gang.is_short = not gang.started and bool(shortage(gang, room, self.cluster.resources))
            if gang.is_short:
                return ()
        room = beside(room, promised, list(members), self.cluster)
        found = place_gang(demand, room, self.policy.packing, self.policy.search_steps_max)
        if isinstance(found, DoesNotFit):
            if gang.shun:  # rather there than nowhere
                gang.shun = frozenset()
                return self._place(gang, withheld)
            if is_common and not gang.avoid:
                self._give_up(demand, withheld, priority)
            return ()
        gang.shun = frozenset()
        return self._assume(members, found.pods, found.room, is_whole=room is self.room)

    def _give_up(self, demand: Demand, withheld: Sequence[Hold], priority: int | None) -> None:
        """Note that the demand is not met, unless a pod placed later in this cycle may help it."""
        if not any(c.shape.affinity or c.spread for c, _ in demand.classes):
            self.hopeless.add((demand, len(withheld), priority))

    def _place_single(
        self, members: Members, demand: Demand, priority: int | None, *, is_common: bool
    ) -> tuple[Bind, ...]:
        """Place a pod of no gang where kube-scheduler would."""
        ((pod_class, (entry,)),) = members.items()
        row = self.singles.best(entry, pod_class, self.room, self.cluster)
        if row is None:
            if is_common:
                self._give_up(demand, (), priority)
            return ()
        rows = np.array([row])
        self.room.take_at(pod_class, rows, np.ones(1, np.int64), assumes=True)
        self.cluster.assume([entry], [row])
        [given] = assume_devices(pod_class, [entry], [row], self.room, self.cluster)
        self.room.settle()
        self._rooms.clear()
        self.clearings.changed(rows.tolist())
        return (self._bind(entry, pod_class, row, set(), given),)

    def _without(self, withheld: Sequence[Hold], *, is_common: bool) -> Room:
        if not is_common:
            return without(self.room, withheld)
        room = self._rooms.get(len(withheld))
        if room is None:
            room = self._rooms[len(withheld)] = without(self.room, withheld)
        return room

    def _without_nodes(self, room: Room, nodes: Iterable[str]) -> Room:
        """Return the room of other nodes than those where the gang failed before."""
        rows = self.cluster.nodes.rows
        avoided = [rows[node] for node in nodes if node in rows]
        room = room.copy()
        room.free[avoided] = -1  # no slot for any pod, as each takes at least one of ``pods``
        return room

    def _assume(
        self,
        members: Members,
        placed: Sequence[tuple[PodClass, Ints]],
        after: Room,
        *,
        is_whole: bool,
    ) -> tuple[Bind, ...]:
        """Assume that pods are placed. ``after`` is what they leave of the room that was looked at.

        That is all of the room, or ``is_whole`` is false: then only what was chosen for claims is
        taken from it.
        """
        if not is_whole:
            left = self.room.copy()
            for pod_class, pods in placed:
                left.take(pod_class, pods)
            left.adopt_choices(after)
            after = left
        self.room = after
        self._rooms.clear()
        binds: list[Bind] = []
        held_before = len(self.cluster.holds)
        prepared: set[ClaimKey] = set()
        for pod_class, pods in placed:
            used = np.flatnonzero(pods)
            rows = np.repeat(used, pods[used]).tolist()
            entries = members[pod_class][: len(rows)]
            self.cluster.assume(entries, rows)
            gives = assume_devices(pod_class, entries, rows, self.room, self.cluster)
            self.clearings.changed(None)  # other pods of the gang are no victims for a while
            for entry, row, given in zip(entries, rows, gives, strict=True):
                binds.append(self._bind(entry, pod_class, row, prepared, given))
        self.room.settle()
        if held_before and (end_taken(self.cluster) or len(self.cluster.holds) < held_before):
            self.hopeless.clear()
        return tuple(binds)

    def _bind(
        self,
        entry: PodEntry,
        pod_class: PodClass,
        row: int,
        prepared: set[ClaimKey],
        given: tuple[Give, ...],
    ) -> Bind:
        pod = entry.pod
        prepare: tuple[Prepare, ...] = ()
        if pod_class.wants is not None and pod_class.wants.unbound:
            chosen = self.room.volumes.take_chosen(pod_class, row)
            prepare = self._prepare(entry, chosen, prepared)
        return Bind(pod.uid, pod.namespace, pod.name, entry.node, prepare, given)

    def _prepare(
        self, entry: PodEntry, chosen: tuple[str, ...], prepared: set[ClaimKey]
    ) -> tuple[Prepare, ...]:
        """Return what binds the pod's claims to the chosen volumes, or has these made (``""``)."""
        storage = self.cluster.storage
        found = []
        for claim, name in zip(unbound_claims(entry.pod, storage), chosen, strict=True):
            if claim.key in prepared:
                continue  # another member has it
            prepared.add(claim.key)
            volume = storage.volumes[name] if name else None
            found.append(
                Prepare(
                    claim.namespace,
                    claim.name,
                    claim.uid,
                    entry.node,
                    name,
                    version=volume.version if volume else "",
                    marks=volume is not None and volume.claim is None,
                    written=is_kept_for(volume.claim, claim)
                    if volume
                    else claim.selected_node == entry.node,
                )
            )
        storage.assume(entry.pod.uid, [(one.key, one.volume, one.node) for one in found])
        return tuple(found)
