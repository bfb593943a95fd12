"""What a gang means: one test for each row of docs/users/semantics.md."""

import pytest

from quorate.core.model import Membership, Owner
from quorate.core.model.changes import BindFailure, OwnerChanged
from quorate.core.model.reasons import GangState, Reason
from tests.unit.core.world import LABELS, VOLCANO, X_K8S, World, accept, binds_of, fail, key, world


def test_nothing_starts_while_fewer_members_exist_than_min():
    w = world()
    gang = w.gang("job", 4, pods=2)
    assert w.cycle() == {}
    said = w.why(gang)
    assert said.reason is Reason.NOT_ENOUGH_MEMBERS
    assert said.message == "2 of 4 members exist"


def test_the_reason_says_which_owner_would_have_to_make_more():
    w = world()
    owner = Owner("apps/v1", "Deployment", "web")
    gang = w.gang("job", 4, pods=2, owner=owner)
    w.observe(OwnerChanged("team", owner, 2))
    w.cycle()
    said = w.why(gang)
    assert said.reason is Reason.OWNER_MAKES_TOO_FEW
    assert said.message == "2 of 4 members exist; Deployment web makes 2"


def test_too_little_room_holds_nothing_and_others_may_use_it():
    w = world(cpu=3)
    large = w.gang("large", 4)
    w.gang("small", 2, created_s=9.0)
    assert set(w.cycle()) == {"small-0", "small-1"}
    assert w.why(large).members.assumed == 0
    assert w.used("n0") == 2000


def test_min_and_as_many_more_as_fit_start_and_the_rest_follow_singly():
    w = world(cpu=3)
    gang = w.gang("job", 2, pods=5)
    assert len(w.cycle()) == 3
    assert w.why(gang).state is GangState.STARTED
    w.node("n1", cpu=1)
    assert len(w.cycle()) == 1
    w.node("n2", cpu=1)
    assert len(w.cycle()) == 1


@pytest.mark.parametrize("held", [{"gates": ("wait",)}, {"terminating": True}])
def test_gated_and_terminating_members_do_not_count_towards_quorum(held):
    w = world()
    gang = w.gang("job", 3, pods=2)
    w.pod("job-2", gang, **held)
    assert w.cycle() == {}
    w.pod("job-3", gang)
    assert set(w.cycle()) == {"job-0", "job-1", "job-3"}


def test_a_gang_starts_when_its_last_gate_is_removed():
    w = world()
    gang = w.gang("job", 2, gates=("quota",))
    w.cycle()
    assert w.why(gang).reason is Reason.MEMBERS_GATED
    w.edit("job-0", gates=())
    assert w.cycle() == {}
    w.edit("job-1", gates=())
    assert len(w.cycle()) == 2


@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded", "Failed"])
def test_bound_members_count_whatever_their_phase_while_one_of_them_is_alive(phase):
    w = world(cpu=8)
    gang = w.object("job", 4)
    w.pod("runs", gang, node="n0", phase="Running")
    w.pod("done", gang, node="n0", phase=phase)
    w.pod("a", gang)
    assert w.cycle() == {}
    w.pod("b", gang)
    assert set(w.cycle()) == {"a", "b"}


def started_gang_beside_another(w):
    """Gang a of 3 runs, with the marks of our Bindings; gang b of 4 has one waiting member."""
    w.gang("a", 3)
    plan = w.decide()
    (binds,) = plan.gangs
    w.settle(plan)
    for index, bind in enumerate(binds.binds):
        marks = {"attempt": binds.attempt, "attempt_size": 3, "started": index >= binds.first}
        w.edit(bind.name, node=bind.node, phase="Running", **marks)
    other = w.object("b", 4)
    w.pod("b-0", other)
    w.decide(after_s=1.0)
    return other, [bind.name for bind in binds.binds]


