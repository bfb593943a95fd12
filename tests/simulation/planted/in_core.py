"""Mistakes in what the core does. Each changes one thing by a ``patch``."""

from quorate.core.cluster import cluster
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.devices.devices import Devices
from quorate.core.cluster.gangs import gangs
from quorate.core.cluster.gangs.gangs import GangEntry, Where
from quorate.core.cluster.gangs.owners import Owners
from quorate.core.cluster.labels import neighbours
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.lifecycle import attempts
from quorate.core.lifecycle.nominating import Nominating
from quorate.core.model import changes, plan
from quorate.core.model.journal import Journal
from quorate.core.queue.line import Line
from quorate.core.queue.queue import Queue
from quorate.core.queue.wakeups.blocked import Blocked
from quorate.core.room.devices import outcomes
from quorate.core.room.room import Room
from quorate.core.turn import cycle, waking


def deadline_is_forgotten(patch):
    patch.setattr(attempts, "_roll_back", lambda gang, attempt: [])


def half_bound_gang_is_not_taken_up(patch):
    patch.setattr(attempts.Attempts, "resume", lambda self, gang, before, now_s: None)


def started_gang_is_rolled_back(patch):
    patch.setattr(GangEntry, "started", property(lambda gang: False))


def terminating_members_count(patch):
    _count_as_waiting(patch, Where.TERMINATING)


def gated_members_count(patch):
    _count_as_waiting(patch, Where.GATED)


def _count_as_waiting(patch, such):
    def place_of(pod, entry, ours):
        where = gangs.place_of(pod, entry, ours)
        return Where.WAITING if where is such else where

    patch.setattr("quorate.core.cluster.state.place_of", place_of)


def a_quorum_never_lapses(patch):
    patch.setattr(Cluster, "end_past_life", lambda self, gang: None)


def min_is_off_by_one(patch):
    real = GangEntry.min_count.fget
    patch.setattr(GangEntry, "min_count", property(lambda gang: max(1, real(gang) - 1)))


def members_are_placed_one_by_one(patch):
    patch.setattr(GangEntry, "need", property(lambda gang: 0))
    patch.setattr("quorate.core.turn.verifying.verify_plan", lambda gangs, *_: [[] for _ in gangs])


def room_is_released_before_the_outcome(patch):
    """Room that is assumed is not counted, and the check that would notice it is left out."""
    patch.setattr(NodeTable, "take_many", lambda self, rows, pod_class: None)
    patch.setattr(NodeTable, "release", _release_at_most_what_is_used)
    patch.setattr("quorate.core.turn.verifying.verify_plan", lambda gangs, *_: [[] for _ in gangs])


def verification_is_left_out_and_a_gang_fills_one_node(patch):
    """The planner forgets what it placed in this cycle, and nobody checks it."""
    real = cycle.Cycle._take

    def forgetful(self, one, *placed, **more):
        room = self.room
        real(self, one, *placed, **more)
        node = one.binds[0].node if one.binds else ""
        self.room = room
        one.binds[:] = [plan.Bind(b.uid, b.namespace, b.name, node) for b in one.binds]

    patch.setattr(cycle.Cycle, "_take", forgetful)
    patch.setattr("quorate.core.turn.verifying.verify_plan", lambda gangs, *_: [[] for _ in gangs])


def foreign_pods_are_not_counted(patch):
    real = Cluster.pod_changed

    def only_ours(self, change):
        if change.pod.scheduler in self.scheduler_names:
            real(self, change)

    patch.setitem(cluster._HANDLERS, changes.PodChanged, only_ours)


def wake_up_is_lost(patch):
    """No bucket of blocked gangs is ever looked at again."""
    patch.setattr(Blocked, "with_room", lambda self, totals: [])
    patch.setattr(Blocked, "opened", lambda self: [])
    patch.setattr(Blocked, "is_open", False)


def watched_class_never_wakes(patch):
    """Who watches a class that is short is not told that there are slots enough."""
    patch.setattr(Blocked, "with_room", lambda self, totals: [])


def bucket_passes_over(patch):
    """When one gang of a bucket had its turn, the others are taken for tried."""
    real = Line._next

    def next_and_the_rest_is_passed_over(self):
        key = real(self)
        group = self._queue.blocked._group_of
        for bucket in [one[2] for one in self._woken if one[2].first_group is not None]:
            if key is not None and key not in group and bucket.first is not None:
                self._queue.blocked.failed(bucket.first_group, ())
        return key

    patch.setattr(Line, "_next", next_and_the_rest_is_passed_over)


