"""A gang is woken by the change that can give it all that it needs, and its likes wait with it."""

import pytest

from quorate.core.model import Owner, policy
from quorate.core.model.changes import OwnerChanged
from quorate.core.model.profile import KUBE_SCHEDULER
from tests.unit.core.terms import apart, near, pods
from tests.unit.core.world import LABELS, TEAM, VOLCANO, World, gangs_tried

KUBE = "default-scheduler"
WEB = pods(app="web")
WEB_LABELS = {"app": "web"}


def full_world(count=4, cpu=2, **more):
    """Nodes of 2 cpu each, full of other schedulers' pods of 1 cpu."""
    w = World(**more)
    for index in range(count):
        w.node(f"n{index}", cpu=cpu)
        for slot in range(cpu):
            w.running(f"run-{index}-{slot}", f"n{index}", cpu=1, scheduler="other")
    return w


# How much


def test_a_gang_is_tried_when_all_that_it_needs_is_there_and_no_sooner(monkeypatch):
    w = full_world()
    w.gang("job", 3, dialect=LABELS)
    assert w.cycle() == {}
    looked_for = gangs_tried(w, monkeypatch)
    for index in range(2):
        w.delete(f"run-{index}-0")
        assert not w.decide().touched
    assert looked_for == []
    w.delete("run-2-0")
    assert len(w.cycle()) == 3
    assert looked_for == ["job"]


def test_of_a_gang_of_two_classes_both_have_to_have_room(monkeypatch):
    w = full_world()
    gang = w.object("job", 2)
    w.pod("large", gang, cpu=2)
    w.pod("small", gang, cpu=1)
    assert w.cycle() == {}
    looked_for = gangs_tried(w, monkeypatch)
    w.delete("run-0-0", "run-1-0")
    assert w.cycle() == {}
    assert looked_for == [], "two small ones would fit, and no large one"
    w.delete("run-0-1")
    assert w.cycle() == {"large": "n0", "small": "n1"}


def test_members_that_are_not_needed_may_come_one_by_one():
    w = full_world()
    gang = w.gang("job", 1, pods=3, dialect=LABELS)
    for index in range(3):
        w.delete(f"run-{index}-0")
        assert len(w.cycle()) == 1
    assert w.why(gang).members.bound == 3


@pytest.mark.parametrize("scheduler", ["quorate", KUBE])
def test_room_for_one_has_one_of_many_alike_tried(monkeypatch, scheduler):
    w = full_world(scheduler_names=("quorate", KUBE), profiles=((KUBE, KUBE_SCHEDULER),))
    for index in range(20):
        w.pod(f"s{index:02}", cpu=1, scheduler=scheduler, created_s=float(index))
    assert w.cycle() == {}
    looked_for = gangs_tried(w, monkeypatch)
    w.delete("run-3-1")
    plan = w.decide()
    assert [bind.name for gang in plan.gangs for bind in gang.binds] == ["s00"]
    assert looked_for == ["s00"]
    assert [which.name.partition("@")[0] for which in plan.touched] == ["s00"]


def test_when_one_fails_the_others_of_its_class_are_not_tried(monkeypatch):
    """Two slots on two nodes; all three gangs want theirs on one."""
    w = full_world(cpu=2)
    for name in "abc":
        w.gang(name, 2, spec=near(WEB, by="host"), labels=WEB_LABELS)
    w.gang("d", 2)
    looked_for = gangs_tried(w, monkeypatch)
    for index in range(4):
        w.nodes[f"n{index}"] = None
        w.node(f"n{index}", cpu=2, labels={"host": f"n{index}"})
    w.delete("run-0-0", "run-1-0")
    assert set(w.cycle()) == {"d-0", "d-1"}
    assert looked_for == ["a", "d"]


def test_a_gang_that_is_passed_over_does_not_keep_the_next_one_from_its_turn():
    """The first of two alike is taken from the queue and held: its second member has gone bad."""
    w = full_world()
    for name in ("a", "b"):
        w.gang(name, 2, dialect=LABELS)
    assert w.cycle() == {}
    w.delete("run-0-0", "run-0-1")
    w.edit("a-0", defect="broken")
    assert set(w.cycle()) == {"b-0", "b-1"}


def test_of_two_kinds_that_want_the_same_room_the_first_in_order_gets_it():
    w = full_world()
    w.gang("late", 2, dialect=LABELS, created_s=2.0, cpu=0.9)
    w.gang("early", 2, dialect=LABELS, created_s=1.0)
    w.gang("vip", 2, dialect=LABELS, created_s=3.0, priority=5)
    assert w.cycle() == {}
    w.delete("run-0-0", "run-1-0")
    assert set(w.cycle()) == {"vip-0", "vip-1"}
    w.delete("run-0-1", "run-1-1")
    assert set(w.cycle()) == {"early-0", "early-1"}


