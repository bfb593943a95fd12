"""Verification finds what is wrong with a plan, and nothing wrong with a good one."""

import msgspec
import pytest

from quorate.core.check import verify_neighbours
from quorate.core.check.verify import verify_gang
from quorate.core.check.verify_nodes import is_counted
from quorate.core.model import HostPort, Requirement, SelectorTerm
from quorate.core.model.plan import Bind, GangBinds
from tests.unit.core.storage_world import ZONE, StorageWorld
from tests.unit.core.storage_world import planned as planned_on
from tests.unit.core.terms import apart, near, pods, spread
from tests.unit.core.world import TEAM, World

PORT = HostPort("TCP", "0.0.0.0", 80)


def planned(**spec):
    w = World()
    w.node("n0", cpu=4, labels={"zone": "a"})
    w.gang("job", 2, cpu=2, spec=spec)
    (gang,) = w.scheduler.decide(w.now_s).gangs
    assert verify_gang(gang, w.cluster) == []
    return w, gang


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda w: w.lose_node("n0"), "node n0 does not exist any more"),
        (lambda w: w.node("n0", cpu=3), "node n0 would hold 4000 of cpu, and has 3000"),
        (lambda w: w.node("n0", cpu=4, pods=1), "node n0 would hold 2 of pods, and has 1"),
        (
            lambda w: w.node("n0", cpu=4, taints=["gpu:NoExecute"]),
            "node n0 has the taint gpu",
        ),
        (
            lambda w: w.node("n0", cpu=4, cordoned=True),
            "node n0 has the taint node.kubernetes.io/unschedulable",
        ),
        (lambda w: w.object("job", 3), "gang team/job would start below its min of 3"),
        (lambda w: w.delete("job-0"), "pod job-0 does not exist any more"),
        (lambda w: w.edit("job-0", node="n1"), "pod job-0 is BOUND on n1"),
        (lambda w: w.edit("job-0", gates=("late",)), "pod job-0 must not be placed"),
    ],
)
def test_a_plan_that_is_out_of_date_is_found_out(change, problem):
    w, gang = planned()
    change(w)
    assert problem in verify_gang(gang, w.cluster)


def test_a_gang_that_is_gone_is_found_out():
    w, gang = planned()
    w.drop_object(gang.key)
    w.delete("job-0", "job-1")
    assert "gang team/job does not exist any more" in verify_gang(gang, w.cluster)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"node_selector": (("zone", "a"),)}, "node n0 does not match the node selector"),
        (
            {"required_terms": (SelectorTerm((Requirement("zone", "In", ("a",)),)),)},
            "node n0 does not match the required node affinity",
        ),
    ],
)
def test_a_node_that_lost_its_label_is_found_out(spec, problem):
    w, gang = planned(**spec)
    w.node("n0", cpu=4)
    assert problem in verify_gang(gang, w.cluster)


def test_a_port_given_out_twice_is_found_out():
    w = World()
    w.node("n0", cpu=4)
    w.gang("job", 1, spec={"host_ports": (PORT,)})
    (gang,) = w.scheduler.decide(w.now_s).gangs
    w.running("rival", "n0", spec={"host_ports": (PORT,)})
    assert verify_gang(gang, w.cluster) == ["node n0 would give out host port 80 twice"]


def test_what_others_overcommitted_is_not_held_against_pods_that_do_not_ask_for_it():
    w = World()
    w.node("n0", cpu=1, gpu=1)
    w.running("glutton", "n0", cpu=5, gpu=3)
    w.gang("job", 2, cpu=0, memory=1)
    assert w.cycle() == {"job-0": "n0", "job-1": "n0"}  # the world verifies every plan


def test_ports_that_others_share_are_not_held_against_pods_without_ports():
    w = World()
    w.node("n0")
    for name in "ab":
        w.running(name, "n0", spec={"host_ports": (PORT,)})
    w.gang("job", 2)
    assert len(w.cycle()) == 2


def test_what_another_gang_took_in_good_time_is_not_held_against_this_one():
    w = World()
    w.node("n0", gpu=2)
    w.gang("first", 2, gpu=1)
    w.decide()
    w.node("n0", gpu=1)
    w.gang("second", 2)
    assert set(w.cycle()) == {"second-0", "second-1"}


def test_a_repair_of_a_started_gang_needs_no_quorum():
    w = World()
    w.node("n0")
    gang = w.gang("job", 3)
    w.cycle()
    w.delete("job-0", "job-1")
    w.pod("again", gang)
    assert w.cycle() == {"again": "n0"}


def test_an_empty_plan_has_no_problems():
    w, gang = planned()
    empty = msgspec.structs.replace(gang, binds=())
    assert verify_gang(empty, w.cluster) == []


