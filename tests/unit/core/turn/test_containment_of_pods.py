"""What only we know of a pod outlasts a defect: its bind under way, its node, its gang."""

import pytest

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry, Where
from quorate.core.model import Membership
from quorate.core.model.changes import BindFailure, PodChanged
from quorate.core.model.journal import entry_of
from quorate.core.turn.applying import Applier
from quorate.core.turn.defects import Defects
from tests.invariants import check_all
from tests.unit.core.turn.defects import Planted, fails_for, fails_once
from tests.unit.core.world import accept, fail, key, world


def test_a_pod_that_changes_to_poison_while_its_bind_is_under_way_keeps_its_room(monkeypatch):
    w = world(nodes=1, cpu=2)
    w.gang("first", 2)
    plan = w.decide()
    with monkeypatch.context() as patch:
        fails_for(patch, Cluster, "_class_of", lambda one: bool(getattr(one, "labels", ())))
        w.edit("first-0", labels=(("a", "b"),))
        assert w.used("n0") == 2000
        w.gang("second", 1)
        assert w.decide().gangs == ()
        assert w.why(key("first")).members.assumed == 2
    w.settle(plan)
    for after_s in (0.0, 1.0, 2.0):
        w.decide(after_s)
    assert w.why(key("first")).members.bound == 2
    assert w.cluster.pods["uid-first-0"].pod.labels == (("a", "b"),)
    assert check_all(w.scheduler, w.now_s) == []


def is_of_ours(name):
    """Of versions of this pod, those that a bare stand-in does not have: a scheduler of ours."""
    return lambda one: getattr(one, "name", "") == name and one.scheduler == "quorate"


def with_a_bare_stand_in(monkeypatch, *, outcome):
    """Return a full world of which one pod, under way, was but its room until its bind ended."""
    w = world(nodes=1, cpu=2)
    w.gang("first", 2)
    plan = w.decide()
    with monkeypatch.context() as patch:
        fails_for(patch, Cluster, "_class_of", is_of_ours("first-0"))
        w.edit("first-0", labels=(("a", "b"),))
        assert w.used("n0") == 2000
        w.gang("second", 1)
        assert w.decide().gangs == ()
        w.settle(plan, first_0=outcome)
    return w


def test_what_stands_in_for_a_pod_is_bound_with_it(monkeypatch):
    w = with_a_bare_stand_in(monkeypatch, outcome=accept)
    assert w.used("n0") == 2000
    for after_s in (0.0, 1.0, 2.0, 4.0):
        assert w.cycle(after_s=after_s) == {}
    assert w.where("first-0") == "n0"
    assert w.why(key("first")).members.bound == 2
    assert check_all(w.scheduler, w.now_s) == []


def test_what_stands_in_for_a_pod_frees_its_room_when_its_bind_fails(monkeypatch):
    w = with_a_bare_stand_in(monkeypatch, outcome=fail(BindFailure.REFUSED))
    assert w.used("n0") == 1000
    w.delete("second-0")
    placed = {}
    for after_s in (0.0, 1.0, 2.0, 4.0):
        placed |= w.cycle(after_s=after_s)
    assert placed == {"first-0": "n0"}
    assert check_all(w.scheduler, w.now_s) == []


@pytest.mark.parametrize("of", ["the pod", "what stands in for it"])
def test_a_pod_whose_place_cannot_be_carried_over_keeps_its_room(of, monkeypatch):
    w = world(nodes=1, cpu=2)
    w.gang("first", 2)
    w.decide()
    fails_for(
        monkeypatch,
        Cluster,
        "move",
        lambda one: (
            isinstance(one, PodEntry)
            and one.pod.name == "first-0"
            and (one.pod.scheduler == "quorate" or of != "the pod")
        ),
    )
    w.scheduler._rebuild()
    assert w.used("n0") == 2000
    w.gang("second", 1)
    assert w.decide().gangs == ()


def test_what_stands_in_for_a_pod_is_ever_simpler_and_at_last_nothing():
    pod = world(nodes=4).make("a", cpu=1)
    defects, what = Defects("q"), ("pod", pod.uid)
    defects.set_aside(what, PodChanged(pod), Planted())
    seen = []
    for node in ("", "n0", "", ""):
        change = defects.stand_ins()[what]
        seen.append(change and (change.pod.scheduler, change.pod.node))
        defects.weaken(what, Planted(), node=node)
    assert seen == [("quorate", ""), ("", ""), ("", "n0"), None]


@pytest.mark.parametrize("stage", ["_class_of", "_gang_for", "_leave", "_enter", "_after_loss"])
def test_a_pod_that_meets_a_defect_as_it_is_relabelled_counts_for_neither_gang(stage, monkeypatch):
    w = world(nodes=4)
    w.gang("a", 1)
    plan = w.decide()
    b = w.object("b", 2)
    fails_once(monkeypatch, Cluster, stage)
    w.edit("a-0", membership=Membership(b, None))
    assert len(w.scheduler.incidents()) == 1
    assert w.cluster.pods["uid-a-0"].where is Where.RELABELLED
    w.settle(plan)
    w.decide(after_s=1.0)
    w.decide(after_s=1.0)
    entry = w.cluster.pods["uid-a-0"]
    assert (entry.where, entry.node, entry.adopted) == (Where.BOUND, "n0", True)
    assert check_all(w.scheduler, w.now_s) == []


@pytest.mark.parametrize("stage", ["_class_of", "_gang_for", "_leave", "_enter", "_after_loss"])
def test_a_bound_pod_that_meets_a_defect_as_it_is_relabelled_is_adopted(stage, monkeypatch):
    w = world(nodes=4)
    w.gang("a", 1)
    w.cycle()
    b = w.object("b", 2)
    fails_once(monkeypatch, Cluster, stage)
    w.edit("a-0", membership=Membership(b, None))
    assert len(w.scheduler.incidents()) == 1
    w.decide(after_s=1.0)
    w.decide(after_s=1.0)
    assert w.cluster.pods["uid-a-0"].adopted
    assert w.cluster.gangs[b].alive == 0
    assert check_all(w.scheduler, w.now_s) == []


@pytest.mark.parametrize("stage", ["_class_of", "_gang_for", "_leave", "_enter"])
def test_a_relabelled_pod_whose_bind_meets_a_defect_as_it_is_seen_is_adopted(stage, monkeypatch):
    w = world(nodes=4)
    a = w.gang("a", 1)
    plan = w.decide()
    b = w.object("b", 2)
    w.edit("a-0", membership=Membership(b, None))
    fails_once(monkeypatch, Cluster, stage)
    marks = {"attempt": plan.gangs[0].attempt, "attempt_size": 1, "bound_for": entry_of(a)}
    w.edit("a-0", node="n0", **marks)
    assert len(w.scheduler.incidents()) == 1
    assert w.cluster.pods["uid-a-0"].adopted
    w.decide(after_s=1.0)
    assert w.decide(after_s=1000.0).evictions == ()
    assert w.cluster.pods["uid-a-0"].adopted


def test_a_promise_that_is_taken_back_is_sent_though_its_pod_meets_a_defect(monkeypatch):
    w = world(nodes=1)
    w.node("other", taints=("t:NoSchedule",))
    w.pod("a", nominated="other")
    fails_once(monkeypatch, Applier, "apply")
    plan = w.decide()
    assert plan.gangs == ()
    assert [(one.name, one.node) for one in plan.preemptions] == [("a", "")]
    assert len(w.scheduler.incidents()) == 1
