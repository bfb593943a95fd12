"""Gangs with a minimum for each task (Volcano's minTaskMember): none starts without all of them."""

import msgspec
import pytest

from quorate.core.check.verify import verify_gang
from quorate.core.cluster.gangs.tasks import missing_tasks
from quorate.core.model import GangSpec, Membership
from quorate.core.model.changes import BindFailure, PodBound, PodChanged
from quorate.core.model.reasons import Reason
from tests.unit.core.world import VOLCANO, World, fail, key

JOB = key("job", VOLCANO)
MASTER, WORKER = "master", "worker"


def world(*cpus, min_count=5, **least):
    w = World()
    for index, cpu in enumerate(cpus):
        w.node(f"n{index}", cpu=cpu)
    w.object("job", min_count, dialect=VOLCANO, min_by_task=tuple(sorted(least.items())))
    return w


def member(w, name, task, **more):
    w.pod(name, JOB, **more)
    w.edit(name, membership=Membership(JOB, task=task))


def members(w, task, count, **more):
    for index in range(count):
        member(w, f"{task}-{index}", task, **more)


@pytest.mark.parametrize(
    ("has", "missing"),
    [
        ({}, {"master": 1, "worker": 4}),
        ({"worker": 5}, {"master": 1}),
        ({"master": 1, "worker": 3}, {"worker": 1}),
        ({"master": 1, "worker": 4, "": 7}, {}),
    ],
)
def test_what_a_task_lacks_is_not_made_up_by_another(has, missing):
    spec = GangSpec(JOB, 5, min_by_task=(("master", 1), ("worker", 4)))
    assert missing_tasks(spec, has) == missing


def test_it_starts_when_each_task_has_enough_members():
    w = world(8, master=1, worker=4)
    members(w, WORKER, 4)
    assert w.cycle() == {}
    members(w, MASTER, 1)
    assert len(w.cycle()) == 5


def test_a_member_being_deleted_counts_for_no_task_of_a_gang_that_has_not_started():
    w = world(8, min_count=3, master=1, worker=2)
    member(w, "old", MASTER)
    members(w, WORKER, 2)
    w.cycle(worker_1=fail(BindFailure.REFUSED))
    w.edit("old", terminating=True)
    member(w, "worker-2", WORKER)
    assert w.cycle(after_s=2.0) == {}
    assert "task master" in w.why(JOB).message
    member(w, "new", MASTER)
    assert set(w.cycle(after_s=2.0)) >= {"new", "worker-1"}


def test_enough_members_of_the_wrong_task_are_too_few_and_the_reason_names_the_task():
    w = world(8, master=1, worker=4)
    members(w, WORKER, 6)
    assert w.cycle() == {}
    why = w.why(JOB)
    assert why.reason is Reason.NOT_ENOUGH_MEMBERS
    assert why.message == "6 of 5 members exist; task master has 0 of 1"
    assert why.hint == "create 1 of task master, or lower spec.minTaskMember"
    members(w, MASTER, 1)
    assert "master-0" in w.cycle()


def test_members_without_a_task_count_for_no_task():
    w = world(8, master=1, worker=4)
    members(w, "", 6)
    assert w.cycle() == {}
    assert "task master has 0 of 1; task worker has 0 of 4" in w.why(JOB).message


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        ({"gates": ("g",)}, Reason.MEMBERS_GATED),
        ({"defect": "odd", "defect_reason": "PodInvalid"}, Reason.POD_INVALID),
    ],
)
def test_a_task_whose_members_are_held_back_says_what_holds_them(held, reason):
    w = world(8, master=1, worker=4)
    members(w, WORKER, 5)
    member(w, "master-0", MASTER, **held)
    assert w.cycle() == {}
    assert w.why(JOB).reason is reason


def test_more_workers_than_needed_do_not_take_the_masters_room():
    """Greedy by size, the six workers of 2 cpu would come first and leave nothing."""
    w = world(4, 4, 2, min_count=5, master=1, worker=4)
    members(w, WORKER, 6, cpu=2)
    members(w, MASTER, 1, cpu=1)
    placed = w.cycle()
    assert len(placed) == 5
    assert "master-0" in placed
    assert w.cycle() == {}
    assert w.why(JOB).members.bound == 5


def test_a_master_that_fits_nowhere_keeps_the_workers_from_starting():
    w = world(4, 4, min_count=5, master=1, worker=4)
    members(w, WORKER, 6, cpu=1)
    members(w, MASTER, 1, cpu=5)
    assert w.cycle() == {}
    assert "5 members must start together and 4 fit" in w.why(JOB).message
    w.node("large", cpu=6)
    assert w.cycle()["master-0"] == "large"


def test_the_others_follow_when_it_has_started():
    w = world(8, min_count=3, master=1, worker=2)
    members(w, WORKER, 5)
    members(w, MASTER, 1)
    assert len(w.cycle()) == 3
    assert len(w.cycle()) == 3