def test_a_gang_that_needs_less_than_all_is_woken_for_its_min(monkeypatch):
    w = full_world()
    w.gang("job", 2, pods=4, dialect=LABELS)
    assert w.cycle() == {}
    looked_for = gangs_tried(w, monkeypatch)
    w.delete("run-0-0")
    assert w.cycle() == {}
    w.delete("run-1-0")
    assert len(w.cycle()) == 2
    assert looked_for == ["job"]


# What is held or promised


def test_room_that_is_held_for_another_gang_wakes_nobody(monkeypatch):
    w = World()
    w.node("n0", cpu=2)
    w.gang("job", 2, owner=Owner("example.com/v1", "Thing", "a"))
    assert len(w.cycle()) == 2
    w.pod("single", cpu=1)
    assert w.cycle() == {}
    looked_for = gangs_tried(w, monkeypatch)
    w.delete("job-0")
    assert w.cycle(after_s=1.0) == {}
    assert looked_for == []
    assert w.cycle(after_s=400.0) == {"single": "n0"}


def test_room_that_is_promised_wakes_nobody_of_lower_priority(monkeypatch):
    w = World(scheduler_names=("quorate", KUBE), profiles=((KUBE, KUBE_SCHEDULER),))
    w.node("n0", cpu=1)
    w.running("low", "n0", cpu=1)
    w.pod("high", cpu=1, priority=10, scheduler=KUBE)
    w.pod("small", cpu=1, priority=0)
    [one] = w.decide().preemptions
    assert one.node == "n0"
    looked_for = gangs_tried(w, monkeypatch)
    w.delete("low")
    assert w.cycle() == {"high": "n0"}
    assert looked_for == ["high"]


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.node("n0", cpu=1, labels={"disk": "hdd"}),
        lambda w: w.node("n0", cpu=1, labels={"disk": "ssd"}, taints=["t:NoSchedule"]),
        lambda w: w.node("n0", cpu=1, labels={"disk": "ssd"}, cordoned=True),
    ],
    ids=["relabelled", "tainted", "cordoned"],
)
def test_a_promise_ends_when_its_node_stops_to_suit(change):
    w = World(scheduler_names=("quorate", KUBE), profiles=((KUBE, KUBE_SCHEDULER),))
    w.node("n0", cpu=1, labels={"disk": "ssd"})
    w.running("low", "n0", cpu=1)
    spec = {"node_selector": (("disk", "ssd"),)}
    w.pod("high", cpu=1, priority=10, scheduler=KUBE, spec=spec)
    [one] = w.decide().preemptions
    w.edit("high", nominated=one.node)
    w.delete("low")
    change(w)
    w.decide()
    assert not w.cluster.precedence.nominated


def test_room_that_a_higher_priority_may_have_wakes_it_alone(monkeypatch):
    """The bound pod is no victim while its gang's binds are under way."""
    w = World(scheduler_names=("quorate", KUBE), profiles=((KUBE, KUBE_SCHEDULER),))
    w.node("n0", cpu=1)
    w.pod("low", cpu=1, priority=1, scheduler=KUBE)
    plan = w.decide()
    w.pod("equal", cpu=1, priority=1, scheduler=KUBE)
    w.pod("high", cpu=1, priority=10, scheduler=KUBE)
    assert not w.decide().preemptions
    looked_for = gangs_tried(w, monkeypatch)
    w.settle(plan)
    [one] = w.decide().preemptions
    assert [victim.name for victim in one.victims] == ["low"]
    assert looked_for == ["high"]


# Bounds


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_classes_without_a_tally_are_looked_at_in_turn(monkeypatch, most):
    """There are two; with fewer tallies than that the gangs still come, in their order."""
    monkeypatch.setattr(policy, "CLASSES_WATCHED_MAX", most)
    w = full_world()
    w.gang("a", 2, dialect=LABELS, created_s=1.0)
    w.gang("b", 2, dialect=LABELS, created_s=2.0, cpu=0.9)
    w.decide()
    assert w.decide().wake_at_s is None
    assert len(w.scheduler.queue.blocked.slots) == min(most, 2)
    for first, second, name in (("run-0-0", "run-1-0", "a"), ("run-0-1", "run-1-1", "b")):
        w.delete(first)
        assert w.cycle() == {}
        w.delete(second)
        assert set(w.cycle()) == {f"{name}-0", f"{name}-1"}


