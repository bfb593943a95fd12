"""The room of a lost member of a started gang stays for its replacement, and for how long."""

import pytest

from quorate.core.model import HostPort, Owner, Toleration
from quorate.core.model.changes import BindFailure, OwnerChanged
from quorate.core.model.reasons import Reason
from tests.unit.core.held_world import UNKNOWN, full_world, held, lose, replace
from tests.unit.core.world import LABELS, TEAM, World, binds_of, fail, key

JOB = Owner("batch/v1", "Job", "a")


def test_a_replacement_gets_the_room_though_an_older_gang_waits():
    w = full_world()
    node = lose(w, "a-1")
    assert w.cycle() == {}
    assert held(w) == [node]
    assert w.cluster.reservations.wake_at_s() == w.now_s + 300.0
    replace(w)
    assert w.cycle() == {"a-new": node}
    assert held(w) == []


def test_room_beside_a_replacement_is_given_out_in_the_same_cycle():
    w = World()
    w.node("n0", cpu=3)
    w.gang("a", 2, created_s=100.0, owner=UNKNOWN)
    w.cycle()
    lose(w, "a-1")
    replace(w)
    w.pod("alone", created_s=300.0)
    assert w.cycle() == {"a-new": "n0", "alone": "n0"}


def test_a_replacement_that_comes_before_the_room_is_free_gets_it_too():
    w = full_world()
    node = w.where("a-1")
    w.edit("a-1", node=node, phase="Running", terminating=True)
    replace(w)
    assert w.cycle() == {}
    w.delete("a-1")
    assert w.cycle() == {"a-new": node}
    assert len(w.cluster.reservations) == 0


def test_a_failed_member_leaves_its_room_before_it_is_deleted():
    w = full_world()
    node = w.where("a-1")
    w.edit("a-1", node=node, phase="Failed")
    assert w.cycle() == {}
    assert held(w) == [node]
    w.delete("a-1")
    assert w.cycle() == {}
    assert held(w) == [node]


def test_a_member_that_was_told_to_go_and_then_ends_well_is_lost_all_the_same():
    w = full_world()
    node = w.where("a-1")
    w.edit("a-1", node=node, phase="Running", terminating=True)
    w.edit("a-1", phase="Succeeded")
    w.cycle()
    assert held(w) == [node]


def test_nothing_is_held_for_a_member_that_has_succeeded():
    w = full_world()
    w.edit("a-1", node=w.where("a-1"), phase="Succeeded")
    assert list(w.cycle()) == ["b-0"]
    w.delete("a-1")
    w.cycle()
    assert held(w) == []


def test_nothing_is_held_for_a_gang_that_is_going_as_a_whole():
    w = full_world()
    node = w.where("a-0")
    for index in range(4):
        w.edit(f"a-{index}", node=w.where(f"a-{index}"), phase="Running", terminating=True)
    w.delete("a-0")
    assert w.cycle() == {"b-0": node}
    assert len(w.cluster.reservations) == 0
    w.delete("a-1", "a-2", "a-3")
    w.cycle()
    assert w.cluster.reservations.missing(key("a")) == 0


def test_a_hold_ends_when_the_rest_of_its_gang_goes():
    w = full_world()
    lose(w, "a-0")
    w.cycle()
    assert len(held(w)) == 1
    for index in (1, 2, 3):
        w.edit(f"a-{index}", node=w.where(f"a-{index}"), terminating=True)
    plan = w.decide()
    w.settle(plan)
    assert list(w.cycle()) == ["b-0"] or w.where("b-0")
    assert held(w) == []


def test_the_hold_ends_with_its_time_and_the_next_gang_is_placed_without_news():
    w = full_world()
    node = lose(w, "a-1")
    plan = w.decide()
    assert plan.wake_at_s == w.now_s + 300.0
    assert w.cycle(after_s=299.0) == {}
    assert w.cycle(after_s=1.0) == {"b-0": node}
    assert held(w) == []
    replace(w)
    assert w.cycle() == {}


@pytest.mark.parametrize(("priority", "takes_it"), [(4, False), (5, False), (6, True)])
def test_only_a_gang_of_higher_priority_takes_held_room(priority, takes_it):
    w = full_world(priority=5)
    node = lose(w, "a-1")
    w.cycle()
    w.gang("c", 1, priority=priority)
    assert w.cycle() == ({"c-0": node} if takes_it else {})
    assert held(w) == ([] if takes_it else [node])


