"""A gang without room is told in numbers what it needs, what there is, and who holds the rest."""

import pytest

from quorate.core.model import policy
from quorate.core.model.reasons import Reason
from tests.unit.core.terms import apart, near, pods, spread
from tests.unit.core.world import GPU, World, key, pairs

NEVER = "it can never start here: "
CORDON = "node.kubernetes.io/unschedulable:NoSchedule"


def world(cpu_nodes=1, gpu_nodes=2, gpus=8):
    w = World()
    for number in range(cpu_nodes):
        w.node(f"cpu-{number}", cpu=4, labels={"pool": "cpu"})
    for number in range(gpu_nodes):
        w.node(f"gpu-{number}", cpu=32, gpu=gpus, labels={"pool": "gpu"})
    return w


def cordon(w, *names):
    """Cordon nodes as ``kubectl cordon`` and the node controller do: the field, then the taint."""
    for name in names:
        w.node(name, cpu=32, gpu=8, labels={"pool": "gpu"}, cordoned=True, taints=[CORDON])


def said_of(w, gang):
    assert w.cycle() == {}
    return w.why(gang)


# A gang that is too large


def test_a_gang_larger_than_the_whole_cluster_is_told_so_in_numbers():
    """300 pods of 8 GPUs on 4 nodes of 8: no waiting helps, and a node without GPUs is no help."""
    w = world(gpu_nodes=4)
    said = said_of(w, w.gang("job", 300, gpu=8, cpu=0))
    assert said.reason is Reason.NOT_ENOUGH_ROOM
    assert said.message.endswith(
        "300 members must start together and 4 fit: it can never start here: "
        f"needs 2400 {GPU}; the nodes that it may use have 32, 0 in use"
    )
    assert said.hint == f"add nodes with 2368 {GPU}, ask for less, or lower min"
    assert said.blockers[0].nearest_miss == ""


@pytest.mark.parametrize(
    "closed",
    [{"labels": {"pool": "other"}}, {"labels": {"pool": "gpu"}, "taints": ["t:NoSchedule"]}],
    ids=["foreign", "tainted"],
)
def test_nodes_that_it_may_not_use_are_not_among_those_that_it_may(closed):
    w = world(gpu_nodes=2)
    for number in range(4):
        w.node(f"closed-{number}", cpu=32, gpu=8, **closed)
    gang = w.gang("job", 3, gpu=8, cpu=0, spec={"node_selector": pairs({"pool": "gpu"})})
    assert (
        f"{NEVER}needs 24 {GPU}; the nodes that it may use have 16, 0" in said_of(w, gang).message
    )


def test_whole_members_are_counted_on_each_node_and_not_sums_alone():
    """4 nodes of 8 GPUs have 32, and hold four pods of 5."""
    w = world(gpu_nodes=4)
    said = said_of(w, w.gang("job", 6, gpu=5, cpu=0))
    assert said.message.endswith(
        f"{NEVER}the nodes that it may use hold 4 of 6 members like job-0, were they empty"
    )
    assert said.hint == "add nodes for 2 members, ask for less, or lower min"


def test_of_members_that_differ_what_they_need_at_least_is_added_up():
    w = world()
    gang = w.object("job", 4)
    for number in range(3):
        w.pod(f"worker-{number}", gang, gpu=6, cpu=0)
    w.pod("driver", gang, cpu=1)
    assert f"{NEVER}needs 18 {GPU}; the nodes that it may use have 16" in said_of(w, gang).message


def test_only_as_many_as_have_to_start_are_counted():
    w = world()
    w.running("old", "gpu-0", gpu=8)
    said = said_of(w, w.gang("job", 2, pods=30, gpu=8, cpu=0))
    assert f"needs 16 {GPU}; the nodes that it may use have 16, 8 free" in said.message


def test_the_rest_of_a_started_gang_is_told_too():
    """Its own members hold what it would need: nobody else can give it more."""
    w = world(gpu_nodes=1)
    gang = w.gang("job", 2, pods=4, gpu=3, cpu=0)
    w.cycle()
    said = w.why(gang)
    assert said.message.endswith(
        f"0 of 2 more members fit: they can never all run here: needs 6 {GPU}; "
        "the nodes that it may use have 8, 6 in use by its own members"
    )


def test_a_cluster_without_nodes_has_nothing_to_count():
    w = World()
    said = said_of(w, w.gang("job", 2))
    assert said.message == "0/0 nodes are available. 2 members must start together and 0 fit"
    assert said.hint == "free or add room"


# A gang that could start


