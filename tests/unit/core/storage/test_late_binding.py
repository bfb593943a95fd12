"""Claims are bound before any pod of a gang is, and let go when one of them cannot be."""

import pytest

from quorate.core.model import ClaimUse, Membership
from quorate.core.model.reasons import Reason
from quorate.core.model.storage import ClaimRef
from quorate.core.turn.cycle import members_of
from tests.invariants import check_all
from tests.unit.core.storage_world import StorageWorld, nodes_of, on, planned, prepared
from tests.unit.core.world import binds_of, key


@pytest.fixture
def world():
    made = StorageWorld()
    yield made
    assert check_all(made.scheduler, made.now_s) == []


def test_no_member_is_bound_before_all_claims_are(world):
    world.labelled_node("n1")
    world.claiming("db", 3)
    first = world.decide()
    assert binds_of(first) == []
    assert [(one.claim, one.node, one.volume) for one in prepared(first)] == [
        (f"data-db-{index}", "n1", "") for index in range(3)
    ]
    world.written(first)
    assert binds_of(world.decide(1)) == []
    world.bound(first)
    world.edit_claim("data-db-2", bound=False, volume="")
    assert binds_of(world.decide(1)) == []
    world.edit_claim("data-db-2", bound=True, volume="pv-data-db-2")
    last = world.decide(1)
    assert nodes_of(last) == {"db-0": "n1", "db-1": "n1", "db-2": "n1"}
    assert last.gangs[0].first == 2
    world.settle(last)


def test_a_gang_of_alike_claims_is_one_class(world):
    world.labelled_node("n1", cpu=30)
    which = world.claiming("db", 20)
    assert [
        len(alike) for alike in members_of(world.cluster.gangs[which], world.cluster).values()
    ] == [20]
    assert len(prepared(world.decide())) == 20


def test_a_member_that_comes_later_waits_for_its_own_claim_alone(world):
    world.labelled_node("n1")
    which = world.gang("db", 2)
    first = world.decide()
    world.claim("late")
    world.pod("db-late", which, claims=(ClaimUse("late"),))
    second = world.decide(1)
    assert planned(second) == {"db-late": "n1"}
    world.written(second)
    assert world.decide(1).undo == ()
    world.settle(first)
    world.bound(second)
    last = world.decide(1)
    assert nodes_of(last) == {"db-late": "n1"}
    assert last.gangs[0].started
    world.settle(last)


def test_what_was_planned_on_top_of_an_unsound_part_of_its_gang_is_not_sent_either(world):
    world.labelled_node("n0", cpu=6)
    which = world.claiming("db", 2, cpu=3)
    first = world.decide()
    world.labelled_node("n2", cpu=8)
    world.pod("late", which, cpu=3)
    world.bound(first)
    plan = world.scheduler.decide(world.now_s)
    assert [len(gang.binds) for gang in plan.gangs] == [2, 1]
    world.labelled_node("n0", cpu=0)
    sound, problems = world.scheduler.verified(plan)
    assert problems
    assert sound.gangs == ()
    assert world.cluster.gangs[which].assumed == 0
    assert binds_of(world.decide(100)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cpu": 1}, "2 Insufficient cpu"),
        ({"cpu": 6, "cordoned": True}, "1 node(s) were unschedulable"),
        ({"cpu": 6, "taints": ["gone:NoSchedule"]}, "1 node(s) had untolerated taint(s)"),
    ],
)
def test_a_node_that_changed_while_a_claim_was_bound_gets_no_member(world, change, said):
    world.labelled_node("n0", cpu=6)
    world.labelled_node("n1", cpu=1)
    which = world.claiming("db", 1, cpu=3)
    first = world.decide()
    world.labelled_node("n0", **change)
    world.bound(first)
    plan = world.scheduler.decide(world.now_s)
    assert plan.gangs == ()
    assert world.scheduler.verified(plan) == (plan, [])
    assert said in world.why(which).message
    world.labelled_node("n0", cpu=6)
    assert [bind.node for bind in binds_of(world.decide(100))] == ["n0"]