def test_a_gang_of_higher_priority_leaves_held_room_alone_while_it_fits_elsewhere():
    w = full_world(priority=5)
    node = lose(w, "a-1")
    w.node("free", cpu=1)
    w.gang("c", 1, priority=6)
    assert w.cycle()["c-0"] == "free"
    assert held(w) == [node]


def test_a_replacement_that_does_not_fit_where_it_was_goes_elsewhere_and_the_room_is_free():
    w = full_world()
    node = lose(w, "a-1")
    w.node("large", cpu=2, taints=["large:NoSchedule"])
    replace(w, cpu=2, spec={"tolerations": (Toleration(operator="Exists"),)})
    plan = w.decide()
    w.settle(plan)
    assert w.where("a-new") == "large"
    assert plan.wake_at_s == w.now_s  # the other was tried before, and is to be tried again
    assert w.cycle() == {"b-0": node}


def test_a_replacement_that_is_on_its_way_already_means_that_nothing_is_held():
    """It was placed on other room while the lost one was still terminating."""
    w = full_world()
    w.edit("a-1", node=w.where("a-1"), phase="Running", terminating=True)
    w.delete("b-0")
    w.node("free", cpu=1)
    replace(w)
    assert w.cycle() == {"a-new": "free"}
    w.delete("a-1")
    w.cycle()
    assert held(w) == []


def test_a_bind_that_fails_gives_the_hold_back():
    w = full_world()
    node = lose(w, "a-1")
    w.decide()
    until_s = w.cluster.reservations.wake_at_s()
    replace(w)
    w.cycle(outcome=fail(BindFailure.REFUSED), after_s=1.0)
    assert held(w) == [node]
    assert w.cluster.reservations.wake_at_s() == until_s


def test_a_replacement_that_is_deleted_before_it_is_bound_gives_the_hold_back():
    w = full_world()
    node = lose(w, "a-1")
    replace(w)
    w.decide()
    w.delete("a-new")
    assert w.cycle() == {}
    assert held(w) == [node]


@pytest.mark.parametrize(
    "what",
    [
        lambda w, node: w.lose_node(node),
        lambda w, node: w.node(node, cpu=1, cordoned=True),
        lambda w, node: w.node(node, cpu=1, taints=["x:NoExecute"]),
        lambda w, node: w.running("foreign", node, cpu=1),
        lambda w, node: w.object("a", 3),
    ],
    ids=["node gone", "cordoned", "tainted", "taken by another scheduler", "min lowered"],
)
def test_a_hold_ends_when_it_can_be_of_no_use(what):
    w = full_world()
    node = lose(w, "a-1")
    w.cycle()
    assert held(w) == [node]
    what(w, node)
    w.cycle()
    assert held(w) == []


def test_nothing_is_held_on_a_node_that_is_being_drained():
    w = full_world()
    w.node(w.where("a-1"), cpu=1, cordoned=True)
    w.cycle()
    lose(w, "a-1")
    w.cycle()
    assert held(w) == []


def test_nothing_is_held_where_a_kubelet_refused_the_member():
    w = full_world()
    w.edit("a-1", node=w.where("a-1"), phase="Failed", refusal="OutOfcpu")
    w.cycle()
    assert held(w) == []


def test_nothing_is_held_of_a_gang_that_never_started():
    w = World()
    w.node("n0", cpu=2)
    w.gang("a", 2, owner=UNKNOWN)
    plan = w.decide()
    w.settle(plan, a_1=fail(BindFailure.REFUSED))
    w.delete("a-0")
    w.decide()
    assert len(w.cluster.reservations) == 0


@pytest.mark.parametrize(("makes", "holds"), [(4, 1), (3, 0), (None, 0)])
def test_the_owner_is_asked_whether_it_will_replace_a_member_beyond_min(makes, holds):
    w = full_world(minimum=2, owner=JOB)
    lose(w, "a-1")
    w.cycle()
    assert len(held(w)) == 1
    assert w.scheduler.explainer(w.now_s).owners(key("a")) == (JOB,)
    w.observe(OwnerChanged(TEAM, JOB, makes))
    w.cycle()
    assert len(held(w)) == holds
    assert w.scheduler.explainer(w.now_s).owners(key("a")) == ()


def test_below_min_room_is_held_though_the_owner_cannot_say_how_many_it_makes():
    w = full_world(owner=UNKNOWN)
    lose(w, "a-1")
    w.cycle()
    w.observe(OwnerChanged(TEAM, UNKNOWN, None))
    w.cycle()
    assert len(held(w)) == 1


