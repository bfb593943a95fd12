"""Goal: pods whose Job names a gang, and whose template does not, start nothing in part (ADR 32).

Method: the core is told of pods of no gang, of gangs that lack members, and of what Jobs say.
"""

import pytest

from quorate.core.cluster.gangs.gangs import key_of
from quorate.core.model import Meant, Owner, policy
from quorate.core.model.changes import DialectServed, OwnerChanged
from quorate.core.model.reasons import Reason
from quorate.core.queue.gate import asked_owners
from tests.invariants import check_all
from tests.unit.core.world import LABELS, TEAM, VOLCANO, World, key, world

JOB, OTHER = Owner("batch/v1", "Job", "d"), Owner("batch/v1", "Job", "other")
SAYS = "label example.com/gang of Job d is read by no scheduler"
USE = "use label example.com/gang: d in its pod template"
ORDINARY = OwnerChanged(TEAM, JOB, 4)
MISNAMED = OwnerChanged(TEAM, JOB, 4, meant=Meant(key("d"), SAYS), remedy=USE)
UNREAD = OwnerChanged(TEAM, JOB, None, None)


def of_job(count: int = 4, owner: Owner | None = JOB, **fields) -> World:
    """Return a world with a gang of four of which no pod exists, and pods of a Job of no gang."""
    w = world(cpu=3)
    w.object("d", 4)
    for index in range(count):
        w.pod(f"d-{index}", owner=owner, **fields)
    return w


def single(w: World, name: str = "d-0"):
    return key_of(w.pods[name])


def test_pods_wait_until_it_is_known_whether_their_job_names_a_gang():
    """Of 4 pods 3 ran, and the 4th had no room: a gang started in part."""
    w = of_job()
    assert w.cycle() == {}
    assert w.scheduler.explainer(w.now_s).owners(single(w)) == (JOB,)
    why = w.why(single(w))
    assert why.reason is Reason.API_NOT_AVAILABLE
    assert why.message == "it is asked whether Job d names a gang: d lacks members"
    assert list(check_all(w.scheduler, w.now_s)) == []


def test_pods_of_a_job_that_names_a_gang_are_held_with_the_place_and_the_right_place():
    w = of_job()
    w.cycle()
    w.observe(MISNAMED)
    assert w.cycle() == {}
    assert w.cycle(after_s=1000) == {}
    why = w.why(single(w))
    assert (why.reason, why.message) == (Reason.UNKNOWN_GANG_LABEL, f"{SAYS}; {USE}")
    assert why.hint == "fix the template of Job d"
    assert list(check_all(w.scheduler, w.now_s)) == []


def test_a_pod_that_comes_later_is_held_at_once():
    w = of_job(1)
    w.observe(MISNAMED)
    w.drop_object(key("d"))
    w.pod("d-9", owner=JOB)
    assert w.cycle() == {}
    assert w.why(single(w, "d-9")).reason is Reason.UNKNOWN_GANG_LABEL


def test_pods_of_an_ordinary_job_start_as_soon_as_it_was_read():
    w = of_job()
    w.cycle()
    w.observe(ORDINARY)
    assert len(w.cycle()) == 3


def test_pods_start_when_the_name_is_taken_from_their_job():
    w = of_job()
    w.observe(MISNAMED)
    assert w.cycle() == {}
    assert asked_owners(w.cluster.gangs[single(w)], w.cluster) == (JOB,)
    w.observe(ORDINARY)
    assert len(w.cycle()) == 3


@pytest.mark.parametrize("owner", [None, OTHER])
def test_what_one_job_says_holds_no_pod_of_others(owner):
    w = of_job(1, owner)
    w.observe(OwnerChanged(TEAM, OTHER, 1), MISNAMED)
    assert len(w.cycle()) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda w: w.object("far", 4, namespace="elsewhere"),
        lambda w: w.object("one", 1),
        lambda w: w.object("basic", 0),
        lambda w: w.gang("whole", 2, cpu=9),
        lambda w: w.gang("by-labels", 2, cpu=9, dialect=LABELS),
        lambda w: w.drop_object(w.object("gone", 4)),
    ],
)
def test_nobody_waits_where_no_gang_of_the_namespace_lacks_members(make):
    """No request is made for ordinary pods: there may be thousands in a second."""
    w = world()
    make(w)
    w.pod("alone", owner=JOB)
    assert asked_owners(w.cluster.gangs[single(w, "alone")], w.cluster) == ()
    assert "alone" in w.cycle()


@pytest.mark.parametrize(
    "make",
    [
        lambda w: w.gang("some", 3, 2),
        lambda w: w.gang("by-labels", 3, 2, dialect=LABELS),
        lambda w: w.gang("smaller", 2) and w.object("smaller", 3),
        lambda w: w.gang("shrunk", 2) and w.delete("shrunk-1"),
    ],
)
def test_a_gang_that_has_some_of_its_members_lacks_the_others(make):
    """A driver may name the gang rightly, and the workers' Job not."""
    w = world()
    make(w)
    w.pod("alone", owner=JOB)
    assert "alone" not in w.cycle()


