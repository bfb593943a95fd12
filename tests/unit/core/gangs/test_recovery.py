"""What a dead leader left half done is finished, or undone; what had started is left alone."""

import msgspec

from quorate.core.model.changes import BindFailure
from quorate.core.model.reasons import GangState, Reason
from tests.unit.core.recovery_world import GRACE_S, OURS, left_behind, world
from tests.unit.core.world import LABELS, World, accept, binds_of, fail, names


def test_the_rest_of_a_gang_is_bound_at_once_when_it_fits():
    w = world(cpu=4)
    gang = left_behind(w, 2)
    assert set(w.cycle()) == {"job-2", "job-3"}
    assert w.why(gang).state is GangState.STARTED
    assert w.decide(after_s=60).evictions == ()


def test_what_does_not_fit_is_undone_within_the_grace():
    w = world(cpu=3)
    left_behind(w, 2)
    plan = w.decide()
    assert (binds_of(plan), plan.evictions) == ([], ())
    assert plan.wake_at_s == w.now_s + GRACE_S
    assert names(w.decide(after_s=GRACE_S).evictions) == ["job-0", "job-1"]


def test_room_that_comes_within_the_grace_saves_it():
    w = world(cpu=3)
    left_behind(w, 2)
    w.decide()
    w.node("n1", cpu=1)
    assert set(w.cycle(after_s=1)) == {"job-2", "job-3"}
    assert w.decide(after_s=60).evictions == ()


def test_members_that_are_gone_do_not_save_it():
    w = world(cpu=4)
    left_behind(w, 2, pods=2)
    w.decide()
    assert names(w.decide(after_s=GRACE_S).evictions) == ["job-0", "job-1"]


def test_a_marked_member_says_that_the_gang_had_started():
    w = world(cpu=3)
    gang = left_behind(w, 3)
    w.edit("job-0", started=True)
    w.decide()
    assert w.why(gang).state is GangState.STARTED
    assert w.decide(after_s=60).evictions == ()


def test_a_mark_that_was_seen_counts_although_its_pod_goes_before_anything_is_decided():
    w = world(cpu=3)
    gang = left_behind(w, 3)
    w.edit("job-0", started=True)
    w.delete("job-0")
    w.decide()
    assert w.why(gang).state is GangState.STARTED
    assert w.decide(after_s=60).evictions == ()


def test_what_another_scheduler_bound_is_never_undone():
    w = world(cpu=3)
    left_behind(w, 2, attempt="", attempt_size=0)
    w.decide()
    assert w.decide(after_s=60).evictions == ()


def test_what_another_quorate_is_binding_is_its_own_business():
    w = world(cpu=3)
    gang = w.object("job", 4)
    for index in range(2):
        w.pod(f"job-{index}", gang, node="n0", scheduler="theirs", **OURS)
    w.decide()
    assert w.decide(after_s=60).evictions == ()


def test_an_undoing_that_was_cut_short_is_finished_at_once():
    w = world(cpu=3)
    left_behind(w, 3)
    w.edit("job-0", terminating=True)
    assert names(w.decide().evictions) == ["job-1", "job-2"]


def test_a_finished_member_of_a_gang_that_never_started_is_undone_too():
    w = world(cpu=2)
    left_behind(w, 2)
    w.edit("job-0", phase="Succeeded")
    w.pod("rival", cpu=2, node="n0", scheduler="other")
    w.decide()
    assert sorted(names(w.decide(after_s=GRACE_S).evictions)) == ["job-0", "job-1"]


def test_a_gang_by_labels_is_taken_up_too():
    w = world(cpu=3)
    gang = w.gang("job", 4, pods=0, dialect=LABELS)
    for index in range(4):
        more = {**OURS, "node": "n0"} if index < 2 else {}
        w.pod(f"job-{index}", gang, min_count=4, **more)
    w.decide()
    assert names(w.decide(after_s=GRACE_S).evictions) == ["job-0", "job-1"]