def terminates(w):
    w.edit("db-1", terminating=True)


def moves_away(w):
    w.edit("db-1", membership=Membership(key("another")))


def loses_its_object(w):
    w.drop_object(key("db"))


@pytest.mark.parametrize("happens", [terminates, moves_away, loses_its_object])
def test_what_happens_while_claims_are_bound_leaves_no_gang_in_part(world, happens):
    world.labelled_node("n1")
    world.claiming("db", 2)
    first = world.decide()
    world.written(first)
    happens(world)
    world.bound(first)
    for _ in range(3):
        assert binds_of(world.decide(1)) == []
    assert world.cluster.gangs[key("db")].assumed == 0


def test_a_pod_that_moves_while_its_claim_is_bound_is_bound_once(world):
    """The gang that it had left bound it too, once its new gang had planned it on the same node."""
    world.labelled_node("n1")
    world.claiming("db", 1, pods=2)
    first = world.decide()
    world.written(first)
    world.edit("db-1", membership=Membership(world.object("another", 1)))
    assert planned(world.decide(1)) == {"db-1": "n1"}
    world.bound(first)
    assert [bind.name for bind in binds_of(world.decide(1))] == ["db-0", "db-1"]


def test_the_room_of_a_single_pod_that_moves_into_a_gang_while_its_claim_is_bound_is_free(world):
    world.labelled_node("n1", cpu=1)
    world.claim("data")
    world.pod("alone", claims=(ClaimUse("data"),))
    assert planned(world.decide()) == {"alone": "n1"}
    world.edit("alone", membership=Membership(key("another")), claims=())
    world.pod("other")
    world.decide(1)
    assert world.where("alone") == ""
    assert world.where("other") == "n1"


def test_a_pod_that_moves_away_and_back_while_its_claim_is_bound_waits_again(world):
    world.labelled_node("n1", cpu=1)
    world.claim("data")
    world.pod("alone", claims=(ClaimUse("data"),))
    first = world.decide()
    world.written(first)
    world.edit("alone", membership=Membership(key("another")))
    world.edit("alone", membership=None)
    second = world.decide(1)
    assert world.where("alone") == ""
    assert [one.claim for undo in second.undo for one in undo.prepared] == ["data"]
    world.undone(second)
    assert planned(world.decide(1)) == {"alone": "n1"}


def test_a_quorum_that_lapses_while_a_claim_is_bound_is_met_anew(world):
    world.labelled_node("n1")
    which = world.gang("db", 2)
    world.cycle()
    world.claim("late")
    world.pod("db-late", which, claims=(ClaimUse("late"),))
    first = world.decide(1)
    assert planned(first) == {"db-late": "n1"}
    world.written(first)
    world.edit("db-0", phase="Failed")
    world.edit("db-1", phase="Failed")
    world.bound(first)
    for _ in range(3):
        assert binds_of(world.decide(1)) == []


def test_a_gang_that_loses_a_member_meanwhile_lets_its_claims_go(world):
    world.labelled_node("n1")
    world.claiming("db", 2)
    first = world.decide()
    world.written(first)
    world.delete("db-1")
    world.bound(first)
    world.edit_claim("data-db-0", bound=False, volume="")
    plan = world.decide(1)
    assert [one.claim for undo in plan.undo for one in undo.prepared] == ["data-db-0"]
    assert plan.gangs == ()


def test_when_a_volume_cannot_be_made_the_gang_lets_go_and_goes_elsewhere(world):
    world.labelled_node("n1", cpu=2)
    world.labelled_node("n2", cpu=3)
    which = world.claiming("db", 2)
    first = world.decide()
    [node] = set(planned(first).values())
    world.written(first)
    world.decide(1)
    world.give_up("data-db-1")
    second = world.decide(1)
    assert [one.claim for undo in second.undo for one in undo.prepared] == [
        "data-db-0",
        "data-db-1",
    ]
    assert second.preparing == second.gangs == ()
    assert world.why(which).reason is not Reason.NONE
    world.undone(second)
    third = world.decide(1)
    assert set(planned(third).values()) == {"n1", "n2"} - {node}


