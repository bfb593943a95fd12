"""A defect of ours costs the gang or object that met it, and is tried again later."""

from collections import Counter

import pytest
from msgspec.structs import replace

from quorate.core.check import verify
from quorate.core.cluster import cluster
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.write_outcomes import journal_found
from quorate.core.model import policy
from quorate.core.model.changes import BindFailure, JournalFound, PodBound
from quorate.core.model.journal import Journal
from quorate.core.model.reasons import Reason
from quorate.core.scheduler import Scheduler
from quorate.core.turn import cycle
from quorate.core.turn.defects import Defects
from quorate.core.turn.planning import Planner
from quorate.core.words import explain
from tests.invariants import check_all
from tests.unit.core.turn.defects import Planted, fails_for
from tests.unit.core.world import World, fail, key, names, world


def is_gang(name):
    return lambda one: isinstance(one, GangEntry) and one.key.name == name


def test_a_gang_that_planning_fails_on_costs_no_other_gang_its_turn(monkeypatch):
    w = world(nodes=4)
    for name in ("bad", "good", "other"):
        w.gang(name, 2)
    fails_for(monkeypatch, cycle, "members_of", is_gang("bad"))
    placed = {}
    for _ in range(3):
        placed |= w.cycle(after_s=0.1)
    assert sorted(placed) == ["good-0", "good-1", "other-0", "other-1"]
    said = w.why(key("bad"))
    (incident,) = w.scheduler.incidents()
    assert said.reason is Reason.INTERNAL_ERROR
    assert incident.id in said.message
    assert (incident.stage, incident.about) == ("decide", "team/bad")
    assert "planted" in incident.error


def test_what_is_set_aside_is_tried_again_ever_later_and_starts_when_the_defect_is_gone(
    monkeypatch,
):
    w = world(nodes=4)
    w.gang("bad", 2)
    with monkeypatch.context() as patch:
        fails_for(patch, cycle, "members_of", is_gang("bad"))
        waits_s = []
        for _ in range(4):
            w.decide()  # it meets the defect, and the state is built again
            plan = w.decide()
            waits_s.append(plan.wake_at_s - w.now_s)
            w.now_s = plan.wake_at_s
        assert waits_s == [1.0, 2.0, 4.0, 8.0]
    assert sorted(w.cycle()) == ["bad-0", "bad-1"]
    assert w.cluster.gangs[key("bad")].memory.aside.incident == ""


def test_a_pod_that_cannot_be_taken_in_is_set_aside_and_the_others_are_counted(monkeypatch):
    w = world(nodes=1)
    w.gang("first", 2)
    w.cycle()
    fails_for(monkeypatch, Cluster, "_class_of", lambda p: getattr(p, "name", "") == "bad")
    w.pod("bad", cpu=3)
    w.gang("later", 2)
    assert sorted(w.cycle()) == ["later-0", "later-1"]
    assert len(w.scheduler.incidents()) >= 1
    assert check_all(w.scheduler, w.now_s) == []


def test_a_bound_pod_that_cannot_be_read_still_takes_its_room(monkeypatch):
    w = world(nodes=1, cpu=4)

    def is_poison(one):
        return getattr(one, "name", "") == "bad" and bool(getattr(one, "labels", ()))

    fails_for(monkeypatch, Cluster, "_class_of", is_poison)
    w.running("bad", "n0", cpu=3, labels={"a": "b"})
    assert w.used("n0") == 3000
    w.gang("job", 2)
    assert w.cycle() == {}
    assert w.why(key("job")).reason is Reason.NOT_ENOUGH_ROOM


def test_an_object_is_taken_in_again_when_its_time_has_come(monkeypatch):
    w = world(nodes=1)
    with monkeypatch.context() as patch:
        fails_for(patch, Cluster, "_class_of", lambda p: bool(getattr(p, "labels", ())))
        w.pod("bad", labels={"a": "b"})
        plan = w.decide()
        assert plan.gangs == ()
        pod = w.cluster.pods["uid-bad"].pod
        assert pod.defect_reason == Reason.INTERNAL_ERROR
    w.now_s = plan.wake_at_s
    assert w.cycle() == {"bad": "n0"}
    assert not w.scheduler._defects