def test_undoing_is_asked_for_once():
    w = world(cpu=3)
    left_behind(w, 2)
    w.decide()
    w.decide(after_s=GRACE_S)
    assert w.decide(after_s=100).evictions == ()


def test_the_last_binds_of_a_plan_make_the_gang_quorate():
    w = world(cpu=8)
    w.gang("job", 3, pods=5)
    (gang,) = w.decide().gangs
    assert (gang.first, gang.started) == (2, False)
    single = World()
    single.node("n0")
    single.pod("alone")
    (gang,) = single.decide().gangs
    assert (gang.first, gang.started) == (0, False)


def test_what_follows_a_start_is_marked_at_once():
    w = world(cpu=2)
    w.gang("job", 2, pods=3)
    w.cycle()
    w.node("n1", cpu=1)
    (gang,) = w.decide().gangs
    assert (gang.first, gang.started) == (0, True)


def refuse(w: World, name: str, reason="OutOfcpu") -> None:
    (attempt,) = w.cluster.gangs[only_gang(w)].lifecycle.started_by or {"a"}
    w.edit(name, phase="Pending")  # it never ran
    w.edit(name, phase="Failed", refusal=reason, attempt=attempt)


def only_gang(w: World):
    return next(iter(w.cluster.gangs))


def bound_by_watch(w: World, name: str, node: str, attempt: str) -> None:
    w.edit(name, node=node, phase="Running", attempt=attempt)


def started_gang(w: World, count: int):
    """Start a gang; the watch has delivered what the Bindings left on its pods."""
    gang = w.gang("job", count)
    plan = w.decide()
    w.settle(plan)
    for bind in binds_of(plan):
        bound_by_watch(w, bind.name, bind.node, plan.gangs[0].attempt)
    return gang


def test_a_pod_that_its_kubelet_refused_counts_for_nothing():
    w = world(cpu=2)
    gang = started_gang(w, 2)
    refuse(w, "job-1")
    w.decide()
    why = w.why(gang)
    assert (why.members.bound, why.state) == (1, GangState.STARTING)
    assert w.used("n0") == 1000


def test_the_replacement_of_a_refused_member_goes_to_another_node():
    w = world(cpu=2)
    w.node("n1", cpu=2)
    gang = started_gang(w, 2)
    node = w.where("job-1")
    refuse(w, "job-1")
    w.pod("again", gang)
    other = {"n0": "n1", "n1": "n0"}[node]
    assert w.cycle() == {"again": other}


def test_a_gang_whose_refused_member_cannot_be_replaced_is_undone():
    w = world(cpu=2)
    w.object("job", 2, timeout_s=20)
    started_gang(w, 2)
    w.object("job", 2, timeout_s=20)
    refuse(w, "job-1")
    assert w.decide().evictions == ()
    assert names(w.decide(after_s=61).evictions) == ["job-0"]


def test_a_gang_whose_members_are_refused_one_after_the_other_is_undone_in_the_end():
    """The second is refused when the replacement of the first has made the gang quorate again."""
    w = world(cpu=3)
    gang = started_gang(w, 3)
    (founder,) = w.cluster.gangs[gang].lifecycle.started_by
    refuse(w, "job-1")
    w.node("n1", cpu=1)
    w.pod("again", gang)
    assert w.cycle() == {"again": "n1"}
    w.edit("job-2", phase="Pending")
    w.edit("job-2", phase="Failed", refusal="OutOfcpu", attempt=founder)
    w.decide()
    assert set(names(w.decide(after_s=61).evictions)) == {"job-0", "again"}


def test_a_member_that_is_refused_while_the_replacement_of_another_is_bound_is_not_forgotten():
    """Both were bound by the attempt before: the replacement makes nothing quorate."""
    w = world(cpu=3)
    gang = started_gang(w, 3)
    (founder,) = w.cluster.gangs[gang].lifecycle.started_by
    refuse(w, "job-1")
    w.node("n1", cpu=1)
    w.pod("again", gang)
    plan = w.decide()
    w.edit("job-2", phase="Pending")
    w.edit("job-2", phase="Failed", refusal="OutOfcpu", attempt=founder)
    w.settle(plan)
    assert not w.cluster.gangs[gang].started
    assert set(names(w.decide(after_s=61).evictions)) == {"job-0", "again"}


