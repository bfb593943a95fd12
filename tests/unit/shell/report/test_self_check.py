"""The self-check counts what is broken, once, in bounded looks. Method: worlds broken by hand."""

import pytest

from quorate.core.invariants import Invariant
from quorate.core.model import GangKey, GangSpec, Node
from quorate.core.model.changes import GangChanged, NodeChanged
from quorate.shell.report.metrics import Metrics
from quorate.shell.report.self_check import SelfCheck
from tests.unit.core.world import World
from tests.unit.shell.scripted_server import ManualClock


@pytest.fixture
def checked():
    w = World()
    for number in range(3):
        w.node(f"n{number}", cpu=4)
    w.gang("done", 2)
    w.cycle()
    clock = ManualClock()
    metrics = Metrics()
    return w, clock, metrics, SelfCheck(w.scheduler, metrics, clock)


def counted(metrics):
    return {
        str(invariant): value
        for invariant in Invariant
        if (value := metrics.invariant_violations.labels(str(invariant))._value.get())
    }


def test_a_violation_is_counted_once_while_it_stands_and_again_when_it_returns(checked):
    w, clock, metrics, check = checked
    check.look()
    assert counted(metrics) == {}
    assert metrics.invariant_checks._value.get() == 6  # 3 nodes, 1 gang, 2 pods
    free = w.cluster.nodes.free[0, 0]
    for broken, times in ((1, 1), (1, 1), (0, 1), (1, 2)):
        w.cluster.nodes.free[0, 0] = free - broken
        clock.time_s += 1.0
        check.look()
        assert counted(metrics) == {"node-counts": times}


def test_what_may_stand_for_a_while_is_counted_after_that_while(checked):
    w, clock, metrics, check = checked
    w.running("foreign", w.where("done-0"), cpu=4)
    for _ in range(15):
        check.look()
        assert counted(metrics) == {}
        clock.time_s += 1.0
    for _ in range(3):
        check.look()
        clock.time_s += 1.0
        assert counted(metrics) == {"node-shared-within-allocatable": 1}


def test_a_node_that_shrank_is_excused_until_it_is_no_longer_over(checked):
    w, clock, metrics, check = checked
    name = w.where("done-0")
    smaller = NodeChanged(Node(name, (("cpu", 1000), ("pods", 110))))
    check.observe([smaller])
    w.observe(smaller)
    for _ in range(3):
        check.look()
        clock.time_s += 20.0
    assert counted(metrics) == {}
    w.node(name, cpu=4)
    check.look()
    w.observe(smaller)  # nobody told the check that it shrank: our binds are over
    for _ in range(3):
        check.look()
        clock.time_s += 20.0
    assert set(counted(metrics)) == {"node-within-allocatable"}


def test_a_look_takes_a_bounded_time_and_goes_on_where_it_ended(checked):
    w, _, metrics, _ = checked

    class Slow(ManualClock):
        def monotonic_s(self):
            self.time_s += 0.0006
            return self.time_s

    check = SelfCheck(w.scheduler, metrics, Slow())
    seen = []
    for _ in range(5):  # the fourth look ends the round
        check.look()
        seen.append(metrics.invariant_checks._value.get())
    assert seen == [2, 4, 6, 6, 8]


def test_objects_that_go_while_a_round_is_under_way_are_passed_over(checked):
    w, _, metrics, check = checked
    check._round = check._objects()
    next(check._round)
    w.lose_node("n1")
    w.drop_object(GangKey("team", "x-k8s", "done"))
    w.delete("done-0", "done-1")
    w.observe(GangChanged(GangSpec(GangKey("team", "x-k8s", "later"), 2)))
    w.decide()
    check.look()
    assert counted(metrics) == {}