def test_the_outcome_of_a_bind_that_met_a_defect_is_not_lost(monkeypatch):
    w = world(nodes=4)
    w.gang("job", 2)
    plan = w.decide()
    with monkeypatch.context() as patch:
        fails_for(patch, Cluster, "move", lambda one: getattr(one, "ours", False))
        w.observe(*(PodBound(b.uid, b.node) for g in plan.gangs for b in g.binds))
    for after_s in (0.0, 1.0, 2.0, 4.0):
        w.decide(after_s)
    assert w.why(key("job")).members.bound == 2
    assert check_all(w.scheduler, w.now_s) == []


def test_the_journal_of_the_previous_leader_is_read_again_at_once_after_a_defect(monkeypatch):
    w = world(nodes=4)
    journal, left = Journal("before", 1, None), [1]

    def planted(cluster, change):
        if left:
            left.pop()
            raise Planted("planted")
        journal_found(cluster, change)

    monkeypatch.setitem(cluster._HANDLERS, JournalFound, planted)
    w.observe(JournalFound(journal))
    assert len(w.scheduler.incidents()) == 1
    assert w.cluster.previous_journal == journal


def test_binds_under_way_are_kept_when_the_state_is_built_again():
    w = world(nodes=4)
    w.gang("job", 2)
    plan = w.decide()
    w.scheduler._rebuild()
    assert check_all(w.scheduler, w.now_s) == []
    assert w.cluster.gangs[key("job")].assumed == 2
    w.settle(plan)
    assert w.decide().gangs == ()
    assert w.why(key("job")).members.bound == 2


def test_a_plan_that_cannot_be_checked_is_not_sent(monkeypatch):
    w = world(nodes=4)
    w.gang("bad", 2)
    w.gang("good", 2)
    plan = w.scheduler.decide(w.now_s)
    fails_for(
        monkeypatch, verify, "_gang_problems", lambda one: getattr(one, "key", None) == key("bad")
    )
    sound, problems = w.scheduler.verified(plan)
    assert [str(gang.key) for gang in sound.gangs] == ["team/good"]
    assert all("InternalError" in problem for problem in problems)
    assert w.why(key("bad")).members.assumed == 0
    assert check_all(w.scheduler, w.now_s) == []


def test_an_explanation_that_fails_is_said_to_have_failed_and_the_others_are_made(monkeypatch):
    w = world(nodes=1, cpu=1)
    w.gang("bad", 2)
    w.gang("good", 2)
    w.cycle()
    from quorate.core.words import explain

    fails_for(monkeypatch, explain, "held_by", is_gang("bad"))
    assert w.why(key("bad")).reason is Reason.INTERNAL_ERROR
    assert w.why(key("good")).reason is Reason.NOT_ENOUGH_ROOM
    assert [one.stage for one in w.scheduler.incidents()] == ["explain"]


def test_a_failing_assertion_of_a_plan_drops_that_plan_alone(monkeypatch):
    w = world(nodes=4)
    w.gang("bad", 2)
    w.gang("good", 2)
    fails_for(
        monkeypatch,
        GangEntry,
        "take_waiting",
        lambda one: isinstance(one, GangEntry) and one.key.name == "bad",
    )
    placed = {}
    for _ in range(3):
        placed |= w.cycle(after_s=0.1)
    assert sorted(placed) == ["good-0", "good-1"]
    assert w.why(key("bad")).reason is Reason.INTERNAL_ERROR
    assert check_all(w.scheduler, w.now_s) == []


@pytest.mark.parametrize("stage", ["step", "_take_news"])
def test_a_defect_in_what_comes_before_planning_costs_one_decision(monkeypatch, stage):
    w = world(nodes=4)
    w.gang("job", 2)
    with monkeypatch.context() as patch:
        from quorate.core.lifecycle.advancing import Advance

        def planted(*_arguments):
            raise Planted("planted")

        patch.setattr(Advance, stage, planted)
        w.decide()
    placed = {}
    for _ in range(3):
        placed |= w.cycle(after_s=1.0)
    assert sorted(placed) == ["job-0", "job-1"]


def test_what_is_due_is_sent_although_a_defect_keeps_all_else_from_being_decided(monkeypatch):
    w = world(nodes=1, cpu=2)
    w.gang("job", 2)
    w.settle(w.decide(), job_1=fail(BindFailure.REFUSED))
    w.node("n0", cpu=1)  # too small for the other one
    w.decide()
    with monkeypatch.context() as patch:

        def planted(*_arguments):
            raise Planted("planted")

        patch.setattr(Planner, "plan", planted)
        plan = w.decide(after_s=60)
    assert names(plan.evictions) == ["job-0"]
    assert names(w.decide(after_s=60).evictions) == []  # not once more