@pytest.mark.parametrize("which", [0, 2])
def test_a_bound_pod_that_is_relabelled_into_another_gang_starts_nothing_and_stays(which):
    w = world(cpu=16)
    other, names = started_gang_beside_another(w)
    w.edit(names[which], membership=Membership(other))
    for after_s in (0.0, 1.0, 2.0, 5.0, 60.0):
        plan = w.decide(after_s)
        assert not plan.evictions
        assert not plan.gangs
    assert w.why(other).state is GangState.WAITING
    assert w.why(other).members.bound == 0  # it is nobody's but its node's


def test_a_successor_knows_by_the_binding_that_a_pod_was_bound_for_another_gang():
    w = world(cpu=16)
    other = w.object("b", 4)
    marks = {"attempt": "a-1", "started": True, "bound_for": "x-k8s/team/a"}
    w.pod("moved", other, node="n0", phase="Running", **marks)
    w.pod("b-0", other)
    for after_s in (0.0, 1.0, 60.0):
        plan = w.decide(after_s)
        assert not plan.evictions
        assert not plan.gangs
    assert w.why(other).state is GangState.WAITING


@pytest.mark.parametrize("min_count", [0, 1])
def test_min_that_is_lowered_while_binds_are_under_way_evicts_nobody(min_count):
    w = world(cpu=8)
    gang = w.gang("job", 2)
    plan = w.decide()
    first, second = plan.gangs[0].binds
    w.observe(accept(first))
    w.object("job", min_count)
    w.observe(fail(BindFailure.REFUSED)(second))
    for after_s in (1.0, 60.0, 300.0):
        assert not w.decide(after_s).evictions
    assert w.why(gang).members.bound >= 1


@pytest.mark.parametrize("refused", [False, True])
def test_min_resources_hold_a_gang_whatever_nodes_it_avoids(refused):
    w = World()
    for index in range(2):
        w.node(f"n{index}", cpu=4)
    gang = w.object("job", 1, min_resources=(("cpu", 9000),))
    w.pod("job-0", gang)
    if refused:
        w.cluster.gangs[gang].memory.avoid = {"n0": w.now_s + 300.0}
    assert w.cycle() == {}
    assert w.why(gang).reason is Reason.MIN_RESOURCES_SHORT


def test_a_deleted_bound_member_counts_no_more():
    w = world()
    gang = w.object("job", 2)
    w.pod("old", gang, node="n0", phase="Succeeded")
    w.delete("old")
    w.pod("new", gang)
    assert w.cycle() == {}


def test_a_started_gang_replaces_a_lost_member_alone_and_at_once():
    w = world()
    gang = w.gang("job", 4)
    w.cycle()
    w.delete("job-1")
    w.pod("job-again", gang)
    assert set(w.cycle()) == {"job-again"}


def test_members_wait_while_the_object_is_missing_and_start_when_it_appears():
    w = world()
    gang = key("job")
    w.pod("a", gang)
    w.pod("b", gang)
    assert w.cycle() == {}
    assert w.why(gang).reason is Reason.GANG_OBJECT_MISSING
    w.object("job", 2)
    assert set(w.cycle()) == {"a", "b"}


def test_members_wait_when_the_object_is_deleted_and_nothing_running_is_touched():
    w = world(cpu=2)
    gang = w.gang("job", 2, pods=3)
    w.cycle()
    w.drop_object(gang)
    w.node("n1")
    plan = w.decide()
    assert binds_of(plan) == []
    assert plan.evictions == ()
    assert w.why(gang).reason is Reason.GANG_OBJECT_MISSING
    assert w.why(gang).members.bound == 2


def test_an_edited_min_counts_in_the_next_cycle():
    w = world()
    gang = w.gang("job", 4, pods=2)
    assert w.cycle() == {}
    w.object("job", 2)
    assert len(w.cycle()) == 2
    assert w.why(gang).state is GangState.STARTED


def test_a_min_raised_while_waiting_holds_the_gang():
    w = world(cpu=2)
    w.gang("job", 3, pods=3)
    w.cycle()
    w.object("job", 4)
    w.node("n1")
    assert w.cycle() == {}