def test_it_is_told_what_is_free_and_who_holds_the_rest_largest_first():
    w = world()
    w.gang("big", 3, gpu=3, cpu=0)
    assert len(w.cycle()) == 3
    w.running("old", w.where("big-2"), gpu=1, namespace="other")
    said = said_of(w, w.gang("job", 2, gpu=8, cpu=0))
    assert said.message.endswith(
        f"2 members must start together and 0 fit: needs 16 {GPU}; the nodes that it may use have "
        "16, 6 free; the rest is held by gang team/big (9) and pod other/old (1)"
    )


@pytest.mark.parametrize(
    ("gpus", "holders"),
    [
        ([4, 3], "pod team/p0 (4) and pod team/p1 (3)"),
        ([4, 3, 2], "pod team/p0 (4), pod team/p1 (3) and pod team/p2 (2)"),
        ([4, 3, 2, 1], "pod team/p0 (4), pod team/p1 (3), pod team/p2 (2) and 1 other (1)"),
        ([4, 3, 2, 1, 1], "pod team/p0 (4), pod team/p1 (3), pod team/p2 (2) and 2 others (2)"),
    ],
)
def test_three_holders_are_named_and_the_others_counted(gpus, holders):
    w = world()
    for number, held in enumerate(gpus):
        w.running(f"p{number}", f"gpu-{number % 2}", gpu=held)
    message = said_of(w, w.gang("job", 2, gpu=8, cpu=0)).message
    assert message.endswith(f"; the rest is held by {holders}")


def test_its_own_members_are_no_holders_among_others():
    w = world(gpu_nodes=2)
    gang = w.gang("job", 1, pods=2, gpu=6, cpu=0)
    w.running("old", "gpu-1", gpu=4)
    w.running("new", "gpu-1", gpu=1)
    w.cycle()
    assert w.why(gang).message.endswith(
        f"0 of 1 more member fits: needs 6 {GPU}; the nodes that it may use have 16, 5 free, 6 in "
        "use by its own members; the rest is held by pod team/old (4) and pod team/new (1)"
    )


@pytest.mark.parametrize(
    ("most", "holders"),
    [
        (4, "pod team/p0 (5) and pod team/p1 (1)"),
        (3, "pod team/p0 (5) and pod team/p1 (1)"),
        (2, "pod team/p0 (5 or more) and others"),
        (1, "pod team/p0 (5 or more) and others"),
        (0, "others"),
    ],
)
def test_of_many_pods_those_on_the_fullest_nodes_are_looked_at(monkeypatch, most, holders):
    monkeypatch.setattr(policy, "HOLDERS_PODS_MAX", most)
    w = world()
    w.running("p0", "gpu-1", gpu=5)
    w.running("p1", "gpu-0", gpu=1)
    w.running("none", "gpu-0", gpu=0)
    message = said_of(w, w.gang("job", 2, gpu=8, cpu=0)).message
    assert message.endswith(f"; the rest is held by {holders}")


def test_room_in_pieces_that_are_too_small_is_said_to_be_so():
    w = world()
    for number in range(2):
        w.running(f"p{number}", f"gpu-{number}", gpu=4)
    message = said_of(w, w.gang("job", 1, gpu=6, cpu=0)).message
    assert f"needs 6 {GPU}; the nodes that it may use have 16, 8 free in too small parts" in message


def test_who_holds_memory_and_cpu_is_told_in_their_units():
    w = World()
    w.node("n0", cpu=4, memory=8)
    w.running("db", "n0", cpu=1.5, memory=6)
    message = said_of(w, w.gang("job", 1, cpu=1, memory=4)).message
    assert message.endswith(
        "needs 4Gi memory; the nodes that it may use have 8Gi, 2Gi free; "
        "the rest is held by pod team/db (6Gi)"
    )


def test_pods_that_have_ended_hold_nothing():
    w = world(gpu_nodes=1)
    w.running("old", "gpu-0", gpu=6)
    w.pod("done", node="gpu-0", phase="Succeeded", scheduler="other", gpu=8)
    message = said_of(w, w.gang("job", 1, gpu=8, cpu=0)).message
    assert message.endswith("have 8, 2 free; the rest is held by pod team/old (6)")


# The smallest change


def test_a_cordoned_node_that_alone_would_start_it_is_to_be_uncordoned():
    w = world(cpu_nodes=3)
    w.running("old", "gpu-1", gpu=2)
    cordon(w, "gpu-1")
    said = said_of(w, w.gang("both", 2, gpu=6))
    assert said.hint == "uncordon gpu-1"
    assert said.message.endswith(
        f"2 members must start together and 1 fit: needs 12 {GPU}; the nodes that it may use have "
        "16, 8 free, 6 free and cordoned; the rest is held by pod c14/old (2)".replace(
            "c14", "team"
        )
    )
    assert said.blockers[0].nearest_miss == ""


