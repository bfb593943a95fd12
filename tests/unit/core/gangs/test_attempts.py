"""An attempt: from a gang's plan until its binds are settled, or time is over and it is undone."""

from itertools import pairwise

import pytest

from quorate.core.model.changes import BindFailed, BindFailure, PodBound
from quorate.core.model.reasons import GangState, Reason
from quorate.core.turn import verifying
from tests.unit.core.world import LABELS, World, binds_of, fail, names

REFUSED = fail(BindFailure.REFUSED, "denied by a webhook")
RETRIED = [BindFailure.REFUSED, BindFailure.TIMEOUT]


def world(cpu=8, **policy):
    w = World(**policy)
    w.node("n0", cpu=cpu)
    return w


def test_a_gang_is_planned_once_while_its_binds_are_under_way():
    w = world()
    gang = w.gang("job", 2)
    plan = w.decide()
    assert binds_of(w.decide(after_s=5)) == []
    assert w.why(gang).state is GangState.STARTING
    w.settle(plan)
    assert binds_of(w.decide()) == []
    assert w.why(gang).state is GangState.STARTED


def test_no_attempt_is_left_when_all_binds_succeed():
    w = world()
    w.gang("job", 2)
    w.cycle()
    assert w.decide().wake_at_s is None
    assert w.decide(after_s=1000).evictions == ()


@pytest.mark.parametrize("failure", RETRIED)
def test_a_member_that_failed_is_placed_again_at_once_and_alone(failure):
    w = world()
    w.gang("job", 3)
    w.cycle(job_1=fail(failure))
    assert w.cycle() == {"job-1": "n0"}
    assert w.where("job-1") == "n0"


def test_the_attempt_keeps_its_id_and_deadline_while_it_is_repaired():
    w = world()
    w.gang("job", 2)
    first = w.decide().gangs[0]
    w.observe(PodBound("uid-job-0", "n0"))
    w.observe(BindFailed("uid-job-1", "n0", BindFailure.TIMEOUT))
    second = w.decide(after_s=3).gangs[0]
    assert (second.attempt, second.deadline_s) == (first.attempt, first.deadline_s)
    assert second.size == 2


def test_a_pod_that_is_gone_leaves_its_gang_below_min_until_it_is_made_again():
    w = world()
    gang = w.gang("job", 2)
    w.cycle(job_1=fail(BindFailure.GONE))
    assert w.why(gang).members.bound == 1
    w.pod("job-1", gang, uid="other")
    assert w.cycle() == {"job-1": "n0"}
    assert w.why(gang).state is GangState.STARTED


def test_a_pod_bound_elsewhere_counts_there():
    w = world(cpu=4)
    w.node("n1", cpu=4)
    gang = w.gang("job", 2)
    w.cycle(job_1=lambda b: BindFailed(b.uid, "n1", BindFailure.ELSEWHERE))
    assert w.where("job-1") == "n1"
    assert w.used("n1") == 1000
    assert w.why(gang).state is GangState.STARTED
    assert binds_of(w.decide(after_s=1)) == []


def test_a_pod_that_another_bound_is_not_evicted_by_later_attempts_either():
    w = world()
    w.gang("job", 2)
    w.cycle(
        fail(BindFailure.NOT_SENT),
        job_0=lambda bind: BindFailed(bind.uid, "n0", BindFailure.ELSEWHERE),
    )
    for _ in range(3):
        plan = w.decide(after_s=100)
        assert plan.evictions == ()
        w.settle(plan, fail(BindFailure.TIMEOUT))


def test_an_evicted_member_that_its_kubelet_refuses_is_counted_out_once():
    w = half_started()
    evictions = w.decide(after_s=100).evictions
    assert evictions
    for eviction in evictions:
        w.edit(eviction.name, node="n0", phase="Failed", refusal="OutOfcpu")
    assert w.cluster.gangs[evictions[0].key].stays == 0


def half_started(**gang):
    """One of two members is bound; the other has no room any more."""
    w = world(cpu=2)
    w.gang("job", 2, **gang)
    plan = w.decide()
    w.settle(plan, job_1=REFUSED)
    w.node("n0", cpu=1)
    return w


