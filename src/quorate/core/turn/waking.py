"""Which gangs a turn tries: those that changed themselves, and those that a change may help.

In: the news of the cluster since the last turn. Out: a ``Line``, which yields gangs in order and
records the outcome of each. Called by ``planning``. A change wakes a gang only if the gang may then
fit: if there are enough slots over all nodes, by all its rules. When the turn's steps run out, the
rest of the work is kept for the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from quorate.core.cluster.arrays import Ints
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.lifecycle.effects import GangOutcome
from quorate.core.model import GangKey, policy
from quorate.core.model.profile import Packing
from quorate.core.model.steps import Steps, costs
from quorate.core.place.members import members_of
from quorate.core.place.min_resources import shortage
from quorate.core.place.tasks import task_minima_of
from quorate.core.preempt.cycle_preemptions import preempts
from quorate.core.queue.line import Line
from quorate.core.queue.queue import Queue
from quorate.core.queue.totals.cycle_totals import CycleTotals
from quorate.core.queue.totals.slots import SlotInputs
from quorate.core.queue.totals.withheld import Withheld
from quorate.core.queue.wakeups.buckets import Bucket, GangClass, GangGroup, short_of
from quorate.core.queue.wakeups.watches import Watches
from quorate.core.room.room import Room
from quorate.core.rules.interests import RESOURCES, TAINTS, Interest
from quorate.core.rules.masks import mask_of
from quorate.core.turn.woken_by import (
    SumPlaces,
    Waiting,
    class_of_its_own,
    gang_class_of,
    interests_of,
    looks_further,
    may_fit,
    news_of,
)


class Waking:
    """Keeps news until a turn has examined the gangs that they affect."""

    def __init__(self, cluster: Cluster, queue: Queue, packing: Packing) -> None:
        self._cluster = cluster
        self._packing = packing
        self._queue = queue
        self._turns = 0
        self._rows_seen = 0
        self._columns_seen = 0
        """The version of the resource columns at the last turn."""
        self._now_s = 0.0
        self.has_news = False
        """Whether a change since the last turn may let pods fit."""
        self._ask_room: Callable[[], Room] | None = None
        self._room_now: Room | None = None
        self._to_check: dict[GangGroup, None] = {}
        """Groups that a change may help, if their rules allow it."""
        self._offered: list[Bucket] = []
        """Buckets without tallies that may have room in this turn."""
        self._sums: Watches[GangKey] = Watches()
        self._places = SumPlaces()
        self._objects: dict[GangKey, int | None] = {}
        """Gangs without pods whose minResources are not free: their watches in ``_sums``.

        None: no node has the missing resource."""

    # Each turn

    def begin(
        self,
        grown: set[int],
        now_s: float,
        *,
        nodes_differ: bool,
        ask_room: Callable[[], Room],
        steps: Steps,
    ) -> Line:
        """Take in the news, and return the line of this turn.

        ``grown`` are rows that may take more, or other, pods than before; ``ask_room`` returns the
        current room.
        """
        self._turns += 1
        self._now_s = now_s
        self._ask_room, self._room_now = ask_room, None
        self._return_offered()
        blocked = self._queue.blocked
        blocked.slots.set_inputs(self._slot_inputs)
        if nodes_differ:
            self._queue.rounds.begin()
        news = self._take_news(grown)
        self.has_news = bool(grown or news)
        for group in blocked.reached(blocked.slots.bring_up_to_date(steps)):
            self._to_check[group] = None
        for group in blocked.interested_in(news):
            self._to_check[group] = None
        if grown:
            self._wake_by_sums(grown)
        totals = CycleTotals(blocked.slots, self._withheld, steps)
        checks = Steps(max(1, min(steps.left, policy.CHECK_STEPS_MAX)))
        self._check(totals, checks)
        if grown or news:
            blocked.note_news()
        others = Steps(max(1, checks.left))  # each turn looks at one bucket at least
        self._offered = list(self._look_at_unwatched(others))
        steps.take(checks.taken + others.taken)
        line = Line(self._turns, self._queue, self._cluster.gangs, totals, steps)
        line.look_at_buckets(self._offered)
        return line

    def is_worth_a_try(self, line: Line, gang: GangEntry) -> bool:
        """Whether a gang may have room; if not, it is blocked together with the gangs of its class.

        A pod that may preempt is tried in any case: the try finds out why it cannot preempt.
        """
        self._forget_object(gang.key)
        if preempts(gang):
            return True
        gang_class = self._gang_class(gang, self._waiting(gang), gang.need)
        if line.may_fit(gang_class):
            return True
        self._queue.block(gang, gang_class)
        return False

    def failed(self, line: Line, gang: GangEntry, one: GangOutcome, room: Room) -> None:
        """Block a gang that was tried, by the pods that still wait; ``room`` is what was left."""
        is_promised = one.preemption is not None
        gang_class = self._gang_class(gang, one.waits_for, one.need, is_promised=is_promised)
        group = line.failed(gang, gang_class)
        if group is not None:
            self._note_failure(group, gang, one.waits_for, room)

    def block_until_own_change(self, gang: GangEntry) -> None:
        """Block a gang until an object of its own changes."""
        self._queue.blocked.failed(self._queue.block(gang, class_of_its_own(gang)), ())

    def note_nothing_to_place(self, gang: GangEntry) -> None:
        """Note a gang with nothing to place. If it has no pods, only its minResources wake it."""
        self._forget_object(gang.key)
        if gang.members:
            return
        short = self._short_in_sum(gang, self._room)
        if short is not None:
            place, wanted = short
            watch = self._sums.add(gang.key, place, wanted) if place >= 0 else None
            self._objects[gang.key] = watch

    def end(self, line: Line) -> bool:
        """End the turn; return whether work is left for which the next turn should come at once."""
        is_more = not line.is_over
        self._return_offered()
        self._ask_room, self._room_now = None, None
        blocked = self._queue.blocked
        blocked.sweep()
        blocked.slots.end_turn()
        is_more |= blocked.is_open or blocked.slots.is_behind or blocked.owed > 0
        return is_more or bool(self._to_check)

    def _return_offered(self) -> None:
        for bucket in self._offered:
            self._queue.blocked.give_back(bucket, was_served=bucket.first is None)
        self._offered = []

    def _forget_object(self, key: GangKey) -> None:
        watch = self._objects.pop(key, None)
        if watch is not None:
            self._sums.remove(watch)

    # What happened

    def _take_news(self, grown: set[int]) -> list[Interest]:
        """Pass the news of rows on to the slot totals; return all other news as interests."""
        cluster = self._cluster
        rows = cluster.nodes.log.since(self._rows_seen)
        self._rows_seen = cluster.nodes.log.position
        nodes = cluster.nodes.take_news()
        news: list[Interest] = []
        if self._columns_seen != cluster.resources.version:
            self._columns_seen, rows = cluster.resources.version, None
            self._forget_columns()
            news.append(RESOURCES)
        self._queue.blocked.slots.note(rows, grown)
        changed_selectors = cluster.neighbours.take_changed_selectors()
        devices, classes = cluster.devices.take_news()
        news += news_of(
            nodes.labels, changed_selectors, taints=nodes.taints, devices=devices or classes
        )
        return news

    def _forget_columns(self) -> None:
        """Wake all that wait for a sum: a column may stand for another resource now."""
        blocked = self._queue.blocked
        for group in blocked.short_in_any_sum():
            blocked.retry(group)
        short = list(self._objects)
        for key in short:
            self._forget_object(key)
        self._queue.make_ready(key for key in short if key in self._cluster.gangs)
        self._places = SumPlaces()

    def _wake_by_sums(self, grown: set[int]) -> None:
        """Wake the gangs whose minResources are now free in sum over their nodes."""
        blocked = self._queue.blocked
        if not (blocked.looks_at_sums or self._objects):
            return
        free = self._places.numbers(self._room, self._watched_places(), grown)
        for group in blocked.reached_in_sum(free):
            blocked.retry(group)
        gangs = self._cluster.gangs
        reached = self._sums.reached(free[None])
        if len(self._objects) > len(gangs):  # some are gone
            reached += [key for key in self._objects if key not in gangs]
        for key in reached:
            self._forget_object(key)
        self._queue.make_ready(reached)

    def _check(self, totals: CycleTotals, steps: Steps) -> None:
        """Wake the groups for which there may be room by all their rules."""
        blocked = self._queue.blocked
        for group in list(self._to_check):
            if steps.are_over:
                return
            del self._to_check[group]
            if not (group.live and group.is_tried) or group.bucket.is_unwatched:
                continue  # buckets without tallies are looked at in rotation, after any news
            short = blocked.lacks(group.bucket, totals, steps)
            if short:
                blocked.watch(group.bucket, short)
            elif not group.looks_further:
                blocked.retry(group)
            else:
                self._check_rules(group, steps)

    def _check_rules(self, group: GangGroup, steps: Steps) -> None:
        """Ask the rules about the first of these gangs; a gang whose class changed is moved.

        If a defect of ours is met here, the gang is made ready: trying it handles the defect.
        """
        while (head := group.head()) is not None and not steps.are_over:
            gang = self._cluster.gangs[head[-1]]
            try:
                if self._is_checked(group, gang, steps):
                    return
            except Exception:
                self._queue.make_ready([gang.key])
        if group.live:
            self._to_check[group] = None

    def _is_checked(self, group: GangGroup, gang: GangEntry, steps: Steps) -> bool:
        """Ask the rules about one of these gangs. Return False if its class changed."""
        queue, room = self._queue, self._room
        steps.take(1 + gang.waits // costs.WOKEN_PODS_PER_STEP)
        waiting = self._waiting(gang)
        gang_class = self._gang_class(gang, waiting, gang.need)
        if gang_class != group.gang_class:
            queue.block(gang, gang_class)
            return False
        steps.take(len(waiting) * (1 + len(room.free) // costs.WOKEN_ROWS_PER_STEP))
        if may_fit(gang_class.classes, gang_class.need, room, self._packing):
            queue.blocked.retry(group)
        else:
            self._note_failure(group, gang, waiting, room)
        return True

    def _look_at_unwatched(self, steps: Steps) -> Iterator[Bucket]:
        """Yield the buckets without tallies that may have room, until the steps run out."""
        blocked = self._queue.blocked
        while blocked.owed > 0 and not steps.are_over:
            bucket = blocked.next_unwatched()
            if bucket is None:
                continue
            slots = [blocked.slots.count(c, bucket.level, steps) for c in bucket.classes]
            if short_of(bucket.counts, bucket.need, slots):
                blocked.give_back(bucket, was_served=True)
            else:
                yield bucket

    # Gangs that failed

    def _note_failure(
        self, group: GangGroup, gang: GangEntry, waiting: Waiting, room: Room
    ) -> None:
        """Note which changes may help a group that has enough slots and yet does not fit."""
        blocked = self._queue.blocked
        short = self._short_in_sum(gang, room)
        if short is not None:
            place, wanted = short
            if place >= 0:
                blocked.short_in_sum(group, place, wanted)
            else:
                blocked.failed(group, (RESOURCES, TAINTS))
            return
        interests: set[Interest] = set()
        for pod_class in waiting:
            interests |= interests_of(pod_class, room)
        group.looks_further = group.gang_class.level is None and any(
            looks_further(pod_class, room) for pod_class in waiting
        )
        blocked.failed(group, tuple(interests))

    def _short_in_sum(self, gang: GangEntry, room: Room) -> tuple[int, int] | None:
        """Return the place of a sum that minResources lack, and how much has to be free.

        Place -1: no node has the resource. None: nothing is lacking.
        """
        if gang.started:
            return None
        columns = self._cluster.resources.columns
        for name, short in shortage(gang, room, self._cluster.resources).items():
            column = columns.get(name)
            if column is None:
                return -1, short.wanted
            place = self._places.place_of(short.nodes, column, self._watched_places)
            return place, short.threshold
        return None

    def _watched_places(self) -> set[int]:
        return self._queue.blocked.sum_places | self._sums.places

    def _waiting(self, gang: GangEntry) -> Waiting:
        members = members_of(gang, self._cluster)
        return {pod_class: len(entries) for pod_class, entries in members.items()}

    def _gang_class(
        self, gang: GangEntry, waiting: Waiting, need: int, *, is_promised: bool = False
    ) -> GangClass:
        may_preempt = preempts(gang) and not _never_preempts(gang)
        level = gang.priority if may_preempt else None
        task_minima = task_minima_of(gang) if need else ()
        memory = gang.memory
        is_alone = is_promised or bool(memory.avoid and memory.avoided(self._now_s))
        return gang_class_of(
            gang, waiting, need, task_minima, self._cluster, level, is_alone=is_alone
        )

    # Room, and what is withheld of it

    @property
    def _room(self) -> Room:
        """The room at the beginning of the turn."""
        if self._room_now is None:
            assert self._ask_room is not None, "a turn has begun"
            self._room_now = self._ask_room()
        return self._room_now

    def _slot_inputs(self) -> SlotInputs:
        room, bound = self._room, self._cluster.precedence.bound
        width = room.free.shape[1]

        def below(priority: int, rows: Ints) -> Ints:
            if bound is None:
                return np.zeros((len(rows), width), np.int64)
            return bound.below(priority, rows, width)

        return SlotInputs(
            room.free,
            lambda pod_class: mask_of(pod_class, room),
            below,
            room.snapshot.table.attributes_log,
            self._cluster.resources.version,
        )

    def _withheld(self) -> Withheld:
        """Return the room of reservations, and the room promised to nominated pods."""
        cluster = self._cluster
        rows, nominated = cluster.nodes.rows, cluster.precedence.nominated
        found = [
            (reservation.priority, rows[reservation.node], reservation.pod_class.demands)
            for reservation in cluster.reservations
            if reservation.node in rows
        ]
        found += [
            (entry.pod.priority, rows[node], entry.pod_class.demands)
            for node in nominated
            for entry in nominated.on(node)
            if node in rows
        ]
        return Withheld(found, len(cluster.resources.names))


def _never_preempts(gang: GangEntry) -> bool:
    return any(entry.pod.never_preempts for entry in gang.members.values())