def test_pods_that_waited_for_an_answer_start_when_the_gang_has_its_members():
    w = of_job(1)
    assert w.cycle() == {}
    for index in range(4):
        w.pod(f"member-{index}", key("d"), cpu=9)
    assert w.cycle(after_s=policy.OWNER_READ_AGAIN_S).keys() == {"d-0"}


def test_a_job_that_cannot_be_read_holds_its_pods_no_longer_than_for_some_reads():
    w = of_job()
    for _ in range(policy.OWNER_READS_MAX):
        assert w.cycle(after_s=policy.OWNER_READ_AGAIN_S) == {}
        assert asked_owners(w.cluster.gangs[single(w)], w.cluster) == (JOB,)
        w.observe(UNREAD)
    assert len(w.cycle()) == 3


def test_a_job_that_could_be_read_once_means_what_it_said_though_it_cannot_be_read_now():
    w = of_job()
    w.observe(MISNAMED, *[UNREAD] * policy.OWNER_READS_MAX)
    w.drop_object(key("d"))
    assert w.cycle() == {}
    assert w.why(single(w)).reason is Reason.UNKNOWN_GANG_LABEL


def test_it_is_asked_again_though_nothing_happens():
    """The plan wakes the loop, and names the pods, so that their owner is asked for again."""
    w = of_job(1)
    assert w.decide().wake_at_s == w.now_s + policy.OWNER_READ_AGAIN_S
    assert single(w) in w.decide(policy.OWNER_READ_AGAIN_S).touched
    w.observe(MISNAMED)
    assert w.decide().wake_at_s == w.now_s + policy.OWNER_ASKED_AGAIN_S
    assert single(w) in w.decide(policy.OWNER_ASKED_AGAIN_S).touched


@pytest.mark.parametrize("what", [MISNAMED, ORDINARY, UNREAD])
def test_a_rebuild_knows_what_was_known(what):
    w = of_job()
    w.observe(what)
    before = w.why(single(w))
    w.scheduler._rebuild()
    assert w.why(single(w)) == before


def test_of_gangs_and_jobs_that_came_and_went_nothing_is_left():
    w = of_job(2)
    w.observe(UNREAD, MISNAMED, UNREAD)
    w.gang("by-labels", 3, 2, dialect=LABELS)
    w.delete("d-0", "d-1", "by-labels-0", "by-labels-1")
    w.drop_object(key("d"))
    assert w.cluster.owners.known == {}
    assert not w.cluster.owners.lacking
    assert w.cluster.owners.unread == {}


# Pods that others gather in a gang

ASKS = "annotation example.com/min of Job d asks for 4 pods to start together"
GATHERED = OwnerChanged(TEAM, JOB, 4, gathered=ASKS, remedy="see that they run")


def may_be_gathered(count: int = 3, *, served: bool = True) -> World:
    """Return a world with pods of a Job whose gang, if it has one, somebody else names to them."""
    w = world(cpu=2)
    w.observe(DialectServed(VOLCANO, served))
    for index in range(count):
        w.pod(f"d-{index}", owner=JOB, gathered_by=VOLCANO)
    return w


def test_pods_that_others_may_gather_wait_until_their_job_was_read():
    """Of 3 pods 2 ran before the first was told its gang."""
    w = may_be_gathered()
    assert w.cycle() == {}
    assert asked_owners(w.cluster.gangs[single(w)], w.cluster) == (JOB,)
    assert w.why(single(w)).message == "it is asked whether Job d names a gang"
    w.observe(ORDINARY)
    assert len(w.cycle()) == 2
    assert list(check_all(w.scheduler, w.now_s)) == []


def test_pods_that_others_gather_wait_for_their_gang_and_start_with_it():
    w = may_be_gathered(1)
    w.observe(GATHERED, UNREAD)
    assert w.cycle() == {}
    why = w.why(single(w))
    assert (why.reason, why.message) == (Reason.GANG_OBJECT_MISSING, ASKS)
    assert why.hint == "see that they run"
    w.object("d", 1, dialect=VOLCANO)
    w.pod("d-0", key("d", VOLCANO), owner=JOB)
    assert w.cycle().keys() == {"d-0"}


@pytest.mark.parametrize("served", [True, False])
def test_pods_that_nobody_gathers_wait_for_no_answer(served):
    w = may_be_gathered(0, served=served)
    w.pod("mine", owner=JOB, gathered_by="" if served else VOLCANO)
    assert asked_owners(w.cluster.gangs[single(w, "mine")], w.cluster) == ()
    assert w.cycle().keys() == {"mine"}


def test_what_gathers_pods_of_one_scheduler_holds_no_other_pod_of_their_job():
    w = may_be_gathered(1)
    w.observe(GATHERED)
    w.pod("other", owner=JOB)
    assert w.cycle().keys() == {"other"}


def test_pods_start_when_their_job_asks_for_no_gang_any_more():
    w = may_be_gathered()
    w.observe(GATHERED)
    assert w.cycle() == {}
    w.observe(ORDINARY)
    assert len(w.cycle()) == 2
