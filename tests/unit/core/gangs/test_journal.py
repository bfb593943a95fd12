"""A successor without marks on pods: the journal says whether their gang had started."""

import msgspec
import pytest

from quorate.core.model import policy
from quorate.core.model.changes import BindFailed, BindFailure, JournalFound
from quorate.core.model.journal import Journal, journal_of
from tests.unit.core.recovery_world import GRACE_S, JOB, left_behind, open_in, world
from tests.unit.core.world import LABELS, World, accept, binds_of, fail, key, names

REFUSED = fail(BindFailure.REFUSED)


def evicted_by_a_successor(journal: Journal | None, **of_bound) -> list[str]:
    """Return whom a successor evicts of a gang of which two of four are bound, and no room is."""
    w = world(cpu=3)
    left_behind(w, 2, **of_bound)
    if journal is not None:
        w.observe(JournalFound(journal))
    assert w.decide().evictions == ()
    return sorted(names(w.decide(after_s=GRACE_S).evictions))


@pytest.mark.parametrize(
    "journal",
    [
        pytest.param(Journal("dead", 1), id="its attempt was no longer open"),
        pytest.param(Journal("dead", 7, ("x-k8s/team/other",)), id="another gang was open"),
        pytest.param(Journal("later", 0), id="a leader came after that one, and settled it"),
    ],
)
def test_a_gang_that_had_started_and_lost_its_marked_members_is_left_alone(journal):
    assert evicted_by_a_successor(journal) == []


@pytest.mark.parametrize(
    "journal",
    [
        pytest.param(None, id="no journal"),
        pytest.param(Journal("dead", 1, (JOB,)), id="its attempt was open"),
        pytest.param(Journal("later", 3, (JOB,)), id="a leader after that one had not settled it"),
        pytest.param(Journal("dead", 0), id="its attempt began after the last renewal"),
        pytest.param(Journal("older", 9, (), ("dead",)), id="its leader never wrote a journal"),
        pytest.param(Journal("dead", 1, None), id="too many were open"),
    ],
)
def test_a_gang_that_was_being_bound_is_undone(journal):
    assert evicted_by_a_successor(journal) == ["job-0", "job-1"]


@pytest.mark.parametrize(
    "attempt", ["dead-x", "dead-", "dead", "-", "dead-\u0661", "dead-" + "9" * 50]
)
def test_an_attempt_with_a_strange_number_is_no_error(attempt):
    assert evicted_by_a_successor(Journal("dead", 1), attempt=attempt) in ([], ["job-0", "job-1"])


def test_a_bind_of_our_own_that_arrives_late_is_undone_whatever_the_journal_says():
    assert evicted_by_a_successor(Journal("q", 9), attempt="q-1") == ["job-0", "job-1"]


def test_members_of_several_attempts_are_as_unsettled_as_the_newest():
    w = world(cpu=3)
    left_behind(w, 2)
    w.edit("job-1", attempt="dead-2")
    w.observe(JournalFound(Journal("dead", 1)))
    w.decide()
    assert len(w.decide(after_s=GRACE_S).evictions) == 2


def test_a_journal_is_passed_on_with_the_names_of_those_who_wrote_none():
    journal = Journal("a", 3, (JOB,))
    assert journal.passed_on("b").passed_on("c").since == ("b", "c")
    assert journal.passed_on("b").passed_on("b").since == ("b",)
    assert journal.passed_on("a") == journal


def test_after_very_many_leaders_without_a_journal_nothing_is_known():
    journal = Journal("a", 3)
    for number in range(100):
        journal = journal.passed_on(f"b{number}")
    assert journal.open is None
    assert len(journal.since) < 100