def test_nothing_is_placed_again_before_what_was_written_is_taken_back(world):
    world.labelled_node("n1")
    world.claiming("db", 2)
    world.written(world.decide())
    world.decide(1)
    world.give_up("data-db-1")
    assert world.decide(1).undo
    assert world.decide(10).preparing == ()


def test_a_refused_write_fails_the_attempt_and_names_the_claim(world):
    world.labelled_node("n1")
    which = world.claiming("db", 2)
    world.refused(world.decide(), "claim team/data-db-0 cannot be written: forbidden")
    plan = world.decide(1)
    world.undone(plan)
    world.refused(world.decide(1), "claim team/data-db-0 cannot be written: forbidden")
    world.undone(world.decide(1))
    assert "data-db-0 cannot be written" in world.why(which).message


def test_claims_that_are_not_bound_in_time_are_let_go(world):
    world.labelled_node("n1")
    which = world.claiming("db", 2)
    first = world.decide()
    world.written(first)
    assert world.decide(59).undo == ()
    plan = world.decide(2)
    assert len(plan.undo[0].prepared) == 2
    assert (
        "claim team/data-db-0 was not bound in time"
        in world.cluster.gangs[which].memory.last_failure
    )


def test_after_a_restart_the_node_of_a_claim_is_kept(world):
    world.labelled_node("n1")
    world.labelled_node("n2")
    world.claiming("db", 1)
    world.edit_claim("data-db-0", selected_node="n2")
    [one] = prepared(world.decide())
    assert (one.node, one.written) == ("n2", True)


def test_a_node_left_on_a_claim_of_a_gang_that_does_not_fit_there_is_taken_away(world):
    world.labelled_node("n1", cpu=4)
    world.labelled_node("n2", cpu=1)
    world.claiming("db", 2, cpu=2)
    world.edit_claim("data-db-0", selected_node="n2")
    plan = world.decide()
    assert [one.claim for one in plan.undo[0].prepared] == ["data-db-0"]
    world.undone(plan)
    assert set(planned(world.decide(1)).values()) == {"n1"}


def test_a_gang_of_which_one_claim_is_impossible_prepares_nothing(world):
    world.labelled_node("n1")
    which = world.claiming("db", 2)
    world.edit_claim("data-db-1", storage_class="absent")
    plan = world.decide()
    assert plan.preparing == plan.gangs == plan.undo == ()
    why = world.why(which)
    assert why.reason is Reason.CLAIM_NOT_USABLE
    assert "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims." in (
        why.message
    )
    assert "spec.storageClassName absent does not exist" in why.message


def test_a_volume_is_given_to_one_claim_only(world):
    for name in ("n1", "n2", "n3"):
        world.labelled_node(name)
    for name in ("n1", "n2", "n3"):
        world.volume(f"pv-{name}", affinity=on("kubernetes.io/hostname", name))
    world.claiming("db", 3, storage_class="local")
    chosen = prepared(world.decide())
    assert sorted((one.volume, one.node) for one in chosen) == [
        ("pv-n1", "n1"),
        ("pv-n2", "n2"),
        ("pv-n3", "n3"),
    ]


def test_a_gang_that_lacks_one_volume_prepares_nothing(world):
    world.labelled_node("n1")
    world.volume("pv-1")
    world.volume("pv-2")
    which = world.claiming("db", 3, storage_class="local")
    assert world.decide().preparing == ()
    assert "1 node(s) didn't find available persistent volumes to bind" in (
        world.why(which).message
    )
    world.volume("pv-3")
    assert len(prepared(world.decide(1))) == 3


def test_the_smallest_volume_that_does_is_chosen(world):
    world.labelled_node("n1")
    for size in (8, 2, 4):
        world.volume(f"pv-{size}", capacity=size * 2**30)
    world.claiming("db", 1, storage_class="local", size=3 * 2**30)
    assert [one.volume for one in prepared(world.decide())] == ["pv-4"]


