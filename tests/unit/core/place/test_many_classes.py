"""Gangs of many classes: what they cost is counted, in steps or in calls; never in seconds."""

import sys

import pytest

from quorate.core.model import policy
from quorate.core.model.reasons import Reason
from quorate.core.model.steps import Steps
from quorate.core.place import gang as gangs
from quorate.core.place import greedy
from quorate.core.place.gang import place_gang_in_turn
from quorate.core.place.greedy import Demand, Placement
from quorate.core.place.members import members_of
from quorate.core.place.search.joint import steps_to_begin
from quorate.core.words import diagnosis
from tests.unit.core.terms import near, pods, spread
from tests.unit.core.world import World


def calls_of(work):
    """Return how many functions of Python were called, generators gone on with included."""
    calls = 0

    def count(frame, event, _):
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def spread_gang(specs, constraints=4):
    """Return a scheduler and its plan for a gang of so many specs that share constraints."""
    w = World()
    keys = [f"t{number}" for number in range(constraints)]
    for number in range(5):
        w.node(f"n{number}", cpu=64, labels=dict.fromkeys(keys, f"v{number}"))
    gang = w.object("g", specs)
    rules = sum((spread(pods(app="x"), by=key, skew=100)["spread"] for key in keys), ())
    for number in range(specs):
        spec = {"spread": rules}
        w.pod(f"p{number}", gang, cpu=1 + number / 1000, labels={"app": "x"}, spec=spec)
    return w.scheduler, w.scheduler.decide(w.now_s)


def test_the_check_of_a_plan_costs_each_spec_the_same_however_many_there_are():
    def calls(specs):
        scheduler, plan = spread_gang(specs)
        return calls_of(lambda: scheduler.verified(plan))

    calls(5)  # what is done once
    few, many = calls(40), calls(160)
    assert many < 4.5 * few


def room_and_classes(cpus, *, nodes=3, cpu=8, spec=None):
    """Return the room on alike nodes, and a class of one pod for each number of cores."""
    w = World()
    for number in range(nodes):
        w.node(f"n{number}", cpu=cpu, labels={"zone": "z"})
    gang = w.object("g", len(cpus))
    for number, cores in enumerate(cpus):
        w.pod(f"p{number}", gang, cpu=cores, labels={"app": "x"}, spec=spec)
    members = members_of(w.cluster.gangs[gang], w.cluster)
    return w.scheduler.planner.room(), tuple((one, len(pods)) for one, pods in members.items())


def counted(monkeypatch, where, name):
    """Return a list to which each call of a function adds."""
    calls, function = [], getattr(where, name)

    def count(*args, **more):
        calls.append(args)
        return function(*args, **more)

    monkeypatch.setattr(where, name, count)
    return calls


@pytest.mark.parametrize(
    ("need", "looked_at"), [(20, 1), (19, 2), (18, 3), (17, 20), (0, 20)], ids=str
)
def test_no_class_is_looked_at_once_too_many_pods_have_no_place(monkeypatch, need, looked_at):
    room, classes = room_and_classes([9, 9.1, 9.2, *(n / 1000 for n in range(1, 18))])
    packed = counted(monkeypatch, greedy.pack, "pack")
    found = place_gang_in_turn(Demand(classes, need), room, "most-allocated", 0, Steps(10**6), None)
    assert len(packed) == looked_at
    assert isinstance(found, Placement) == (need <= 17)


@pytest.mark.parametrize("least", [(), ((0, 1),)], ids=["no minima", "a minimum"])
def test_each_class_takes_steps_whatever_the_gang_asks_for(least):
    """Those that the quorum needs, and those that come with it."""
    room, classes = room_and_classes([n / 1000 for n in range(1, 41)])
    steps = Steps(10**6)
    demand = Demand(classes, 2, least)
    found = place_gang_in_turn(demand, room, "most-allocated", 0, steps, None)
    assert isinstance(found, Placement)
    assert found.placed == 40
    assert steps.taken >= 10 * len(classes)


@pytest.mark.parametrize(("more", "searches"), [(-1, 0), (0, 0), (1, 1)])
def test_a_search_of_which_the_tables_alone_take_all_steps_is_not_made(monkeypatch, more, searches):
    """Three large pods on two nodes, near one another."""
    made = counted(monkeypatch, gangs, "JointSearch")
    w = World(search_steps_max=steps_to_begin(3, 2) + more)
    for number in range(2):
        w.node(f"n{number}", cpu=8, labels={"zone": "z"})
    gang = w.object("g", 3)
    for number, cores in enumerate([5, 5.5, 6]):
        spec = near(pods(app="x"))
        w.pod(f"p{number}", gang, cpu=cores, labels={"app": "x"}, spec=spec)
    for _ in range(20):
        plan = w.decide()
        if plan.wake_at_s is None or plan.wake_at_s > w.now_s:
            break
    assert len(made) == searches
    assert gang not in w.scheduler.queue.searching
    assert "was cut short" in w.why(gang).message


# Explanations


def explained(monkeypatch, classes, most, cpus, **more):
    """Return the explanation of a gang of so many classes, and how many were looked at."""
    monkeypatch.setattr(policy, "EXPLAINED_CLASSES_MAX", most)
    w = World()
    for number in range(3):
        w.node(f"n{number}", cpu=8)
    gang = w.object("g", classes)
    for number, cores in zip(range(classes), cpus, strict=False):
        spec = more.get("spec") if number == classes - 1 else None
        w.pod(f"p{number:02}", gang, cpu=cores, spec=spec)
    w.decide()
    packed = counted(monkeypatch, diagnosis, "pack")
    return w.why(gang), len(packed)


@pytest.mark.parametrize("classes", [9, 10, 11])
def test_so_many_classes_are_looked_at_one_by_one_to_explain_a_gang(monkeypatch, classes):
    """Two fit on each node: six in all. What is said is of those that were looked at."""
    cpus = [4 - number / 1000 for number in range(classes)]
    found, looked_at = explained(monkeypatch, classes, 10, cpus)
    assert found.reason is Reason.NOT_ENOUGH_ROOM
    assert looked_at == min(classes, 10)
    assert len(found.blockers) == looked_at - 6
    if classes <= 10:
        assert f"{classes} members must start together and 6 fit" in found.message
    else:
        assert "11 members wait, and of 10 looked at 6 fit" in found.message
        assert "was cut short" in found.message


def test_of_too_many_classes_those_without_room_of_their_own_are_looked_at_first(monkeypatch):
    """The smallest is the one that no node takes."""
    cpus = [1 - number / 1000 for number in range(20)]
    spec = {"node_selector": (("zone", "none"),)}
    found, looked_at = explained(monkeypatch, 20, 5, cpus, spec=spec)
    assert found.reason is Reason.NO_NODE_MATCHES
    assert [blocker.pod for blocker in found.blockers] == ["p19"]
    assert looked_at == 5
    assert "20 members wait, and of 5 looked at 4 fit" in found.message


def test_where_all_that_were_looked_at_fit_no_more_is_claimed(monkeypatch):
    """Thirty of which 24 fit, and all of the five largest."""
    found, _ = explained(monkeypatch, 30, 5, [1 - number / 1000 for number in range(30)])
    assert found.blockers == ()
    assert found.message == (
        "30 members wait, and of 5 looked at 5 fit: no joint placement of all its pod classes was "
        "found (the search for a joint placement was cut short)"
    )