@pytest.mark.parametrize("most", [1, 2, 3])
def test_so_many_masks_of_classes_are_kept(monkeypatch, most):
    """Two gangs ask for different nodes; one that has no mask there still comes."""
    w = World()
    w.node("n0", cpu=1, labels={"zone": "a"})
    w.node("n1", cpu=1, labels={"zone": "b"})
    monkeypatch.setattr(policy, "CLASS_MASKS_CELLS_MAX", most * len(w.cluster.nodes))
    for name in "ab":
        w.running(f"run-{name}", f"n{'ab'.index(name)}", cpu=1)
        w.gang(name, 1, dialect=LABELS, spec={"node_selector": (("zone", name),)})
    assert w.cycle() == {}
    assert len(w.scheduler.queue.blocked.slots) == min(most, 2)
    for name in "ba":
        w.delete(f"run-{name}")
        assert w.cycle() == {f"{name}-0": f"n{'ab'.index(name)}"}


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_priorities_without_a_level_are_woken_too_often_and_never_too_seldom(monkeypatch, most):
    monkeypatch.setattr(policy, "PRIORITIES_WATCHED_MAX", most)
    w = World(scheduler_names=(KUBE,), profiles=((KUBE, KUBE_SCHEDULER),))
    w.node("n0", cpu=2)
    w.running("fixed", "n0", cpu=2, priority=100)
    for priority in (10, 20):
        w.pod(f"p{priority}", cpu=1, priority=priority, scheduler=KUBE)
    assert w.cycle() == {}
    w.delete("fixed")
    w.running("low", "n0", cpu=2, priority=15)
    [one] = w.decide().preemptions
    assert one.name == "p20"


@pytest.mark.parametrize("steps", [1, 10, 1000])
def test_what_a_turn_has_no_steps_for_follows_at_once(monkeypatch, steps):
    monkeypatch.setattr(policy, "TURN_STEPS_MAX", steps)
    monkeypatch.setattr(policy, "CHECK_STEPS_MAX", max(1, steps // 2))
    w = World()
    w.node("n0", cpu=20)
    w.running("filler", "n0", cpu=20)
    for index in range(20):
        w.pod(f"s{index:02}", cpu=1, spec=apart(pods(app="x")) if index % 2 else None)
    for _ in range(100):
        if w.decide().wake_at_s is None:
            break
    assert len(w.scheduler.queue.blocked) == 20
    w.delete("filler")
    found: dict[str, str] = {}
    decisions = 0
    while True:
        plan = w.decide()
        decisions += 1
        w.settle(plan)
        found |= {bind.name: bind.node for gang in plan.gangs for bind in gang.binds}
        if plan.wake_at_s is None:
            break
        assert plan.wake_at_s == w.now_s or plan.gangs, "the rest follows at once"
        assert decisions < 100
    assert len(found) == 20
    assert (decisions > 2) is (steps < 1000)


@pytest.mark.parametrize("most", [1, 3, 4, 5])
def test_when_nodes_come_the_words_of_the_blocked_are_given_out_few_at_a_time(monkeypatch, most):
    monkeypatch.setattr(policy, "EXPLAINED_PER_TURN_MAX", most)
    w = full_world()
    waiting = {w.gang(name, 2, dialect=LABELS) for name in "abcd"}
    w.cycle()
    w.node("small", cpu=0)
    told = []
    while True:
        plan = w.decide(after_s=policy.EXPLAINED_AGAIN_S)
        assert len(plan.touched) <= most
        told += plan.touched
        if plan.wake_at_s is None:
            break
        assert plan.wake_at_s == w.now_s + policy.EXPLAINED_AGAIN_S
    assert sorted(told) == sorted(waiting)
    assert not w.decide(after_s=60.0).touched


# Others


def test_news_of_an_owner_touch_the_gangs_of_that_owner_alone():
    w = full_world()
    for name in ("mine", "other"):
        owner = Owner("apps/v1", "Deployment", name)
        for index in range(2):
            w.pod(f"{name}-{index}", owner=owner)
    w.cycle()
    w.observe(OwnerChanged(TEAM, Owner("apps/v1", "Deployment", "mine"), 2))
    touched = w.decide().touched
    assert {which.name.partition("@")[0] for which in touched} == {"mine-0", "mine-1"}
    w.delete("mine-0")
    w.decide()
    w.observe(OwnerChanged(TEAM, Owner("apps/v1", "Deployment", "mine"), 1))
    assert {which.name.partition("@")[0] for which in w.decide().touched} == {"mine-1"}


def test_an_object_without_pods_is_touched_when_its_min_resources_are_there_and_no_sooner():
    w = full_world()
    gang = w.object("job", 2, dialect=VOLCANO, min_resources=(("cpu", 2000),))
    w.decide()
    w.delete("run-0-0")
    assert gang not in w.decide().touched
    w.delete("run-1-0")
    assert gang in w.decide().touched
    w.delete("run-2-0")
    assert gang not in w.decide().touched, "it was told"


def test_a_gang_whose_min_resources_are_short_is_tried_when_the_sum_is_there(monkeypatch):
    """Its one pod has room all the time."""
    w = full_world()
    w.delete("run-0-0")
    w.gang("driver", 1, gang_spec={"min_resources": (("cpu", 3000),)})
    assert w.cycle() == {}
    looked_for = gangs_tried(w, monkeypatch)
    w.delete("run-1-0")
    assert w.cycle() == {}
    assert looked_for == []
    w.delete("run-2-0")
    assert set(w.cycle()) == {"driver-0"}