def label_news_wake_nobody(patch):
    """That nodes are relabelled, tainted, or gone is heard, and nobody is asked."""
    real = waking.news_of

    def without(labels, stirred, **more):
        return real((), stirred, **{**more, "taints": False})

    patch.setattr(waking, "news_of", without)


def back_off_never_ends(patch):
    patch.setattr(Queue, "time_passed", lambda self, now_s: None)
    real = Queue.make_ready

    def not_those_that_back_off(self, keys):
        real(self, [key for key in keys if key not in self.backing_off])

    patch.setattr(Queue, "make_ready", not_those_that_back_off)


def journal_says_that_all_was_settled(patch):
    patch.setattr(attempts.Attempts, "_had_started", lambda self, gang, attempts, before: True)


def journal_leaves_out_what_is_open(patch):
    real = attempts.Attempts.journal

    def journal(self, gangs):
        found = real(self, gangs)
        return Journal(found.by, found.made)

    patch.setattr(attempts.Attempts, "journal", journal)


def devices_are_free_when_their_claim_is_allocated_for_another_pod(patch):
    """What a bind under way may write is forgotten when the claim's first allocation is seen."""
    real = Devices.put_claim

    def put_claim(self, claim):
        real(self, claim)
        key = claim.namespace, claim.name
        for of, uid, _ in self.assumed.all() if claim.allocation is not None else ():
            if of == key:
                occupied = self._occupied(key)
                self.assumed.remove(key, uid)
                self._recount(key, occupied)

    patch.setattr(Devices, "put_claim", put_claim)


def _release_at_most_what_is_used(self, row, pod_class):
    for column, amount in pod_class.demands:
        free = self.free[row, column] + amount
        self.free[row, column] = min(free, self.allocatable[row, column])


def owners_say_nothing(patch):
    patch.setattr(Owners, "of_single", lambda self, namespace, owner, **may: None)


def nobody_waits_for_what_an_owner_says(patch):
    real = Owners.of_single

    def of_single(self, namespace, owner, **may):
        facts = real(self, namespace, owner, **may)
        return facts if facts is not None and facts.meant else None

    patch.setattr(Owners, "of_single", of_single)


def every_bound_pod_is_a_gangs_own(patch):
    patch.setattr(GangEntry, "knows_attempt_of", lambda gang, pod: True)
    patch.setattr("quorate.core.cluster.state.entry_of", lambda key: "")


def a_bind_for_another_gang_counts_at_once(patch):
    real = GangEntry.need.fget

    def need(gang):
        lacks = real(gang)
        return max(0, lacks - gang.counts[Where.RELABELLED]) if lacks else 0

    patch.setattr(GangEntry, "need", property(need))
    patch.setattr(
        GangEntry,
        "assumed",
        property(lambda gang: gang.counts[Where.ASSUMED] + gang.counts[Where.RELABELLED]),
    )


def promises_are_never_looked_at_again(patch):
    patch.setattr(Nominating, "step", lambda *_: set())


def a_search_as_deep_as_the_gang_is_large(patch):
    place = cycle.place_gang_in_turn

    def recursive(demand, *rest, **more):
        if demand.pods > 3:
            raise RecursionError("maximum recursion depth exceeded")
        return place(demand, *rest, **more)

    patch.setattr(cycle, "place_gang_in_turn", recursive)


def a_selector_that_is_not_known_any_more(patch):
    drop = neighbours.Neighbours.drop

    def strict(self, label_set, spec):
        if spec.affinity or spec.anti_affinity:
            raise KeyError("selector")
        drop(self, label_set, spec)

    patch.setattr(neighbours.Neighbours, "drop", strict)


def devices_by_recursion(patch):
    class Deep(outcomes.Outcomes):
        def __getattribute__(self, name):
            if not name.startswith("_") and name not in ("expressions",):
                raise RecursionError("maximum recursion depth exceeded")
            return super().__getattribute__(name)

    patch.setattr("quorate.core.room.rule_cache.Outcomes", Deep)


def tasks_are_dropped(patch):
    patch.setattr(gangs, "lacking", lambda *_, **__: {})
    patch.setattr(cycle, "task_minima_of", lambda _: ())


def rows_that_cannot_be_empty(patch):
    take = Room.take

    def strict(self, pod_class, pods):
        pods[pods > 0][0]
        take(self, pod_class, pods)

    patch.setattr(Room, "take", strict)
