"""The facts behind a sentence: counts that add up, the nearest miss, members, ordinary pods."""

import pytest

from quorate.core.model.reasons import GangState, Reason
from tests.unit.core.terms import near, pods
from tests.unit.core.world import LABELS, World, key, pairs


def test_a_node_counts_for_the_first_rule_that_it_fails_and_the_counts_add_up():
    w = World()
    w.node("cordoned", cordoned=True, taints=["t:NoSchedule"])
    w.node("tainted", taints=["t:NoSchedule"])
    w.node("elsewhere", labels={"zone": "b"})
    w.node("small", cpu=1, memory=1, labels={"zone": "a"})
    w.node("smaller", cpu=1, labels={"zone": "a"})
    w.gang("job", 1, cpu=2, memory=2, spec={"node_selector": pairs({"zone": "a"})})
    w.decide()
    assert w.why(key("job")).message == (
        "0/5 nodes are available: 1 Insufficient memory, "
        "1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable, 2 Insufficient cpu. 1 member must start now and 0 fit: "
        "pod job-0 asks for 2 cpu; the largest matching node has 1"
    )
    counts = {rule.message: rule.nodes for rule in w.why(key("job")).blockers[0].ruled_out}
    assert counts == {
        "node(s) were unschedulable": 1,
        "node(s) had untolerated taint(s)": 1,
        "node(s) didn't match Pod's node affinity/selector": 1,
        "Insufficient cpu": 2,
        "Insufficient memory": 1,
    }


@pytest.mark.parametrize(
    ("nodes", "miss"),
    [
        ([{"cpu": 1}, {"cpu": 3}, {"cpu": 2}], "node n1 lacks 1 cpu"),
        ([{"cpu": 3, "memory": 2}, {"cpu": 2}], "node n1 lacks 2 cpu"),
        ([{"cpu": 3.5}, {"cpu": 3.9, "cordoned": True}], "node n0 lacks 500m cpu"),
        ([{"cpu": 0}, {"cpu": 2, "memory": 6}], "node n1 lacks 2 cpu and 2Gi memory"),
    ],
)
def test_the_nearest_miss_is_the_node_that_lacks_the_smallest_part(nodes, miss):
    w = World()
    w.node("large", cpu=4)
    w.running("filler", "large", cpu=4)
    for index, node in enumerate(nodes):
        w.node(f"n{index}", **node)
    w.gang("job", 2, cpu=4, memory=8)
    w.decide()
    assert w.why(key("job")).blockers[0].nearest_miss == miss


def test_members_are_counted_by_place_and_phase():
    w = World()
    w.node("n0", cpu=8)
    gang = w.object("job", 4)
    w.pod("run", gang, node="n0", phase="Running")
    w.pod("ok", gang, node="n0", phase="Succeeded")
    w.pod("bad", gang, node="n0", phase="Failed")
    w.pod("gated", gang, gates=("g",))
    w.pod("going", gang, terminating=True)
    w.pod("odd", gang, defect="odd")
    w.pod("wait", gang, spec={"node_selector": pairs({"zone": "x"})})
    w.decide()
    said = w.why(gang).members
    assert (said.needed, said.exist, said.bound, said.waiting) == (4, 4, 3, 1)
    assert (said.gated, said.terminating, said.invalid, said.total) == (1, 1, 1, 7)
    assert (said.running, said.succeeded, said.failed) == (1, 1, 1)


def test_the_view_says_whether_min_resources_fit():
    w = World()
    w.node("n0", cpu=8)
    small = w.object("small", 2, min_resources=(("cpu", 8000),), uid="u1", created_s=5.0)
    large = w.object("large", 2, min_resources=(("cpu", 9000),))
    explainer = w.scheduler.explainer(w.now_s)
    views = {k: explainer.view(k, explainer.explain(k)) for k in (small, large)}
    assert [views[small].admitted, views[large].admitted] == [True, False]
    assert (views[small].uid, views[small].created_s) == ("u1", 5.0)
    assert views[small].state is GangState.WAITING


def test_a_pod_with_a_defect_of_its_own_hears_of_that_one():
    w = World()
    w.node("n0", cpu=8)
    gang = w.gang("job", 3, pods=2, dialect=LABELS)
    w.pod("bad", gang, min_count=3, defect="no containers")
    w.decide()
    said = w.why(gang)
    sentences = {
        name: w.scheduler.explainer(w.now_s).pod_message(w.cluster.pods[f"uid-{name}"], said)
        for name in ("job-0", "bad")
    }
    assert sentences["bad"] == (Reason.POD_INVALID, "no containers")
    assert sentences["job-0"] == (said.reason, said.message)


def test_nobody_explains_a_gang_that_is_not_there():
    explainer = World().scheduler.explainer(0.0)
    assert explainer.explain(key("nothing")) is None
    assert explainer.owners(key("nothing")) == ()


@pytest.mark.parametrize("nodes", [0, 2])
def test_a_cluster_without_open_nodes_lacks_room_and_is_no_misconfiguration(nodes):
    w = World()
    for number in range(nodes):
        w.node(f"n{number}", cordoned=True, taints=["node.kubernetes.io/unschedulable:NoSchedule"])
    w.gang("job", 2)
    w.decide()
    assert w.why(key("job")).reason is Reason.NOT_ENOUGH_ROOM
    assert f"0/{nodes} nodes are available" in w.why(key("job")).message


def test_of_pods_to_be_near_those_of_its_own_gang_and_those_that_are_there_count():
    w = World()
    w.node("n0", cpu=1, labels={"zone": "a"})
    w.node("n1", cpu=9)
    w.running("hub", "n0", labels={"app": "hub"})
    w.gang("job", 2, spec=near(pods(app="hub")))
    w.cycle()
    assert w.why(key("job")).reason is Reason.NOT_ENOUGH_ROOM, "a node in zone a would help"
    w.gang("own", 2, cpu=9, spec=near(pods(app="own")), labels={"app": "own"})
    w.cycle()
    assert w.why(key("own")).reason is not Reason.AWAITS_PODS


@pytest.mark.parametrize(
    ("more", "reason", "message"),
    [
        ({}, Reason.NONE, "the pod has its node"),
        (
            {"gates": ("a", "b")},
            Reason.MEMBERS_GATED,
            "the pod waits for its scheduling gates: a, b",
        ),
        ({"terminating": True}, Reason.NOT_ENOUGH_MEMBERS, "the pod is being deleted"),
        ({"phase": "Failed"}, Reason.NOT_ENOUGH_MEMBERS, "the pod has ended without a node"),
        (
            {"cpu": 9},
            Reason.REQUEST_TOO_LARGE,
            "0/1 nodes are available: 1 Insufficient cpu. "
            "pod p asks for 9 cpu; the largest matching node has 8",
        ),
    ],
)
def test_the_sentence_of_an_ordinary_pod(more, reason, message):
    w = World()
    w.node("n0", cpu=8)
    w.pod("p", **more)
    w.cycle()
    said = w.why(key("p@uid-p", "pod"))
    assert (said.reason, said.message) == (reason, message)