def test_an_object_with_min_zero_is_met_by_any_member():
    w = world(cpu=1)
    w.gang("job", 0, pods=2, dialect=VOLCANO)
    assert len(w.cycle()) == 1


def test_an_ordinary_pod_is_a_gang_of_one():
    w = world()
    w.pod("alone")
    assert w.cycle() == {"alone": "n0"}


@pytest.mark.parametrize(
    ("first", "second", "field"),
    [
        ({"priority": 1}, {"priority": 2}, "spec.priority: 1 and 2"),
        ({"min_count": 2}, {"min_count": 3}, "label example.com/min-available: 2 and 3"),
        (
            {"scheduler": "quorate"},
            {"scheduler": "default-scheduler"},
            "spec.schedulerName: quorate and default-scheduler",
        ),
    ],
)
def test_a_gang_whose_members_disagree_waits_and_names_both(first, second, field):
    w = world()
    gang = key("job", LABELS)
    w.pod("a", gang, **{"min_count": 2, **first})
    w.pod("b", gang, **{"min_count": 2, **second})
    w.pod("c", gang, **{"min_count": 2, **first})
    assert w.cycle() == {}
    said = w.why(gang)
    assert said.reason is Reason.MEMBERS_DISAGREE
    assert said.message == f"pods a and b disagree in {field}"
    w.delete("b")
    assert len(w.cycle()) == 2


def test_the_min_of_a_member_that_left_is_forgotten():
    w = world()
    gang = key("job", LABELS)
    w.pod("a", gang, min_count=2)
    w.pod("b", gang, min_count=2)
    w.pod("typo", gang, min_count=20)
    assert w.cycle() == {}
    w.delete("typo")
    assert set(w.cycle()) == {"a", "b"}


def test_the_same_name_in_two_namespaces_is_two_gangs():
    w = world()
    w.gang("job", 2, pods=1)
    other = w.gang("job", 2, pods=0, namespace="other")
    w.pod("there", other, namespace="other")
    assert w.cycle() == {}


def test_the_same_name_in_two_dialects_is_two_gangs():
    w = world()
    w.gang("job", 2, pods=1, dialect=X_K8S)
    w.pod("b", w.object("job", 2, dialect=VOLCANO))
    assert w.cycle() == {}


def test_min_resources_are_a_gate_until_the_gang_has_started():
    w = world(cpu=4)
    gang = w.gang("job", 1, pods=2, gang_spec={"min_resources": (("cpu", 6000),)})
    assert w.cycle() == {}
    assert w.why(gang).reason is Reason.MIN_RESOURCES_SHORT
    w.node("n1", cpu=2)
    assert len(w.cycle()) == 2


def test_pods_of_another_scheduler_are_never_ours_and_always_counted():
    w = world(cpu=4)
    w.running("foreign", "n0", cpu=3)
    w.pod("waits-elsewhere", scheduler="default-scheduler")
    w.gang("job", 2)
    assert w.cycle() == {}
    w.delete("foreign")
    assert set(w.cycle()) == {"job-0", "job-1"}


@pytest.mark.parametrize(
    ("asked_s", "bound_s"), [(None, 60), (0.0, 60), (-5.0, 60), (10.0, 10), (9999.0, 900)]
)
def test_the_timeout_of_an_object_bounds_one_attempt(asked_s, bound_s):
    w = world()
    w.gang("job", 2, gang_spec={"timeout_s": asked_s})
    plan = w.decide()
    assert plan.gangs[0].deadline_s == w.now_s + bound_s
    w.settle(plan, job_1=fail(BindFailure.REFUSED))
    w.lose_node("n0")
    assert w.decide(after_s=bound_s - 1).evictions == ()
    assert len(w.decide(after_s=1).evictions) == 1


def test_two_dialects_on_one_pod_are_said_aloud():
    w = world(cpu=0)
    gang = w.gang("job", 1, warning="the pod names a Volcano group, too")
    w.cycle()
    assert w.why(gang).warnings == ("the pod names a Volcano group, too",)