def test_a_gang_that_never_came_together_is_rolled_back_when_time_is_over():
    w = half_started()
    assert w.decide().wake_at_s == 1060.0
    assert w.decide(after_s=59).evictions == ()
    plan = w.decide(after_s=1)
    assert names(plan.evictions) == ["job-0"]
    assert plan.evictions[0].message == (
        "Gang team/job did not come together in time: 1 of 2 members were bound"
    )


def test_the_end_of_an_attempt_is_reported():
    w = half_started()
    w.decide()
    gang = w.pods["job-0"].membership.key
    assert gang in w.decide(after_s=60).touched


def test_an_evicted_member_counts_no_more_and_the_gang_starts_afresh():
    w = half_started()
    w.decide(after_s=60)
    gang = w.pods["job-0"].membership.key
    w.node("n0", cpu=8)
    assert w.cycle() == {}
    assert w.why(gang).reason is Reason.NOT_ENOUGH_MEMBERS
    w.delete("job-0")
    w.pod("job-0", gang, uid="again")
    assert set(w.cycle(after_s=60)) == {"job-0", "job-1"}
    assert w.why(gang).state is GangState.STARTED


def test_members_being_evicted_do_not_make_a_new_attempt_quorate():
    w = half_started()
    w.decide(after_s=60)
    gang = w.pods["job-0"].membership.key
    w.node("n0", cpu=8)
    w.pod("job-2", gang)
    w.cycle(after_s=60, job_2=REFUSED)
    assert w.why(gang).members.bound == 2
    assert w.why(gang).state is not GangState.STARTED


def test_a_member_being_deleted_makes_no_gang_quorate_that_has_not_started():
    w = world(cpu=4)
    gang = w.gang("job", 4)
    w.cycle(job_2=fail(BindFailure.REFUSED), job_3=fail(BindFailure.REFUSED))
    w.edit("job-0", terminating=True)
    w.pod("job-4", gang)
    w.now_s += 2.0
    assert w.cycle() == {}  # two would fit: with the one that is going these were four
    said = w.why(gang)
    assert (said.state, said.members.exist) == (GangState.STARTING, 4)
    w.delete("job-0")
    assert set(w.cycle()) == {"job-2", "job-3", "job-4"}
    assert w.why(gang).state is GangState.STARTED


def test_a_member_being_deleted_is_not_told_as_one_that_was_bound_in_time():
    w = world(cpu=4)
    gang = w.gang("job", 2, pods=3)
    w.cycle(job_1=fail(BindFailure.REFUSED), job_2=fail(BindFailure.REFUSED))
    w.pod("job-3", gang, node="n0", attempt="q-1", terminating=True)
    w.node("n0", cpu=0)
    assert w.decide(after_s=60.0).evictions[0].message.endswith("1 of 2 members were bound")


def test_an_evicted_member_that_leaves_its_gang_is_not_missed_for_ever():
    w = half_started()
    w.decide(after_s=60)
    gang = w.pods["job-0"].membership.key
    w.edit("job-0", node="n0", membership=None)
    w.node("n0", cpu=8)
    w.pod("job-2", gang)
    assert set(w.cycle(after_s=60)) == {"job-1", "job-2"}


def test_a_gang_that_was_once_quorate_is_never_rolled_back():
    w = world(cpu=3)
    gang = w.gang("job", 3)
    w.cycle()
    w.delete("job-0")
    w.pod("job-0", gang, uid="again")
    w.cycle(REFUSED)
    w.node("n0", cpu=2)
    for _ in range(5):
        assert w.decide(after_s=400).evictions == ()


def test_min_that_is_lowered_to_what_is_bound_evicts_nobody_when_time_is_over():
    w = world(cpu=3)
    w.gang("job", 3)
    w.cycle(job_2=fail(BindFailure.TIMEOUT))
    w.node("n0", cpu=2)
    w.object("job", 2)
    for _ in range(3):
        assert w.decide(after_s=100).evictions == ()


def test_nothing_is_rolled_back_before_the_answers_are_there():
    w = world()
    w.gang("job", 2)
    plan = w.decide()
    w.observe(PodBound("uid-job-0", "n0"))
    late = w.decide(after_s=300)
    assert late.evictions == ()
    w.settle(plan)
    assert w.decide().evictions == ()


def test_an_answer_that_is_late_keeps_nobody_spinning():
    w = world()
    w.gang("job", 2)
    w.decide()
    wake_at_s = w.decide(after_s=300).wake_at_s
    assert wake_at_s is None or wake_at_s > w.now_s