def test_a_journal_that_would_not_fit_into_an_annotation_says_so():
    few = (key("g" * 60),)
    many = [key(f"{n}-{'g' * 60}") for n in range(policy.OPEN_BYTES_MAX // 60)]
    assert journal_of("a", 1, few).open == ("x-k8s/team/" + "g" * 60,)
    assert journal_of("a", 1, many).open is None


def test_a_gang_is_open_from_its_plan_until_it_has_started():
    w = world(cpu=4)
    w.gang("job", 2)
    assert open_in(w) == ()
    plan = w.decide()
    assert open_in(w) == (JOB,)
    w.settle(plan)
    assert open_in(w) == ()
    assert (w.scheduler.journal().by, w.scheduler.journal().made) == ("q", 1)


def test_a_pod_of_no_gang_is_never_open():
    w = world(cpu=4)
    w.pod("alone")
    w.decide()
    assert open_in(w) == ()


def test_a_gang_that_is_undone_is_open_until_its_pods_are_gone():
    w = world(cpu=2)
    w.gang("job", 2)
    w.cycle(job_1=REFUSED)
    w.node("n0", cpu=1)
    assert names(w.decide(after_s=60).evictions) == ["job-0"]
    assert open_in(w) == (JOB,)
    w.decide()
    assert open_in(w) == (JOB,)
    w.delete("job-0")
    w.decide()
    assert open_in(w) == ()


def test_a_gang_whose_answers_are_late_is_open_beyond_its_time():
    w = world(cpu=4)
    w.gang("job", 2)
    w.decide()
    w.decide(after_s=300)
    assert open_in(w) == (JOB,)


def test_what_is_taken_up_from_a_dead_leader_is_open_again():
    w = world(cpu=3)
    left_behind(w, 2)
    w.decide()
    assert open_in(w) == (JOB,)
    w.decide(after_s=GRACE_S)
    assert open_in(w) == (JOB,)


def test_members_that_go_already_when_a_leader_takes_over_are_open_until_they_are_gone():
    w = world(cpu=3)
    left_behind(w, 3)
    w.edit("job-0", terminating=True)
    w.decide()
    assert open_in(w) == (JOB,)


def test_a_started_gang_that_grows_is_not_open():
    w = world(cpu=4)
    gang = w.gang("job", 2)
    w.cycle()
    w.pod("job-2", gang)
    w.decide()
    assert open_in(w) == ()


def test_a_journal_changes_nothing():
    plans = []
    for asked in (0, 3):
        w = world(cpu=2)
        w.gang("job", 2)
        w.cycle(job_1=REFUSED)
        w.node("n0", cpu=1)
        for _ in range(asked):
            w.scheduler.journal()
        plans.append(w.decide(after_s=60))
    assert plans[0] == plans[1]


# A gang whose object is missing


def without_object(cpu: int, bound: int, **of_bound):
    w = world(cpu=cpu)
    gang = left_behind(w, bound, **of_bound)
    w.drop_object(gang)
    return w


def test_a_dead_leaders_gang_whose_object_is_missing_is_undone_too():
    w = without_object(4, 2)
    assert w.decide().evictions == ()
    plan = w.decide(after_s=GRACE_S)
    assert names(plan.evictions) == ["job-0", "job-1"]
    assert plan.evictions[0].message.endswith("2 of 4 members were bound")


def test_it_is_finished_when_its_object_comes_back_in_time():
    w = without_object(4, 2)
    w.decide()
    w.object("job", 4)
    assert set(w.cycle(after_s=1)) == {"job-2", "job-3"}
    assert w.decide(after_s=60).evictions == ()


def test_it_is_left_alone_when_it_had_started():
    w = without_object(4, 2)
    w.observe(JournalFound(Journal("dead", 1)))
    w.decide()
    assert w.decide(after_s=60).evictions == ()


def test_a_started_gang_whose_object_goes_is_left_alone():
    w = world(cpu=4)
    gang = w.gang("job", 2, pods=3, dialect=LABELS)
    w.cycle()
    gang = w.gang("other", 2)
    w.cycle()
    w.drop_object(gang)
    w.decide()
    assert w.decide(after_s=60).evictions == ()


# Binds that seal a gang while something happens to it


def sealed_last(w: World, count: int, **more):
    """Plan a gang and settle all binds but the last, which seals it."""
    gang = w.gang("job", count, **more)
    plan = w.decide()
    *first, last = binds_of(plan)
    assert plan.gangs[0].first == count - 1
    for bind in first:
        w.settle(plan_of(plan, bind))
    return gang, plan, last


def plan_of(plan, *binds):
    gang = msgspec.structs.replace(plan.gangs[0], binds=binds)
    return msgspec.structs.replace(plan, gangs=(gang,))


def test_min_that_is_raised_while_the_sealing_bind_is_on_its_way_undoes_nothing():
    w = world(cpu=2)
    _, plan, last = sealed_last(w, 2)
    w.object("job", 3)
    w.settle(plan_of(plan, last))
    assert w.decide(after_s=100).evictions == ()


def test_an_object_that_goes_while_the_sealing_bind_is_on_its_way_undoes_nothing():
    w = world(cpu=3)
    gang, plan, last = sealed_last(w, 3)
    w.drop_object(gang)
    w.settle(plan_of(plan, last))
    w.delete("job-0")
    assert w.decide(after_s=100).evictions == ()


def test_a_member_that_goes_while_the_sealing_bind_is_on_its_way_undoes_nothing():
    w = world(cpu=3)
    _, plan, last = sealed_last(w, 3)
    w.delete("job-0")
    w.settle(plan_of(plan, last))
    assert w.decide(after_s=100).evictions == ()


def test_a_member_that_was_refused_before_the_sealing_bind_is_missed():
    w = world(cpu=3)
    _, plan, last = sealed_last(w, 3)
    w.edit("job-0", node="n0", phase="Failed", refusal="OutOfcpu")
    w.settle(plan_of(plan, last))
    assert names(w.decide(after_s=100).evictions) == ["job-1", "job-2"]


@pytest.mark.parametrize("by_watch", [False, True])
def test_another_schedulers_bind_of_the_last_member_seals_nothing(by_watch):
    w = world(cpu=3)
    w.node("n1", cpu=3)
    _, plan, last = sealed_last(w, 3)
    w.delete("job-0")
    if by_watch:
        w.edit(last.name, node="n1")
    w.settle(plan_of(plan, last), lambda b: BindFailed(b.uid, "n1", BindFailure.ELSEWHERE))
    assert names(w.decide(after_s=100).evictions) == ["job-1"]


def test_a_dead_leaders_mark_that_arrives_after_it_was_taken_up_says_that_the_gang_started():
    w = world(cpu=3)
    left_behind(w, 2)
    w.decide()
    w.edit("job-3", node="n0", attempt="dead-1", started=True)
    assert w.decide(after_s=100).evictions == ()


def may_complete(w: World, plan) -> bool:
    """Whether the last bind of the plan, which seals its gang, may still be sent."""
    gang = plan.gangs[0]
    return w.scheduler.may_complete(gang, gang.binds[-1].uid)


def test_a_bind_that_sealed_an_earlier_plan_of_the_attempt_may_not_be_sent():
    """Another member was planned since, because one that was bound is gone: that one seals."""
    w = world(cpu=3)
    gang = w.gang("job", 2, pods=3)
    w.edit("job-2", gates=("later",))
    plan = w.decide()
    first, last = binds_of(plan)
    w.settle(plan_of(plan, first))
    w.edit("job-2", gates=())
    w.delete(first.name)
    again = w.decide()
    assert [bind.name for bind in binds_of(again)] == ["job-2"]
    assert w.scheduler.may_complete(again.gangs[0], binds_of(again)[0].uid)
    assert not w.scheduler.may_complete(plan.gangs[0], last.uid)
    assert w.cluster.gangs[gang].assumed == 2


def test_members_that_were_refused_and_are_gone_when_the_seal_arrives_leave_no_gang_started():
    w = world(cpu=3)
    gang, plan, last = sealed_last(w, 3)
    for name in ("job-0", "job-1"):
        w.edit(name, phase="Pending")
        attempt = plan.gangs[0].attempt
        w.edit(name, phase="Failed", refusal="OutOfcpu", attempt=attempt)
        w.delete(name)
    w.observe(accept(last))
    w.decide()
    assert not w.cluster.gangs[gang].started


def test_a_sealing_bind_may_be_sent_while_all_others_are_there():
    w = world(cpu=3)
    _, plan, _ = sealed_last(w, 3)
    assert may_complete(w, plan)


@pytest.mark.parametrize("how", ["gone", "refused", "min raised", "all gone"])
def test_a_sealing_bind_may_not_be_sent_when_it_would_seal_nothing(how):
    w = world(cpu=3)
    _, plan, _ = sealed_last(w, 3)
    match how:
        case "gone":
            w.delete("job-0")
        case "refused":
            w.edit("job-0", node="n0", phase="Failed", refusal="OutOfcpu")
        case "min raised":
            w.object("job", 4)
        case _:
            w.delete("job-0", "job-1", "job-2")
            w.drop_object(key("job"))
    assert not may_complete(w, plan)


def test_one_of_several_sealing_binds_does_not_count_for_another():
    w = world(cpu=4)
    w.gang("job", 2, pods=4)
    plan = w.decide()
    assert plan.gangs[0].first == 1
    first = binds_of(plan)[0]
    w.settle(plan_of(plan, first))
    assert may_complete(w, plan)
    w.delete(first.name)
    assert not may_complete(w, plan)


def test_single_pods_and_members_of_started_gangs_may_always_be_sent():
    w = world(cpu=4)
    w.pod("alone")
    plan = w.decide()
    assert may_complete(w, plan)
    gang = w.gang("job", 2)
    w.cycle()
    w.pod("job-2", gang)
    plan = w.decide()
    assert may_complete(w, plan)
    w.delete("job-0", "job-1")
    assert not may_complete(w, plan)


def test_a_plan_of_an_attempt_that_is_over_may_not_be_sent():
    w = world(cpu=2)
    w.gang("job", 2)
    plan = w.decide()
    w.settle(plan, job_1=REFUSED)
    w.node("n0", cpu=1)
    w.decide(after_s=60)
    assert not may_complete(w, plan)


def test_a_seal_of_an_earlier_plan_that_arrives_marked_starts_its_gang():
    """It was on its way when another member was refused and min was raised."""
    w = world(cpu=3)
    gang = w.gang("job", 2, pods=3)
    plan = w.decide()
    first, other, last = binds_of(plan)
    w.settle(plan_of(plan, first))
    w.observe(REFUSED(other))
    w.object("job", 3)
    w.decide()
    w.edit(last.name, node=last.node, attempt=plan.gangs[0].attempt, started=True)
    assert w.cluster.gangs[gang].started