def test_after_a_restart_the_same_poison_is_set_aside_before_anybody_waits_for_it(monkeypatch):
    w = world(nodes=4)
    for name in ("a-bad", "b-good"):
        w.gang(name, 2)
    fails_for(monkeypatch, cycle, "members_of", is_gang("a-bad"))
    again = World()
    again.observe(*(change for _, change in w.scheduler._objects.all(w.cluster)))
    again.pods, again.now_s = dict(w.pods), w.now_s
    placed = {**again.cycle(), **again.cycle()}
    assert sorted(placed) == ["b-good-0", "b-good-1"]


def test_poison_that_changes_all_the_time_is_not_tried_at_each_change(monkeypatch):
    w = world(nodes=4)
    w.gang("bad", 1)
    tries = []
    real = cycle.members_of

    def planted(gang, *rest):
        tries.append(gang.key)
        if gang.key.name == "bad":
            raise Planted("planted")
        return real(gang, *rest)

    monkeypatch.setattr(cycle, "members_of", planted)
    for index in range(50):
        w.tell(replace(w.pods["bad-0"], labels=(("turn", str(index)),)))
        w.decide(after_s=0.1)
    assert len(tries) <= 5
    assert names(w.pods.values()) == ["bad-0"]


@pytest.mark.parametrize("odd", [1, 20])
def test_many_odd_objects_at_once_have_the_state_built_again_twice_and_no_more(odd, monkeypatch):
    w = world(nodes=4)
    fails_for(monkeypatch, Cluster, "_class_of", lambda p: bool(getattr(p, "labels", ())))
    built = []
    build = Scheduler._rebuild
    monkeypatch.setattr(Scheduler, "_rebuild", lambda self: (built.append(1), build(self)))
    for index in range(odd):
        w.pod(f"odd-{index}", labels={"a": "b"})
    w.gang("good", 2)
    placed = w.cycle()
    assert sorted(placed) == ["good-0", "good-1"]
    assert len(built) == min(odd, 2)
    built.clear()
    w.cycle(after_s=2.0)
    w.cycle(after_s=2.0)
    assert len(built) <= 2 * 2


def test_a_pod_of_which_every_version_meets_a_defect_is_left_out_until_its_time_comes(monkeypatch):
    w = world(nodes=1)
    met = []
    with monkeypatch.context() as patch:
        fails_for(patch, Cluster, "_class_of", lambda p: getattr(p, "name", "") == "bad")
        w.running("bad", "n0", cpu=3)
        w.decide()
        met.append(len(w.scheduler.incidents()))
        for index in range(20):
            w.edit("bad", labels=(("a", str(index)),))
        met.append(len(w.scheduler.incidents()))
        plan = w.decide()
        w.gang("good", 2)
        assert sorted(w.cycle()) == ["good-0", "good-1"]
    assert met == [3, 0]
    w.now_s = plan.wake_at_s
    w.decide()
    assert w.used("n0") == 5000
    assert check_all(w.scheduler, w.now_s) == []


def test_a_gang_that_cannot_be_explained_keeps_one_sentence_until_it_is_tried_again(monkeypatch):
    w = world(nodes=4)
    w.gang("bad", 9, cpu=8)
    w.decide()
    with monkeypatch.context() as patch:
        fails_for(patch, explain, "held_by", is_gang("bad"))
        said = {w.why(key("bad")).message for _ in range(20)}
        (incident,) = w.scheduler.incidents()
        assert said == {w.why(key("bad")).message}
        assert incident.id in said.pop()
    plan = w.decide()
    assert plan.wake_at_s - w.now_s == 1.0
    w.now_s = plan.wake_at_s
    assert key("bad") in w.decide().touched
    assert w.why(key("bad")).reason is Reason.NOT_ENOUGH_ROOM


def test_of_more_defects_than_are_kept_the_number_is_told_by_stage():
    defects = Defects("q")
    for index in range(policy.INCIDENTS_KEPT_MAX + 30):
        defects.note("explain" if index % 3 else "decide", "x", ValueError("no"))
    told = Counter()
    for one in defects.take_incidents():
        told[one.stage] += one.times
    assert told == {"decide": 44, "explain": 86}
    assert defects.take_incidents() == []