def test_back_off_grows_and_is_bounded():
    w = world(backoff_s=1.0, backoff_s_max=8.0)
    gang = w.gang("job", 2)
    w.cycle(REFUSED)
    waits = []
    for _ in range(7):
        w.cycle(REFUSED)
        waited_s = 0.0
        while binds_of(plan := w.decide()) == []:
            assert w.why(gang).reason is Reason.BACKING_OFF
            assert plan.wake_at_s is not None
            assert plan.wake_at_s > w.now_s
            waited_s += plan.wake_at_s - w.now_s
            w.now_s = plan.wake_at_s
        waits.append(waited_s)
        w.settle(plan, REFUSED)
    assert waits == sorted(waits)
    assert waits[0] >= 1.0
    assert max(waits) == 8.0


def test_failures_of_one_try_that_come_one_by_one_are_one_failure():
    w = world(backoff_s=1.0)
    w.gang("job", 6)
    first = binds_of(w.decide())
    for bind in first:
        w.observe(REFUSED(bind))
        for again in binds_of(w.decide(after_s=0.01)):
            w.observe(REFUSED(again))
    assert len(binds_of(w.decide(after_s=1.0))) == 6


def test_a_gang_backs_off_alone():
    w = world()
    w.gang("job", 2)
    w.cycle(REFUSED)
    w.cycle(REFUSED)
    w.gang("other", 2)
    assert set(w.cycle()) == {"other-0", "other-1"}


def test_news_does_not_cut_a_back_off_short():
    w = world()
    gang = w.gang("job", 2)
    w.cycle(REFUSED)
    w.cycle(REFUSED)
    w.pod("job-2", gang)
    assert w.cycle() == {}
    assert len(w.cycle(after_s=1)) == 3


def test_a_gang_that_started_forgets_its_failures():
    w = world()
    gang = w.gang("job", 2)
    for _ in range(4):
        w.cycle(REFUSED, after_s=60)
    w.cycle(after_s=60)
    w.cycle(after_s=60)
    assert w.why(gang).state is GangState.STARTED
    w.decide()
    w.pod("job-2", gang)
    w.cycle(REFUSED)
    assert set(w.cycle()) == {"job-2"}


def test_the_last_failure_is_said_while_backing_off():
    w = world()
    gang = w.gang("job", 2)
    w.cycle(REFUSED)
    w.cycle(REFUSED)
    w.decide()
    assert w.why(gang).message == (
        "the last attempt failed (denied by a webhook); another follows shortly"
    )


def test_a_plan_that_fails_verification_is_not_sent_and_not_assumed():
    w = world()
    w.gang("job", 2, dialect=LABELS)
    plan = w.scheduler.decide(w.now_s)
    w.node("n0", cpu=8, cordoned=True)
    good, problems = w.scheduler.verified(plan)
    assert good.gangs == ()
    assert problems == ["node n0 has the taint node.kubernetes.io/unschedulable"]
    assert w.used("n0") == 0
    w.node("n0", cpu=8)
    assert len(w.cycle()) == 0
    assert len(w.cycle(after_s=1.5)) == 2


def started_gang(w):
    """A gang that runs, and one more member."""
    which = w.gang("job", 2)
    w.cycle()
    w.pod("job-2", which)


@pytest.mark.parametrize(
    "make", [started_gang, lambda w: w.gang("job", 2), lambda w: w.pod("alone")]
)
def test_a_gang_whose_plans_are_refused_is_tried_rarely_whatever_news_there_is(make, monkeypatch):
    """The check finds mistakes of ours: what is planned again at once, it refuses again."""
    w = world()
    make(w)
    monkeypatch.setattr(verifying, "verify_plan", lambda gangs, *_: [["refused"] for _ in gangs])
    newest, planned_s = list(w.pods)[-1], []
    for turn in range(200):
        w.edit(newest, labels=(("news", str(turn)),))
        plan = w.scheduler.decide(w.now_s)
        planned_s += [w.now_s - 1000.0] * len(plan.gangs)
        w.scheduler.verified(plan)
        w.now_s += 0.125
    waits_s = [later - earlier for earlier, later in pairwise(planned_s)]
    assert waits_s[0] >= 1.0
    assert waits_s == sorted(waits_s)
    assert len(waits_s) == 4