def test_gangs_whose_claims_are_bound_are_checked_one_beside_the_other():
    """The one planned first was checked without the other, and taken for unsound."""
    w = StorageWorld()
    w.labelled_node("n0", zone="a", cpu=2)
    w.labelled_node("n1", zone="b")
    web = {"labels": {"app": "web"}}
    for name in ("one", "two"):
        w.running(name, "n0", **web)
    w.claiming("early", 3, **web, spec=spread(pods(app="web"), by=ZONE))
    early = w.decide()
    assert set(planned_on(early).values()) == {"n1"}
    w.delete("one", "two")
    w.claiming("late", 2, **web, spec={"node_selector": ((ZONE, "a"),)})
    late = w.decide()
    for plan in (early, late):
        w.written(plan)
        w.bound(plan)
    due = w.scheduler.decide(w.now_s)
    assert [gang.key.name for gang in due.gangs] == ["early", "late"]
    assert w.scheduler.verified(due) == (due, [])


WEB = {"labels": {"app": "web"}}
OF_WEB = pods(app="web")
NEAR = {**WEB, "spec": near(OF_WEB)}
SPREAD = {**WEB, "spec": spread(OF_WEB)}


def laid(w, nodes):
    """Assume pods on nodes, as a plan of one gang does; return what is said of it."""
    which = w.object("job", len(nodes))
    for name, (node, fields) in nodes.items():
        w.pod(name, which, **fields)
        entry = next(e for e in w.cluster.pods.values() if e.pod.name == name)
        w.cluster.assume([entry], [w.cluster.nodes.rows[node]])
    binds = tuple(
        Bind(entry.pod.uid, TEAM, entry.pod.name, entry.node)
        for entry in w.cluster.gangs[which].members.values()
    )
    gang = GangBinds(key=which, attempt="q-1", size=len(binds), deadline_s=60.0, binds=binds)
    return verify_gang(gang, w.cluster)


@pytest.mark.parametrize(
    ("nodes", "wrong"),
    [
        # One may be the first of its kind, and others come to it.
        ({"a": ("na", NEAR)}, []),
        ({"a": ("na", NEAR), "b": ("na", NEAR)}, []),
        ({"a": ("na", NEAR), "b": ("nb", NEAR)}, ["b"]),
        # It was the first, and then came one that does not mind.
        ({"a": ("na", NEAR), "b": ("nb", WEB)}, []),
        ({"a": ("na", {"spec": near(OF_WEB)})}, ["a"]),
        ({"a": ("na", {"spec": near(OF_WEB)}), "b": ("na", WEB)}, []),
        ({"a": ("nc", NEAR)}, ["a"]),
        # Whoever minds does not have one too many; those that do not mind come later.
        ({"a": ("na", SPREAD), "b": ("nb", SPREAD), "c": ("na", SPREAD)}, []),
        ({"a": ("na", SPREAD), "b": ("na", SPREAD)}, ["a", "b"]),
        ({"a": ("na", SPREAD), "b": ("na", WEB), "c": ("na", WEB)}, []),
        ({"a": ("nc", SPREAD)}, ["a"]),
        # Whoever keeps others away is kept away itself.
        ({"a": ("na", {**WEB, "spec": apart(OF_WEB)}), "b": ("na", WEB)}, ["a", "b"]),
        ({"a": ("na", {**WEB, "spec": apart(OF_WEB)}), "b": ("nb", WEB)}, []),
    ],
)
def test_rules_about_other_pods_are_judged_at_the_end_in_no_order(nodes, wrong):
    w = World()
    for zone in "ab":
        w.node(f"n{zone}", labels={"zone": zone, "host": zone})
    w.node("nc")
    assert [words.split()[1] for words in laid(w, nodes)] == wrong


def test_which_nodes_count_is_asked_once_for_all_pods_and_nodes_that_are_alike(monkeypatch):
    asked = []

    def counted(spec, node, one):
        asked.append(node.name)
        return is_counted(spec, node, one)

    monkeypatch.setattr(verify_neighbours, "is_counted", counted)
    w = World()
    for number in range(20):
        w.node(f"n{number}", labels={"host": f"h{number}", "pool": "a"})
    w.node("other", labels={"host": "other", "pool": "b"})
    tied = {**WEB, "spec": {**spread(OF_WEB, by="host"), "node_selector": (("pool", "a"),)}}
    assert laid(w, {f"p{number}": (f"n{number}", tied) for number in range(20)}) == []
    assert asked == ["n0", "other"]


@pytest.mark.parametrize(("there", "wrong"), [("na", []), ("nb", ["a"]), ("nc", [])])
def test_nobody_is_the_first_of_its_kind_where_others_stood_before(there, wrong):
    w = World()
    for zone in "ab":
        w.node(f"n{zone}", labels={"zone": zone})
    w.node("nc")
    w.running("old", there, **WEB)
    assert [words.split()[1] for words in laid(w, {"a": ("na", NEAR)})] == wrong
