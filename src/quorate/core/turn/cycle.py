"""One cycle: place the gangs that are ready, one after the other, each whole or not at all.

In: gangs in queue order, the cluster, the time. Out: one ``GangOutcome`` for each gang. Called by
``planning``. The cycle keeps its own room, reservations and promises and only reads the cluster, so
the same cycle may run twice, or just to answer a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry
from quorate.core.cluster.gangs.reservation import Reservation
from quorate.core.cluster.gangs.reservations import Reservations
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.lifecycle.attempt_numbers import AttemptNumbers
from quorate.core.lifecycle.device_claim_writes import claim_writes, take_backs
from quorate.core.lifecycle.effects import GangOutcome, NextPlace
from quorate.core.lifecycle.stale_claims import stale_selections
from quorate.core.lifecycle.volume_claim_writes import prepares
from quorate.core.model.plan import Bind, Prepare
from quorate.core.model.policy import Policy
from quorate.core.model.steps import OutOfStepsError, Steps, costs
from quorate.core.model.storage import ClaimKey
from quorate.core.place.gang import DoesNotFit, Unfinished, place_gang_in_turn
from quorate.core.place.greedy import Demand, Placement
from quorate.core.place.members import Members, demand_of, members_of
from quorate.core.place.min_resources import shortage
from quorate.core.place.one_pod.nominated import room_less_nominated
from quorate.core.place.one_pod.single import Singles
from quorate.core.place.packing.fill import fill
from quorate.core.place.packing.pack import constrain_one_another
from quorate.core.place.search.joint import OpenSearches
from quorate.core.place.tasks import quorum_first, task_minima_of
from quorate.core.preempt.cycle_preemptions import CyclePreemptions, preempts
from quorate.core.preempt.victim_searches import VictimSearches
from quorate.core.room.promises import Promises
from quorate.core.room.reserved_room import end_taken, pods_of, withheld_from, without
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import pod_slots


@dataclass(slots=True)
class _Try:
    """One gang while it is tried, and the members of it that this cycle has placed."""

    gang: GangEntry
    avoid: frozenset[str]
    avoid_if_possible: frozenset[str]
    searches: bool
    binds: list[Bind] = field(default_factory=list)
    placed: set[str] = field(default_factory=set)
    """Uids of the members that are placed."""
    prepared: set[ClaimKey] = field(default_factory=set)
    """Claims that the placed members have prepared."""
    is_unfinished: bool = False
    """Whether the search for a joint placement has to continue in a later turn."""

    @property
    def waits(self) -> int:
        """The number of members that could still be placed."""
        return self.gang.waits - len(self.placed)

    @property
    def need(self) -> int:
        """The number of members that have to be placed at once; see ``GangEntry.need``."""
        return max(0, self.gang.need - len(self.placed))


@dataclass(slots=True)
class Cycle:
    """The state of one cycle: the room that is left, and the demands that did not fit.

    ``hopeless`` has failed demands, each with the number of reservations withheld and, if room is
    promised, the priority. Room only shrinks, so they stay hopeless until a reservation ends.
    """

    cluster: Cluster
    policy: Policy
    rule_cache: RuleCache
    room: Room
    singles: Singles
    now_s: float
    attempts: AttemptNumbers
    steps: Steps
    searches: OpenSearches
    victim_searches: VictimSearches
    hopeless: set[tuple[Demand, int, int | None]] = field(default_factory=set)
    reservations: Reservations = field(init=False)
    promises: Promises = field(init=False)
    preemptions: CyclePreemptions = field(init=False)
    _rooms: dict[int, Room] = field(default_factory=dict)
    """The room left, by the number of reservations withheld; for gangs without reservations."""

    def __post_init__(self) -> None:
        """Begin with the cluster's reservations and promises."""
        start = self.cluster.precedence.next_start
        self.reservations = self.cluster.reservations.copy()
        self.promises = Promises.of(self.cluster)
        self.preemptions = CyclePreemptions(
            self.promises, self.searches, self.victim_searches, start, start
        )

    def skip(self, gang: GangEntry) -> GangOutcome:
        """Return the outcome of a gang that cannot have room and is not tried."""
        undo, backs = stale_selections(gang, self.cluster), tuple(take_backs(gang, self.cluster))
        return GangOutcome(gang.key, passed_gates=True, undo=undo, take_backs=backs)

    def try_gang(self, gang: GangEntry, *, preempts_more: bool, searches: bool) -> GangOutcome:
        """Place a gang's waiting members, or find out what they wait for.

        ``preempts_more`` is false when enough pods were promised room in this turn; ``searches``
        says whether a joint search may begin or continue. Raises ``OutOfStepsError``.
        """
        one = _Try(gang, gang.memory.avoided(self.now_s), gang.memory.avoid_if_possible, searches)
        self._place_whole(one)
        outcome = GangOutcome(gang.key, passed_gates=True)
        outcome.ends_avoidance = one.avoid_if_possible != gang.memory.avoid_if_possible
        if one.binds:
            outcome.binds = self.attempts.plan(gang, tuple(one.binds), self.now_s)
            self.promises.placed.add(gang.key)
        else:
            outcome.undo = stale_selections(gang, self.cluster)
        if not self._has_ended(one):
            outcome.next_place = NextPlace.SEARCHED
        elif one.waits:
            if not one.binds:
                outcome.take_backs = tuple(take_backs(gang, self.cluster))
            self._wait(one, outcome, preempts_more=preempts_more)
        return outcome

    def _wait(self, one: _Try, outcome: GangOutcome, *, preempts_more: bool) -> None:
        """Preempt for the members that still wait, if the gang may; note what they wait for."""
        gang = one.gang
        does_preempt = preempts(gang)
        if does_preempt and not preempts_more:
            outcome.next_place = NextPlace.READY
            return
        members = members_of(gang, self.cluster, one.placed)
        if does_preempt:
            ((pod_class, _),) = members.items()
            held = withheld_from(gang, self.reservations)[-1] if self.reservations else []
            rows = self.cluster.nodes.rows
            avoided = [rows[node] for node in one.avoid if node in rows]
            room = without(self.room, held)
            self.steps.take(1 + len(room.free) // costs.VICTIM_NODES_PER_STEP)
            found = self.preemptions.preempt_for(gang, pod_class, room, avoided)
            if found.begins_anew:
                outcome.next_place = NextPlace.SEARCHED
                return
            outcome.preemption = found.preemption
            outcome.preemption_message = found.message
        outcome.next_place = NextPlace.BLOCKED
        outcome.waits_for = {pod_class: len(entries) for pod_class, entries in members.items()}
        outcome.need = one.need

    def _place_whole(self, one: _Try) -> None:
        """Place the gang; if the steps run out meanwhile, restore the cycle and raise.

        So placement writes to copies of room and reservations, which then replace the originals.
        """
        room, reservations = self.room, self.reservations
        try:
            self._place_gang(one)
        except OutOfStepsError:
            self.room, self.reservations = room, reservations
            self._rooms.clear()
            self.hopeless.clear()  # some demands failed only beside pods that are now taken back
            raise
        if self.promises.nominated:
            for uid in one.placed:
                self.promises.nominated.discard(self.cluster.pods[uid])

    def _place_gang(self, one: _Try) -> None:
        """Place the gang in this cycle's room: whole, or not at all."""
        if not self.reservations:
            self._place(one, ())
            return
        self._place_on_reserved(one)
        for withheld in withheld_from(one.gang, self.reservations):
            if one.waits and not one.is_unfinished:
                self._place(one, withheld)

    def _has_ended(self, one: _Try) -> bool:
        """Whether all searches for the gang are over, and none missed room that is new since.

        The results of finished searches are kept until all are over.
        """
        key = one.gang.key
        if one.is_unfinished and not one.binds:
            return False
        is_outdated = not one.binds and self.searches.are_outdated(key)
        self.searches.end(key)
        return not is_outdated

    def _place_on_reserved(self, one: _Try) -> None:
        """Place replacements in the gang's own reservations for pods of the same class."""
        gang = one.gang
        own = [each for each in self.reservations.of(gang.key) if each.node not in one.avoid]
        if not own:
            return
        others = withheld_from(gang, self.reservations)[0]
        room = without(self.room, others).copy()  # for this call's count: ``_take`` takes as well
        held = {held_class.base: pods for held_class, pods in pods_of(own, self.room)}
        members = members_of(gang, self.cluster, one.placed)
        placed = []
        for pod_class, entries in members.items():
            if pod_class.base not in held:
                continue
            slots = np.minimum(held[pod_class.base], pod_slots(pod_class, room))
            if constrain_one_another(pod_class, room):
                slots = slots.clip(max=1)
            pods = fill(pod_class, len(entries), slots, room, self.policy.packing)
            room.take(pod_class, pods)
            held[pod_class.base] = held[pod_class.base] - pods
            placed.append((pod_class, pods))
        self._take(one, members, placed, room, is_whole=False)

    def _place(self, one: _Try, withheld: Sequence[Reservation]) -> None:
        gang, nominated = one.gang, self.promises.nominated
        if self._lacks_resources(one, withheld):
            return
        members = members_of(gang, self.cluster, one.placed)
        demand = demand_of(members, one.need, task_minima_of(gang))
        has_own = bool(self.reservations.of(gang.key))
        promised = self.promises.to_others(gang.priority, gang)
        priority = gang.priority if nominated else None
        is_common = not has_own and not (nominated and nominated.has(gang))
        if is_common and (demand, len(withheld), priority) in self.hopeless:
            return
        elsewhere = one.avoid or one.avoid_if_possible
        if self._is_placed_singly(gang, demand) and not withheld and not elsewhere:
            self._place_single(one, members, demand, priority, is_common=is_common)
            return
        room = self._without(withheld, is_common=not has_own)
        if elsewhere:
            room = self._without_nodes(room, elsewhere)
        room = room_less_nominated(room, promised, list(members), self.cluster)
        found = self._find(one, demand, room, len(withheld))
        if isinstance(found, Unfinished):
            return
        if isinstance(found, DoesNotFit):
            if one.avoid_if_possible and not one.avoid:  # an avoided node is better than none
                one.avoid_if_possible = frozenset()
                self._place(one, withheld)
            elif is_common and not one.avoid and not self.searches.are_outdated(gang.key):
                self._give_up(demand, withheld, priority)  # the search has seen the current room
            return
        one.avoid_if_possible = frozenset()
        before = len(one.binds)
        self._take(one, members, found.pods, found.room, is_whole=room is self.room)
        new = tuple(one.binds[before:])
        one.binds[before:] = quorum_first(new, demand.task_minima, gang, self.cluster)

    def _lacks_resources(self, one: _Try, withheld: Sequence[Reservation]) -> bool:
        """Whether minResources hold back a gang that has not started; avoided nodes count too."""
        gang = one.gang
        if gang.spec is None or not gang.spec.min_resources:
            return False
        room = self._without(withheld, is_common=not self.reservations.of(gang.key))
        return not gang.started and bool(shortage(gang, room, self.cluster.resources))

    def _find(
        self, one: _Try, demand: Demand, room: Room, withheld: int
    ) -> Placement | DoesNotFit | Unfinished:
        """Search places for all needed members; ``Unfinished`` if the steps run out."""
        key, searches = one.gang.key, self.searches
        part = withheld, bool(one.avoid or one.avoid_if_possible)
        found = place_gang_in_turn(
            demand,
            room,
            self.policy.packing,
            self.policy.search_steps_max,
            self.steps,
            searches.of(key, part),
            searches=one.searches or not len(searches),
        )
        if isinstance(found, Unfinished):
            one.is_unfinished = True
            if found.search is not None:
                searches.keep(key, part, found.search)
        return found

    @staticmethod
    def _is_placed_singly(gang: GangEntry, demand: Demand) -> bool:
        """Whether it is a pod without a gang, to be placed where kube-scheduler would place it."""
        return gang.key.is_single and not demand.classes[0][0].profile.packs_gangs

    def _give_up(
        self, demand: Demand, withheld: Sequence[Reservation], priority: int | None
    ) -> None:
        """Note that a demand does not fit, unless pods placed later in this cycle may help it."""
        if not any(c.spec.affinity or c.spread for c, _ in demand.classes):
            self.hopeless.add((demand, len(withheld), priority))

    def _place_single(
        self,
        one: _Try,
        members: Members,
        demand: Demand,
        priority: int | None,
        *,
        is_common: bool,
    ) -> None:
        """Place a pod without a gang where kube-scheduler would."""
        ((pod_class, (entry,)),) = members.items()
        self.steps.take()
        row = self.singles.best(entry, pod_class, self.room, self.promises)
        if row is None:
            if is_common:
                self._give_up(demand, (), priority)
            return
        if pod_class.device_needs is not None:  # the turn may end while its devices are chosen
            self.room = self.room.copy()
        self.room.take_at(pod_class, np.array([row]), np.ones(1, np.int64))
        self._note_placed(one, pod_class, [entry], [row])
        self._rooms.clear()
        self.preemptions.changed([row])

    def _without(self, withheld: Sequence[Reservation], *, is_common: bool) -> Room:
        if not is_common:
            return without(self.room, withheld)
        room = self._rooms.get(len(withheld))
        if room is None:
            room = self._rooms[len(withheld)] = without(self.room, withheld)
        return room

    def _without_nodes(self, room: Room, nodes: Iterable[str]) -> Room:
        """Return a copy of the room in which the nodes where the gang failed before are closed."""
        rows = self.cluster.nodes.rows
        room = room.copy()
        room.close([rows[node] for node in nodes if node in rows])
        return room

    def _take(
        self,
        one: _Try,
        members: Members,
        placed: Sequence[tuple[PodClass, Ints]],
        after: Room,
        *,
        is_whole: bool,
    ) -> None:
        """Take the room of placed pods. ``after`` is what they leave of the room that was searched.

        If ``is_whole``, that was all room, and ``after`` replaces it. Otherwise only the choices
        for claims are adopted from it.
        """
        if not is_whole:
            left = self.room.copy()
            for pod_class, pods in placed:
                left.take(pod_class, pods)
            left.adopt_choices(after)
            after = left
        self.room = after
        self._rooms.clear()
        self.preemptions.changed(None)  # the gang's other pods cannot be victims for a while
        held_before = len(self.reservations)
        if held_before:
            self.reservations = self.reservations.copy()
        for pod_class, pods in placed:
            used = np.flatnonzero(pods)
            rows = np.repeat(used, pods[used]).tolist()
            self._note_placed(one, pod_class, members[pod_class][: len(rows)], rows)
        if held_before and (
            end_taken(self.reservations, self.room) or len(self.reservations) < held_before
        ):
            self.hopeless.clear()

    def _note_placed(
        self,
        one: _Try,
        pod_class: PodClass,
        entries: Sequence[PodEntry],
        rows: Sequence[int],
    ) -> None:
        """Add the binds of placed pods to the try, and count them in the reservations."""
        room, storage = self.room, self.cluster.storage
        names = {row: room.snapshot.node(row).name for row in set(rows)}
        nodes, uids = [names[row] for row in rows], [entry.pod.uid for entry in entries]
        gives = claim_writes(pod_class, entries, rows, room, self.cluster)
        writes: Sequence[tuple[Prepare, ...]] = [()] * len(entries)
        if pod_class.volume_needs is not None and pod_class.volume_needs.unbound:
            writes = [
                prepares(entry, pod_class, row, room, one.prepared, storage)
                for entry, row in zip(entries, rows, strict=True)
            ]
        one.binds += [
            Bind(one.pod.uid, one.pod.namespace, one.pod.name, node, prepare, given)
            for one, node, prepare, given in zip(entries, nodes, writes, gives, strict=True)
        ]
        one.placed.update(uids)
        if entries and self.reservations:
            self.reservations.note_assumed(one.gang.key, uids, nodes, entries[0].pod_class)