def test_both_are_to_be_uncordoned_where_one_is_not_enough():
    w = world(cpu_nodes=3)
    cordon(w, "gpu-0", "gpu-1")
    assert said_of(w, w.gang("both", 2, gpu=6)).hint == "uncordon gpu-0 and gpu-1"


@pytest.mark.parametrize(
    ("members", "nodes"),
    [
        (1, "gpu-0"),
        (2, "gpu-0 and gpu-1"),
        (3, "gpu-0, gpu-1 and gpu-2"),
        (4, "gpu-0, gpu-1, gpu-2 and 1 more node"),
        (5, "gpu-0, gpu-1, gpu-2 and 2 more nodes"),
    ],
)
def test_no_more_nodes_than_needed_are_to_be_uncordoned_and_three_are_named(members, nodes):
    w = world(gpu_nodes=6)
    cordon(w, *(f"gpu-{number}" for number in range(6)))
    assert said_of(w, w.gang("job", members, gpu=6)).hint == f"uncordon {nodes}"


def test_a_cordoned_node_that_would_not_help_is_not_to_be_uncordoned():
    w = world()
    w.running("old", "gpu-1", gpu=4)
    cordon(w, "gpu-1")
    w.node("gpu-2", gpu=8, cordoned=True, taints=["broken:NoSchedule", CORDON])
    said = said_of(w, w.gang("both", 2, gpu=6, cpu=0))
    assert "uncordon" not in said.hint


def test_a_node_is_uncordoned_where_the_members_own_rules_want_it():
    """One member a node: three nodes are open, and the fourth is cordoned."""
    w = World()
    for number in range(4):
        w.node(f"n{number}", labels={"host": f"n{number}"}, cordoned=number == 2)
    gang = w.gang("job", 4, labels={"app": "web"}, spec=apart(pods(app="web")))
    assert said_of(w, gang).hint == "uncordon n2"


def test_the_nearest_miss_is_a_node_that_could_hold_a_member_more():
    """gpu-0 is empty and takes one of 6: it lacks 4 for a second one, which nobody can free."""
    w = world(cpu_nodes=3)
    w.running("old", "gpu-1", gpu=3)
    said = said_of(w, w.gang("both", 2, gpu=6, cpu=0))
    assert said.blockers[0].nearest_miss == f"node gpu-1 lacks 1 {GPU}"
    assert said.hint == f"free or add room: node gpu-1 lacks 1 {GPU}"


# Counts of the real room


def test_nodes_are_counted_as_they_are_and_what_is_counted_later_says_so():
    """15 nodes take a member each, and one is too small: 16 do not lack cpu."""
    w = World()
    for number in range(15):
        w.node(f"n{number}", cpu=4)
    w.node("small", cpu=2)
    said = said_of(w, w.gang("job", 16, cpu=4))
    assert said.message == (
        "0/16 nodes are available: 1 Insufficient cpu, 15 Insufficient cpu once 15 members are "
        "placed. 16 members must start together and 15 fit: it can never start here: needs 64 cpu; "
        "the nodes that it may use have 62, 0 in use"
    )


@pytest.mark.parametrize("rule", [spread, near])
def test_a_topology_key_that_no_node_has_is_named(rule):
    """All nodes are empty, so none lacks room: the key is misspelt."""
    w = world()
    for number in range(2):
        w.node(f"z{number}", gpu=8, labels={"zone": "a"})
    me = {"app": "job"}
    gang = w.gang("job", 2, gpu=8, labels=me, spec=rule(pods(**me), by="zome"))
    said = said_of(w, gang)
    assert said.reason is Reason.NO_NODE_MATCHES
    assert "topologyKey is zome, a label that no node has" in said.message
    assert said.hint == "correct that field, or give nodes that label"
    assert said.blockers[0].nearest_miss == ""
    w.node("new", gpu=16, labels={"zome": "b"})
    assert len(w.cycle()) == 2


def test_a_lonely_pod_has_the_message_of_kube_scheduler_alone():
    w = world(gpu_nodes=1)
    w.running("old", "gpu-0", gpu=6)
    w.pod("p", gpu=8, cpu=0)
    w.cycle()
    said = w.why(key("p@uid-p", "pod"))
    assert said.message == f"0/2 nodes are available: 2 Insufficient {GPU}."
    assert said.hint == f"free or add room: node gpu-0 lacks 6 {GPU}"
