"""Gangs beside pods that are nominated to nodes, and may come to nothing."""

from quorate.core.model.profile import KUBE_SCHEDULER
from tests.unit.core.terms import pods, spread
from tests.unit.core.world import World, pairs

KUBE = "default-scheduler"
HOST = "kubernetes.io/hostname"


def test_a_gang_does_not_rely_on_a_nominated_pod_to_raise_the_minimum():
    w = World(scheduler_names=(KUBE, "quorate"), profiles=((KUBE, KUBE_SCHEDULER),))
    w.node("n0", cpu=4, labels={HOST: "n0", "pool": "a"})
    w.node("n1", cpu=8, labels={HOST: "n1"})
    in_pool = {"node_selector": pairs({"pool": "a"})}
    w.pod("low", node="n0", phase="Running", cpu=4, scheduler=KUBE, spec=in_pool)
    w.pod("high", cpu=4, priority=10, scheduler=KUBE, labels={"app": "db"}, spec=in_pool)
    assert [one.node for one in w.decide(1).preemptions] == ["n0"]
    w.edit("low", terminating=True, preempted=True)
    evenly = spread(pods(app="db"), by=HOST)
    w.gang("job", 2, cpu=1, labels={"app": "db"}, spec=evenly)
    for after_s in (1, 1, 10):
        w.now_s += after_s
        plan = w.scheduler.decide(w.now_s)
        assert w.scheduler.verified(plan) == (plan, [])
        assert plan.gangs == ()


def test_an_empty_selector_of_a_spread_counts_nominated_pods_and_no_others():
    """So it does in kube-scheduler, which counts no pod that runs for an empty selector."""
    w = World(scheduler_names=(KUBE,), profiles=((KUBE, KUBE_SCHEDULER),))
    w.node("n0", cpu=1, labels={HOST: "n0"})
    w.node("n1", cordoned=True, labels={HOST: "n1"})
    w.pod("victim", node="n0", phase="Running", terminating=True, preempted=True)
    w.pod("promised", priority=10, nominated="n0", scheduler=KUBE)
    w.pod("spread", cpu=0, scheduler=KUBE, spec=spread(pods(), by=HOST))
    w.pod("plain", cpu=0, scheduler=KUBE)
    assert w.cycle() == {"plain": "n0"}
    assert w.cycle() == {}
    w.delete("victim")
    assert w.cycle() == {"promised": "n0", "spread": "n0"}