def test_a_started_gang_replaces_any_member_alone():
    w = world(8, min_count=3, master=1, worker=2)
    members(w, WORKER, 2)
    members(w, MASTER, 1)
    assert len(w.cycle()) == 3
    w.delete("master-0")
    w.cycle()
    member(w, "worker-9", WORKER)
    assert list(w.cycle()) == ["worker-9"]
    member(w, "master-1", MASTER)
    assert list(w.cycle()) == ["master-1"]


def test_what_its_tasks_need_is_bound_before_the_bind_that_makes_it_quorate():
    w = world(9, min_count=5, master=1, zeal=2)
    members(w, WORKER, 4)
    members(w, "zeal", 2)
    members(w, MASTER, 1)
    [gang] = w.decide().gangs
    assert gang.first == 4
    first = {bind.name for bind in gang.binds[: gang.first]}
    assert {"master-0", "zeal-0", "zeal-1"} <= first
    assert len(gang.binds) == 7


def test_a_master_whose_bind_fails_holds_the_others_back_until_it_is_made_again():
    w = world(9, min_count=3, master=1)
    members(w, WORKER, 4)
    members(w, MASTER, 1)
    plan = w.decide()
    [gang] = plan.gangs
    held = {b.name.replace("-", "_"): fail(BindFailure.NOT_SENT) for b in gang.binds[gang.first :]}
    w.settle(plan, **(held | {"master_0": fail(BindFailure.GONE)}))
    w.delete("master-0")
    assert w.cycle(after_s=1) == {}
    assert w.why(JOB).message == "4 of 3 members exist; task master has 0 of 1"
    member(w, "master-1", MASTER)
    assert "master-1" in w.cycle(after_s=1)
    assert w.cluster.gangs[JOB].started


def test_min_bound_members_without_the_master_are_no_quorum():
    """Somebody else bound them; when the master comes it is placed, and that makes it quorate."""
    w = world(9, min_count=3, master=1)
    members(w, WORKER, 3)
    for index in range(3):
        w.edit(f"worker-{index}", node="n0", phase="Running")
    member(w, "worker-3", WORKER)
    assert w.cycle() == {}
    assert not w.cluster.gangs[JOB].started
    members(w, MASTER, 1)
    [gang] = w.decide().gangs
    assert [bind.name for bind in gang.binds] == ["master-0"]
    assert gang.first == 0
    w.observe(PodBound("uid-master-0", "n0"))
    assert w.cluster.gangs[JOB].started


def test_a_bind_that_would_stand_in_for_a_missing_master_is_not_sent():
    w = world(9, min_count=3, master=1)
    members(w, WORKER, 3)
    members(w, MASTER, 1)
    [gang] = w.decide().gangs
    sealing = gang.binds[gang.first].uid
    for bind in gang.binds[: gang.first]:
        w.observe(PodBound(bind.uid, bind.node))
    assert w.scheduler.may_complete(gang, sealing)
    w.delete("master-0")
    assert not w.scheduler.may_complete(gang, sealing)


def test_what_a_dead_leader_left_without_the_master_is_finished_or_undone():
    w = world(9, min_count=3, master=1)
    for index in range(3):
        member(w, f"worker-{index}", WORKER, node="n0", attempt="dead-1", attempt_size=4)
    assert w.decide().evictions == ()
    assert not w.cluster.gangs[JOB].started
    assert len(w.decide(after_s=3).evictions) == 3


def test_minima_that_are_edited_count_in_the_next_decision():
    w = world(9, min_count=3, master=1)
    members(w, WORKER, 3)
    assert w.cycle() == {}
    w.object("job", 3, dialect=VOLCANO)
    assert len(w.cycle()) == 3


def test_the_verifier_counts_by_itself():
    w = world(9, min_count=3, master=1)
    members(w, WORKER, 3)
    members(w, MASTER, 1)
    plan = w.decide()
    w.cluster.apply(PodChanged(msgspec.structs.replace(w.pods["master-0"], terminating=True)))
    w.delete("master-0")
    [gang] = plan.gangs
    binds = tuple(bind for bind in gang.binds if bind.name != "master-0")
    left = msgspec.structs.replace(gang, binds=binds)
    assert verify_gang(left, w.cluster) == [
        "gang team/job would start with 1 too few members of task master"
    ]


def test_min_that_is_raised_tears_down_no_gang_of_which_a_kubelet_refuses_one():
    w = World()
    w.node("n0", cpu=8)
    gang = w.object("job", 0, dialect=VOLCANO, timeout_s=5.0)
    for index in range(3):
        w.pod(f"job-{index}", gang)
    w.decide()
    w.observe(PodBound("uid-job-1", "n0"))
    w.object("job", 2, dialect=VOLCANO, min_by_task=(("worker", 1),))
    attempt = w.cluster.gangs[gang].attempt.id
    w.edit("job-2", node="n0", attempt=attempt, attempt_size=3, started=True)
    w.observe(PodBound("uid-job-0", "n0"))
    marks = {"attempt": attempt, "attempt_size": 3, "started": True}
    w.edit("job-2", node="n0", phase="Failed", refusal="NodeAffinity", **marks)
    assert w.decide().evictions == ()
    assert w.decide(after_s=30.0).evictions == ()
    assert w.cluster.gangs[gang].started