def test_volumes_that_a_plan_under_way_gives_away_are_given_to_nobody_else(world):
    world.labelled_node("n1")
    world.volume("pv-1")
    world.claiming("one", 1, storage_class="local")
    assert len(prepared(world.decide())) == 1
    world.claiming("two", 1, storage_class="local")
    assert prepared(world.decide(1)) == []


def test_a_volume_limit_holds_for_the_gang_as_a_whole(world):
    world.labelled_node("n1")
    world.labelled_node("n2")
    world.limit("n1", 2)
    world.limit("n2", 2)
    which = world.claiming("db", 5)
    assert world.decide().preparing == ()
    assert "2 node(s) exceed max volume count" in world.why(which).message
    world.limit("n2", 3)
    assert sorted(planned(world.decide(1)).values()) == ["n1", "n1", "n2", "n2", "n2"]


def test_members_with_one_shared_claim_meet_on_one_node_unless_it_can_be_shared(world):
    world.labelled_node("n1", cpu=2)
    world.labelled_node("n2", cpu=2)
    which = world.object("ml", 3)
    world.claim("shared")
    for index in range(3):
        world.pod(f"ml-{index}", which, claims=(ClaimUse("shared"),))
    assert world.decide().preparing == ()
    world.edit_claim("shared", access_modes=("ReadWriteMany",))
    plan = world.decide(1)
    assert len(prepared(plan)) == 1
    assert len(planned(plan)) == 3
    world.written(plan)
    world.bound(plan, affinity=on("topology.kubernetes.io/zone", "a"))
    last = world.decide(1)
    assert len(nodes_of(last)) == 3
    world.settle(last)


def test_a_shared_volume_that_turns_out_to_be_out_of_reach_starts_nobody(world):
    world.labelled_node("n1", cpu=2, zone="a")
    world.labelled_node("n2", cpu=2, zone="b")
    world.labelled_node("n3", cpu=2, zone="a")
    which = world.object("ml", 3)
    world.claim("shared", access_modes=("ReadWriteMany",))
    for index in range(3):
        world.pod(f"ml-{index}", which, claims=(ClaimUse("shared"),))
    plan = world.decide()
    world.written(plan)
    zone = {"n1": "a", "n2": "b", "n3": "a"}
    world.bound(plan, affinity=on("topology.kubernetes.io/zone", "a"))
    nodes = set(planned(plan).values())
    second = world.decide(1)
    if {zone[node] for node in nodes} == {"a"}:
        assert set(nodes_of(second).values()) == nodes
    else:
        assert nodes_of(second) == {} or set(nodes_of(second).values()) <= {"n1", "n3"}
        third = world.decide(1) if not nodes_of(second) else second
        assert set(nodes_of(third).values()) == {"n1", "n3"}
        second = third
    world.settle(second)


def with_two_claims(world, storage_class):
    which = world.object("db", 1)
    for name in ("data", "log"):
        world.claim(name, storage_class=storage_class)
    world.pod("db-0", which, claims=(ClaimUse("log"), ClaimUse("data")))
    return which


def test_a_pod_with_two_claims_that_only_static_volumes_meet_waits_and_both_are_named(world):
    world.labelled_node("n1")
    for name in ("pv-1", "pv-2"):
        world.volume(name)
    which = with_two_claims(world, "local")
    assert world.decide().preparing == ()
    why = world.why(which)
    assert why.reason is Reason.CLAIM_NOT_USABLE
    assert "pod db-0 names the claims team/data and team/log, none of them bound" in why.message
    assert "class local has no provisioner: a pod may have one such claim" in why.message
    world.volume("pv-1", claim=ClaimRef("team", "log"))  # one of them is decided now
    assert {one.claim: one.volume for one in prepared(world.decide(1))} == {
        "data": "pv-2",
        "log": "pv-1",
    }


def test_two_claims_of_a_class_with_a_provisioner_are_provisioned_also_beside_a_static_volume(
    world,
):
    world.labelled_node("n1")
    world.volume("pv-1", storage_class="fast")
    with_two_claims(world, "fast")
    assert {one.claim: one.volume for one in prepared(world.decide())} == {"data": "", "log": ""}
