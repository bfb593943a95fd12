"""The joint search keeps its way down on a stack of its own: no call is nested in another."""

import sys

import pytest

from quorate.core.model.steps import Steps
from quorate.core.place.members import members_of
from quorate.core.place.search.joint import JointSearch
from tests.unit.core.terms import near, pods, spread
from tests.unit.core.world import World

FRAMES = 60
"""As many as the search nests, NumPy's own among them."""


def frames():
    """Return how many frames there are now."""
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


@pytest.mark.parametrize("rules", ["affinity", "affinity and spread"])
def test_a_gang_of_2000_that_is_coupled_needs_no_recursion(rules):
    workers = 2_000
    w = World()
    for number in range(8):
        labels = {"zone": f"z{number % 4}"}
        w.node(f"n{number}", cpu=workers, pods=workers, labels=labels)
    gang = w.object("g", workers + 1)
    spec = spread(pods(role="worker"), by="zone") if rules != "affinity" else {}
    w.pod(
        "leader", gang, cpu=8, labels={"role": "leader"}, spec=near(pods(role="worker"), by="zone")
    )
    for number in range(workers):
        w.pod(f"w{number}", gang, cpu=1, labels={"role": "worker"}, spec=spec)
    members = members_of(w.cluster.gangs[gang], w.cluster)
    counts = tuple((pod_class, len(some)) for pod_class, some in members.items())
    room, endless = w.scheduler.planner.room(), 2**62
    search = JointSearch(counts, workers + 1, (), room, endless)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(frames() + FRAMES)
    try:
        found = search.run(Steps(endless))
    finally:
        sys.setrecursionlimit(before)
    assert found is not None
    assert found.order is not None
    assert len(found.order) == workers + 1
