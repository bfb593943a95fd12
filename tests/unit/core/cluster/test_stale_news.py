"""Repeated, late and surprising news does no harm: objects replaced, edited, moved, gone."""

import pytest

from quorate.core.cluster.gangs.gangs import Where
from quorate.core.model import Membership
from quorate.core.model.changes import (
    BindFailed,
    BindFailure,
    GangGone,
    NodeGone,
    PodBound,
    PodGone,
)
from quorate.core.model.journal import entry_of
from quorate.core.model.reasons import GangState, Reason
from tests.unit.core.world import LABELS, SIGS, World, binds_of, fail, key, names, world

REFUSED = fail(BindFailure.REFUSED)


def test_the_watch_may_tell_of_a_bind_before_its_outcome():
    w = world()
    gang = w.gang("job", 2)
    plan = w.decide()
    for bind in binds_of(plan):
        w.edit(bind.name, node=bind.node)
    assert w.why(gang).state is GangState.STARTED
    w.settle(plan)
    w.settle(plan)
    assert w.used("n0") == 2000
    assert w.decide().wake_at_s is None


@pytest.mark.parametrize("failure", [f for f in BindFailure if f is not BindFailure.GONE])
def test_a_failure_told_of_a_pod_that_is_bound_changes_nothing(failure):
    w = world()
    gang = w.gang("job", 2)
    w.cycle()
    w.decide()
    w.observe(BindFailed("uid-job-0", "n0", failure, "late"))
    w.pod("job-2", gang)
    assert w.where("job-0") == "n0"
    assert w.cycle() == {"job-2": "n0"}


def test_a_failure_on_another_node_than_the_assumed_one_is_old_news():
    w = world()
    w.gang("job", 2)
    plan = w.decide()
    w.observe(BindFailed("uid-job-0", "n9", BindFailure.TIMEOUT))
    assert binds_of(w.decide()) == []
    w.settle(plan)
    assert w.used("n0") == 2000


def test_a_bind_that_succeeded_after_all_is_believed():
    """The answer was given up, and the pod is bound nevertheless."""
    w = world()
    gang = w.gang("job", 2)
    w.cycle(job_0=fail(BindFailure.TIMEOUT))
    w.observe(PodBound("uid-job-0", "n0"))
    assert binds_of(w.decide()) == []
    assert w.why(gang).state is GangState.STARTED


@pytest.mark.parametrize(
    "change",
    [
        PodGone("nobody"),
        PodBound("nobody", "n0"),
        BindFailed("nobody", "n0", BindFailure.REFUSED),
        BindFailed("nobody", "n0", BindFailure.GONE),
        NodeGone("nowhere"),
        GangGone(key("nothing")),
    ],
    ids=lambda change: type(change).__name__,
)
def test_news_of_strangers_is_ignored(change):
    w = world()
    w.observe(change)
    w.gang("job", 2)
    assert len(w.cycle()) == 2


def test_an_outcome_for_a_replaced_pod_does_not_reach_its_namesake():
    w = world()
    gang = w.gang("job", 2)
    plan = w.decide()
    w.delete("job-0")
    w.pod("job-0", gang, uid="new")
    w.settle(plan)
    assert w.where("job-0") == ""
    assert w.cycle() == {"job-0": "n0"}


def test_a_node_that_vanishes_while_its_binds_are_under_way():
    w = world(cpu=2)
    gang = w.gang("job", 2)
    plan = w.decide()
    w.lose_node("n0")
    w.node("n1", cpu=2)
    assert binds_of(w.decide()) == []
    w.settle(plan, REFUSED)
    assert set(w.cycle().values()) == {"n1"}
    assert w.why(gang).state is GangState.STARTED


def test_an_object_deleted_while_binds_are_under_way_leaves_nothing_half_done():
    w = world(cpu=2)
    gang = w.gang("job", 2)
    plan = w.decide()
    w.drop_object(gang)
    w.settle(plan, job_1=REFUSED)
    assert binds_of(w.decide()) == []
    assert names(w.decide(after_s=60).evictions) in ([], ["job-0"])