def test_a_member_of_a_dead_leader_that_is_refused_while_the_rest_is_bound_is_not_forgotten():
    w = world(cpu=4)
    left_behind(w, 3, phase="Pending")
    plan = w.decide()
    w.edit("job-1", phase="Failed", refusal="OutOfcpu")
    w.settle(plan)
    assert set(names(w.decide(after_s=61).evictions)) == {"job-0", "job-2", "job-3"}


def test_the_answer_to_a_bind_that_comes_after_the_refusal_changes_nothing():
    w = world(cpu=2)
    gang = w.gang("job", 2)
    plan = w.decide()
    first, last = binds_of(plan)
    w.observe(accept(first))
    bound_by_watch(w, first.name, first.node, plan.gangs[0].attempt)
    w.edit(
        last.name,
        node=last.node,
        phase="Failed",
        refusal="OutOfcpu",
        attempt=plan.gangs[0].attempt,
        started=True,
    )
    w.observe(accept(last))
    w.decide()
    assert w.why(gang).members.bound == 1
    assert w.used(first.node) == 1000
    assert names(w.decide(after_s=61).evictions) == [first.name]


def test_a_refusal_long_after_the_start_undoes_nothing():
    w = world(cpu=3)
    gang = started_gang(w, 2)
    w.delete("job-1")
    w.pod("again", gang)
    w.cycle()
    w.edit("again", node="n0", phase="Failed", refusal="OutOfcpu", attempt="later")
    w.decide()
    assert w.decide(after_s=1000).evictions == ()


def test_a_member_that_is_refused_after_it_ran_undoes_nothing():
    """Its node was restarted, and its kubelet admits what was there anew."""
    w = world(cpu=2)
    gang = started_gang(w, 2)
    (founder,) = w.cluster.gangs[gang].lifecycle.started_by
    w.edit("job-1", phase="Running")
    w.edit("job-1", phase="Failed", refusal="UnexpectedAdmissionError", attempt=founder)
    w.decide()
    assert w.decide(after_s=1000).evictions == ()
    assert w.cluster.gangs[gang].started


def test_a_refusing_node_is_tried_again_after_a_while():
    w = World(avoid_s=20.0)
    w.node("n0", cpu=2)
    gang = started_gang(w, 2)
    refuse(w, "job-1")
    w.pod("again", gang)
    plan = w.decide()
    assert binds_of(plan) == []
    assert w.why(gang).reason is Reason.BACKING_OFF
    assert "there is room with node n0, which refused a member" in w.why(gang).message
    w.delete("job-1")
    assert binds_of(w.decide(after_s=10)) == []
    assert names(binds_of(w.decide(after_s=11))) == ["again"]


def test_another_gang_may_use_the_node_that_refused_one():
    w = world(cpu=2)
    started_gang(w, 2)
    refuse(w, "job-1")
    w.decide()
    w.pod("other")
    assert w.cycle() == {"other": "n0"}


def test_a_repair_is_the_same_attempt_with_the_members_that_are_bound():
    w = world(cpu=4)
    left_behind(w, 3)
    (gang,) = w.decide().gangs
    assert gang.size == 4
    assert msgspec.structs.asdict(gang)["first"] == 0


def test_a_whole_gang_whose_object_went_while_it_was_bound_is_left_alone():
    w = world(cpu=2)
    gang = w.gang("job", 2)
    plan = w.decide()
    w.drop_object(gang)
    w.settle(plan)
    assert w.decide(after_s=100).evictions == ()


def test_a_part_of_a_gang_whose_object_went_is_undone():
    w = world(cpu=2)
    gang = w.gang("job", 2)
    plan = w.decide()
    w.drop_object(gang)
    w.settle(plan, job_1=fail(BindFailure.REFUSED))
    assert names(w.decide(after_s=100).evictions) == ["job-0"]
