"""Promises broken on purpose: each mutation is a mistake that somebody could make in the product.

A mutation gets a ``MonkeyPatch`` and changes one thing of the commit, the queue, the state or the
watch. ``found_by`` names the promises of which at least one has to be found broken. Mistakes that
few seeds meet have tests of their own: a new list that forgets nothing, a hold of a finished gang.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from quorate.core.cluster import cluster
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.devices.devices import Devices
from quorate.core.cluster.gangs import gangs
from quorate.core.cluster.gangs.gangs import GangEntry, Where
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.lifecycle import attempts
from quorate.core.model import changes, plan
from quorate.core.model.changes import BindFailed, BindFailure, PodBound
from quorate.core.model.journal import Journal
from quorate.core.queue.line import Line
from quorate.core.queue.queue import Queue
from quorate.core.queue.wakeups.blocked import Blocked
from quorate.core.scheduler import Scheduler
from quorate.core.turn import cycle, waking
from quorate.shell.app import App
from quorate.shell.commit import binder
from quorate.shell.kube.lists.reflector import Reflector
from quorate.shell.lease.elector import Elector
from quorate.shell.watch.feed import Feed
from quorate.shell.watch.pod import spec as pod_spec
from tests.unit.core.gangs.test_journal import (
    test_a_sealing_bind_may_not_be_sent_when_it_would_seal_nothing as sealing_may_not_be_sent,
)

UID = "each bind was decided on and names its pod's uid"
WAITING_ONLY = "only pods that wait are placed"
QUORUM = "no gang starts below its min"
PARTIAL = "no gang stays bound in part"
ROOM = "no node is filled over its allocatable"
LEASE = "only the holder of the lease binds and evicts"
LOOK_UP = "a lost answer is looked up before the pod goes elsewhere"
FITS = "a gang that fits is placed"
MARKED = "only a quorate gang is marked as started"
STARTED = "a started gang is never torn down"
NODES = "only nodes that take pods are used"
LOGGED = "no task fails unseen"
TOLD = "every pod is bound or has a reason"
STATUS = "status follows from live objects"
APART = "members that stay apart do not meet"
TRUTH = "the leader knows what is true"
TWICE = "no device is given twice"


class Mutation(NamedTuple):
    apply: Callable[[pytest.MonkeyPatch], None]
    found_by: tuple[str, ...] = ()
    first_seed: int = 1000
    """Where few seeds find it: one that does."""
    themes: tuple[str, ...] = ()
    fails: Callable[[], None] | None = None
    """A test of the core that fails, where worlds meet it too rarely to be relied on."""


def bind_without_uid(patch):
    make = binder._binding

    def without(job):
        body = make(job)
        del body["metadata"]["uid"]
        return body

    patch.setattr(binder, "_binding", without)


def conflict_is_success(patch):
    async def believe(self, bind, message, otherwise):
        return PodBound(bind.uid, bind.node)

    patch.setattr(binder.Binder, "_read_back", believe)


def lost_answer_is_failure(patch):
    real = binder.Binder._read_back

    async def give_up(self, job):
        bind = job.bind
        path = binder.pod_path(bind.namespace, bind.name, "binding")
        try:
            await self._client.post(path, binder._binding(job))
        except binder.TRANSIENT as error:
            return BindFailed(bind.uid, bind.node, BindFailure.REFUSED, error.message)
        except binder.NotFound:
            return BindFailed(bind.uid, bind.node, BindFailure.GONE)
        except binder.Conflict as error:
            return await real(self, bind, error.message, BindFailure.REFUSED)
        return PodBound(bind.uid, bind.node)

    patch.setattr(binder.Binder, "_bind", give_up)


def failed_bind_is_not_reported(patch):
    report = binder.Binder._settled

    def quiet(self, job, outcome):
        if isinstance(outcome, PodBound):
            report(self, job, outcome)

    patch.setattr(binder.Binder, "_settled", quiet)


def quorum_is_sealed_at_once(patch):
    submit = binder.Binder.submit

    def all_at_once(self, gang):
        submit(self, plan.GangBinds(**{**_fields(gang), "started": True}))

    patch.setattr(binder.Binder, "submit", all_at_once)


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
    patch.setattr("quorate.core.turn.verifying.verify_plan", lambda gangs, _: [[] for _ in gangs])


def room_is_released_before_the_outcome(patch):
    """Room that is assumed is not counted, and the check that would notice it is left out."""
    patch.setattr(NodeTable, "take_many", lambda self, rows, pod_class: None)
    patch.setattr(NodeTable, "release", _release_at_most_what_is_used)
    patch.setattr("quorate.core.turn.verifying.verify_plan", lambda gangs, _: [[] for _ in gangs])


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
    patch.setattr("quorate.core.turn.verifying.verify_plan", lambda gangs, _: [[] for _ in gangs])


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


def leader_binds_after_its_lease(patch):
    patch.setattr(Elector, "is_leader", lambda self, now_s: self._lead_until_s > 0)


def nobody_asks_who_leads(patch):
    patch.setattr(App, "_may_write", lambda self: True)


def deletions_are_not_heard(patch):
    patch.setattr(Feed, "_gone", lambda self, kind, raw: None)


def a_cut_watch_goes_on_too_late(patch):
    real = Reflector._remember_version

    def skip(self, newest):
        real(self, newest)
        self._resource_version = str(int(self._resource_version) + 2)

    patch.setattr(Reflector, "_remember_version", skip)


def journal_says_that_all_was_settled(patch):
    patch.setattr(attempts.Attempts, "_had_started", lambda self, gang, attempts, before: True)


def journal_leaves_out_what_is_open(patch):
    real = attempts.Attempts.journal

    def journal(self, gangs):
        found = real(self, gangs)
        return Journal(found.by, found.made)

    patch.setattr(attempts.Attempts, "journal", journal)


def sealing_binds_are_sent_whatever_happened_since(patch):
    patch.setattr(Scheduler, "may_complete", lambda self, gang, uid: True)


def rules_between_pods_are_not_read(patch):
    patch.setattr(pod_spec, "required_terms", lambda *written: ())


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


def _fields(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _release_at_most_what_is_used(self, row, pod_class):
    for column, amount in pod_class.demands:
        free = self.free[row, column] + amount
        self.free[row, column] = min(free, self.allocatable[row, column])


MUTATIONS = {
    mutation.apply.__name__: mutation
    for mutation in (
        Mutation(bind_without_uid, (UID,)),
        Mutation(conflict_is_success, (PARTIAL, FITS, TRUTH, TOLD)),
        Mutation(lost_answer_is_failure, (LOOK_UP, ROOM)),
        Mutation(failed_bind_is_not_reported, (PARTIAL, FITS, TRUTH)),
        Mutation(quorum_is_sealed_at_once, (MARKED, PARTIAL, QUORUM)),
        Mutation(deadline_is_forgotten, (PARTIAL,), 1008),
        Mutation(half_bound_gang_is_not_taken_up, (PARTIAL,), 1008),
        Mutation(started_gang_is_rolled_back, (STARTED,)),
        Mutation(terminating_members_count, (WAITING_ONLY, QUORUM), 1015),
        Mutation(gated_members_count, (WAITING_ONLY, LOGGED)),
        Mutation(min_is_off_by_one, (QUORUM, PARTIAL)),
        Mutation(members_are_placed_one_by_one, (QUORUM,)),
        Mutation(room_is_released_before_the_outcome, (ROOM,)),
        Mutation(verification_is_left_out_and_a_gang_fills_one_node, (ROOM,)),
        Mutation(foreign_pods_are_not_counted, (ROOM, TRUTH)),
        Mutation(wake_up_is_lost, (FITS,)),
        Mutation(watched_class_never_wakes, (FITS,)),
        Mutation(bucket_passes_over, (FITS,)),
        Mutation(back_off_never_ends, (FITS, PARTIAL), 1031),
        Mutation(leader_binds_after_its_lease, (LEASE,)),
        Mutation(nobody_asks_who_leads, (LEASE,)),
        Mutation(deletions_are_not_heard, (FITS, TRUTH, WAITING_ONLY)),
        Mutation(journal_says_that_all_was_settled, (PARTIAL,), 1087),
        Mutation(journal_leaves_out_what_is_open, (PARTIAL, MARKED)),
        Mutation(
            sealing_binds_are_sent_whatever_happened_since,
            fails=lambda: sealing_may_not_be_sent("gone"),
        ),
        Mutation(a_cut_watch_goes_on_too_late, (FITS, TRUTH, TOLD, PARTIAL), 1036),
        Mutation(rules_between_pods_are_not_read, (APART,)),
        Mutation(
            devices_are_free_when_their_claim_is_allocated_for_another_pod,
            (TWICE,),
            first_seed=66,
            themes=("devices",),
        ),
    )
}