def test_a_gang_whose_members_all_vanish_in_an_attempt_is_forgotten():
    w = world()
    gang = w.gang("job", 2, dialect=LABELS)
    plan = w.decide()
    w.delete("job-0", "job-1")
    w.settle(plan, fail(BindFailure.GONE))
    assert gang not in w.cluster.gangs
    assert w.decide(after_s=100).evictions == ()
    assert w.used("n0") == 0
    w.gang("job", 2, dialect=LABELS)
    assert len(w.cycle()) == 2


def test_a_member_that_changes_gang_while_its_bind_is_under_way():
    w = world()
    first = w.gang("first", 2)
    second = w.gang("second", 1, pods=0)
    plan = w.decide()
    w.edit("first-1", membership=Membership(second))
    w.settle(plan)
    assert w.why(first).members.bound == 1
    assert w.why(second).members.bound == 1
    assert w.used("n0") == 2000
    assert w.why(second).state is GangState.WAITING, "bound for another gang, it starts nobody"


def test_the_minimum_is_what_the_members_that_wait_say():
    """A status update of a bound member must not bring its own, older, min back."""
    w = world(cpu=8)
    gang = key("job", LABELS)
    w.pod("bound", gang, min_count=3, node="n0")
    w.pod("a", gang, min_count=2)
    w.edit("bound", phase="Running")
    assert w.cycle() == {"a": "n0"}


def test_a_pod_that_finishes_gives_its_room_back_and_is_still_counted_as_a_member():
    w = world(cpu=2)
    gang = w.gang("job", 2)
    w.cycle()
    w.edit("job-0", phase="Succeeded")
    assert w.used("n0") == 1000
    assert w.why(gang).members.bound == 2
    w.pod("next")
    assert w.cycle() == {"next": "n0"}


def test_a_pod_deleted_before_its_bind_ends_as_terminating():
    w = world()
    gang = w.gang("job", 2)
    plan = w.decide()
    w.edit("job-1", terminating=True)
    w.settle(plan, job_1=REFUSED)
    assert w.cycle() == {}
    assert w.why(gang).members.terminating == 1


def test_the_object_of_another_api_appears_and_goes():
    w = world()
    from quorate.core.model.changes import DialectServed

    w.observe(DialectServed("x-k8s", True), DialectServed(SIGS, True))
    gang = key("job")
    w.pod("a", gang)
    w.decide()
    other = w.object("job", 1, dialect=SIGS)
    assert gang in w.decide().touched
    assert w.why(gang).reason is Reason.GANG_OBJECT_IN_OTHER_API
    w.drop_object(other)
    assert gang in w.decide().touched
    assert w.why(gang).reason is Reason.GANG_OBJECT_MISSING


def test_a_member_that_another_scheduler_bound_and_a_kubelet_refused_starts_no_gang():
    """The answers to our binds overtake the news of its bind, and those of its refusal."""
    w = world()
    gang = w.gang("job", 3)
    plan = w.decide()
    *ours, stolen = binds_of(plan)
    for bind in ours:
        w.observe(PodBound(bind.uid, bind.node))
    w.observe(BindFailed(stolen.uid, stolen.node, BindFailure.GONE))
    w.edit(stolen.name, node="elsewhere")
    w.edit(stolen.name, node="elsewhere", phase="Failed", refusal="OutOfcpu")
    w.delete(stolen.name)
    assert not w.cluster.gangs[gang].started


def test_a_member_that_was_of_a_past_life_elsewhere_counts_again_in_its_own_gang():
    w = World()
    w.node("n0", cpu=8)
    own = w.gang("own", 2)
    other = w.object("other", 2)
    w.cycle()
    for name in ("own-0", "own-1"):
        w.edit(name, node="n0", phase="Running", bound_for=entry_of(own))
    w.pod("other-0", other)
    w.edit("own-0", membership=Membership(other, None))
    w.decide()
    assert w.cluster.pods["uid-own-0"].where is Where.PAST
    w.edit("own-0", membership=Membership(own, None))
    assert w.cluster.pods["uid-own-0"].where is Where.BOUND
    assert w.why(own).members.bound == 2
