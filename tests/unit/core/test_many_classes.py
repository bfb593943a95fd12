"""Gangs of many classes: what they cost is counted, in steps or in calls; never in seconds."""

import sys

from tests.unit.core.terms import pods, spread
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


def spread_gang(shapes, constraints=4):
    """Return a scheduler and its plan for a gang of so many shapes that share constraints."""
    w = World()
    keys = [f"t{number}" for number in range(constraints)]
    for number in range(5):
        w.node(f"n{number}", cpu=64, labels=dict.fromkeys(keys, f"v{number}"))
    gang = w.object("g", shapes)
    rules = sum((spread(pods(app="x"), by=key, skew=100)["spread"] for key in keys), ())
    for number in range(shapes):
        shape = {"spread": rules}
        w.pod(f"p{number}", gang, cpu=1 + number / 1000, labels={"app": "x"}, shape=shape)
    return w.scheduler, w.scheduler.decide(w.now_s)


def test_the_check_of_a_plan_costs_each_shape_the_same_however_many_there_are():
    def calls(shapes):
        scheduler, plan = spread_gang(shapes)
        return calls_of(lambda: scheduler.verified(plan))

    calls(5)  # what is done once
    few, many = calls(40), calls(160)
    assert many < 4.5 * few