@pytest.mark.parametrize(
    ("object_s", "member_s", "length_s"),
    [(None, None, 300.0), (20.0, None, 20.0), (None, 30.0, 30.0), (20.0, 30.0, 20.0)],
)
def test_the_object_says_how_long_before_the_member_does(object_s, member_s, length_s):
    w = full_world(hold_s=member_s)
    w.object("a", 4, hold_s=object_s)
    lose(w, "a-1")
    w.cycle()
    assert w.cluster.reservations.wake_at_s() == w.now_s + length_s


def test_a_length_of_0_holds_nothing():
    w = full_world(hold_s=0.0)
    lose(w, "a-1")
    assert list(w.cycle()) == ["b-0"]


def test_two_lost_members_have_two_holds_and_each_replacement_uses_one():
    w = full_world()
    nodes = sorted([lose(w, "a-1"), lose(w, "a-2")])
    w.cycle()
    assert held(w) == nodes
    replace(w, "a-new")
    first = w.cycle()["a-new"]
    assert held(w) == [node for node in nodes if node != first]
    replace(w, "a-newer")
    assert sorted([first, w.cycle()["a-newer"]]) == nodes


def test_a_gang_by_labels_has_holds_too():
    w = World()
    w.node("n0", cpu=2)
    w.gang("a", 2, dialect=LABELS, owner=UNKNOWN)
    w.cycle()
    lose(w, "a-1")
    w.decide()
    assert [reservation.node for reservation in w.cluster.reservations] == ["n0"]


def test_the_gang_that_does_not_fit_because_of_a_hold_says_so():
    w = full_world()
    node = lose(w, "a-1")
    w.cycle()
    why = w.why(key("b"))
    assert why.reason is Reason.ROOM_HELD
    assert why.message == (
        "0/4 nodes are available: 4 Insufficient cpu. "
        f"1 member must start now and 0 fit: node {node} holds room for gang team/a "
        "until 00:21:40 UTC"
    )
    assert w.why(key("a")).held == (
        f"room for 1 replacement is held until 00:21:40 UTC on node {node}"
    )
    w.gang("c", 2)
    w.cycle()
    assert w.why(key("c")).reason is Reason.NOT_ENOUGH_ROOM


def test_so_does_a_pod_of_no_gang():
    w = full_world()
    lose(w, "a-1")
    w.pod("alone")
    w.cycle()
    why = w.why(w.cluster.pods["uid-alone"].gang.key)
    assert why.reason is Reason.ROOM_HELD


def test_min_resources_do_not_count_held_room():
    w = full_world()
    lose(w, "a-1")
    w.cycle()
    w.object("c", 1, min_resources=(("cpu", 1000),))
    w.pod("c-0", key("c"))
    w.cycle()
    assert w.why(key("c")).reason is Reason.MIN_RESOURCES_SHORT


def test_a_hold_is_counted_on_no_node():
    w = full_world()
    node = lose(w, "a-1")
    w.cycle()
    assert w.used(node) == 0


def test_a_replica_that_only_watches_forgets_losses_that_were_replaced():
    w = full_world()
    for turn in range(3):
        name = f"a-{turn}"
        node = w.where(name)
        w.edit(name, node=node, phase="Running", terminating=True)
        w.delete(name)
        replace(w, f"a-again-{turn}", node=node)  # another replica has bound it
    assert len(w.cluster.reservations) == 0
    assert w.cluster.reservations.missing(key("a")) == 0


def test_host_ports_are_held_too():
    w = World()
    w.node("n0", cpu=8)
    w.node("n1", cpu=8)
    spec = {"host_ports": (HostPort("TCP", "0.0.0.0", 80),)}
    w.gang("a", 2, spec=spec, owner=UNKNOWN)
    w.cycle()
    node = lose(w, "a-1")
    w.decide()
    w.gang("b", 1, spec=spec)
    assert w.cycle() == {}
    replace(w, spec=spec)
    assert w.cycle() == {"a-new": node}


# Who waits is told of what is held, and told anew when that is different


def test_a_gang_is_explained_again_when_a_hold_begins_and_when_it_ends():
    w = full_world()
    w.cycle()
    lose(w, "a-1")
    told = [key("b") in w.decide(0.1).touched for _ in range(3)]
    assert told == [True, False, False]
    assert key("b") in w.decide(10_000).touched


def test_a_gang_is_explained_again_when_a_replacement_takes_what_was_held():
    w = full_world()
    lose(w, "a-1")
    w.decide()
    replace(w)
    taking = w.decide()
    assert [bind.name for bind in binds_of(taking)] == ["a-new"]
    assert key("b") in taking.touched
    w.settle(taking)
    assert key("b") not in w.decide(0.1).touched
