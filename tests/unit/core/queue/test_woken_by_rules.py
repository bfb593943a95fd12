"""News of nodes and pods that move topology rules wake those whom they help."""

import pytest

from quorate.core.model import Owner
from quorate.core.model.profile import KUBE_SCHEDULER
from tests.unit.core.terms import apart, near, pods, spread
from tests.unit.core.world import World, gangs_tried

KUBE = "default-scheduler"
REPLICAS = Owner("apps/v1", "ReplicaSet", "web")
WEB = pods(app="web")
WEB_LABELS = {"app": "web"}


def sits(cpu=1, **rules):
    return {"cpu": cpu, "labels": WEB_LABELS, "spec": rules}


def spread_world(**more):
    """Zones a and b have a web pod each and room, zone c none of both: the minimum is 0."""
    w = World()
    for zone in "ab":
        w.node(f"n-{zone}", cpu=8, labels={"zone": zone})
        w.running(f"web-{zone}", f"n-{zone}", labels=WEB_LABELS)
    w.node("n-c", cpu=1, labels={"zone": "c"})
    w.running("full", "n-c", cpu=1)
    w.gang("job", 2, **sits(**spread(WEB, **more)))
    return w


def near_world():
    """The pod that is wanted is on a full node of zone b; the room is in zone a."""
    w = World()
    w.node("n-db", cpu=1, labels={"zone": "b"})
    w.running("db", "n-db", cpu=1, labels={"app": "db"})
    w.node("roomy", cpu=8, labels={"zone": "a"})
    w.gang("job", 2, spec=near(pods(app="db")))
    return w


def apart_world():
    """The pod that is shunned is on a full node of the only zone with room."""
    w = World()
    w.node("n-db", cpu=1, labels={"zone": "a"})
    w.running("db", "n-db", cpu=1, labels={"app": "db"})
    w.node("roomy", cpu=8, labels={"zone": "a"})
    w.gang("job", 2, spec=apart(pods(app="db"), by="zone"))
    return w


def repelled_world():
    """A pod on a full node of the only zone with room shuns the gang's pods."""
    w = World()
    w.node("n-db", cpu=1, labels={"zone": "a"})
    w.running("db", "n-db", cpu=1, spec=apart(WEB, by="zone"))
    w.node("roomy", cpu=8, labels={"zone": "a"})
    w.gang("job", 2, **sits())
    return w


def lose(w, name, *pods_too):
    w.delete(*pods_too)
    w.lose_node(name)


TOPOLOGY_HELPS = {
    "spread: the node of the emptiest zone goes, and its pod": (
        spread_world,
        lambda w: lose(w, "n-c", "full"),
    ),
    "spread: that node goes, and its pod stays known": (spread_world, lambda w: lose(w, "n-c")),
    "spread: that node loses its zone": (
        spread_world,
        lambda w: w.node("n-c", cpu=1, labels={}),
    ),
    "spread: that node moves to zone a": (
        spread_world,
        lambda w: w.node("n-c", cpu=1, labels={"zone": "a"}),
    ),
    "spread: that node is tainted, and taints are honoured": (
        lambda: spread_world(honor_taints=True),
        lambda w: w.node("n-c", cpu=1, labels={"zone": "c"}, taints=["x:NoSchedule"]),
    ),
    "spread: a node of another zone comes, and enough domains are there": (
        lambda: spread_world(min_domains=4),
        lambda w: (w.running("web-c", "n-c", cpu=0, labels=WEB_LABELS), more_zones(w)),
    ),
    "affinity: the full node of the wanted pod moves into the zone": (
        near_world,
        lambda w: w.node("n-db", cpu=1, labels={"zone": "a"}),
    ),
    "anti-affinity: the full node of the shunned pod leaves the zone": (
        apart_world,
        lambda w: w.node("n-db", cpu=1, labels={"zone": "b"}),
    ),
    "anti-affinity of another pod: its full node leaves the zone": (
        repelled_world,
        lambda w: w.node("n-db", cpu=1, labels={"zone": "b"}),
    ),
}


def more_zones(w):
    w.node("n-d", cpu=0, labels={"zone": "d"})
    w.running("web-d", "n-d", cpu=0, labels=WEB_LABELS)


@pytest.mark.parametrize(("world", "change"), TOPOLOGY_HELPS.values(), ids=TOPOLOGY_HELPS.keys())
def test_a_node_that_moves_a_rule_wakes_whom_that_helps(world, change):
    w = world()
    assert w.cycle() == {}
    change(w)
    assert len(w.cycle()) == 2


TOPOLOGY_IS_NO_HELP = {
    "another label": lambda w: w.node("n-c", cpu=1, labels={"zone": "c", "rack": "1"}),
    "a taint that does not count": lambda w: w.node(
        "n-c", cpu=1, labels={"zone": "c"}, taints=["x:NoSchedule"]
    ),
    "cordoned": lambda w: w.node("n-c", cpu=1, labels={"zone": "c"}, cordoned=True),
    "moved to a zone that is as empty": lambda w: w.node("n-c", cpu=1, labels={"zone": "d"}),
    "one more node in that zone, as full": lambda w: w.node("n-c2", cpu=0, labels={"zone": "c"}),
    "a full node goes from another zone": lambda w: w.lose_node("n-e"),
    "a pod of no interest goes": lambda w: w.delete("other"),
}


@pytest.mark.parametrize("change", TOPOLOGY_IS_NO_HELP.values(), ids=TOPOLOGY_IS_NO_HELP.keys())
def test_a_node_that_does_not_help_has_nobody_tried(change, monkeypatch):
    w = spread_world()
    w.node("n-e", cpu=0, labels={"zone": "a"})
    w.running("other", "n-c", cpu=0)
    assert w.cycle() == {}
    looked_for = gangs_tried(w, monkeypatch)
    change(w)
    assert w.cycle() == {}
    assert looked_for == []


def test_a_pod_that_begins_to_terminate_while_others_wait_wakes_without_rows():
    """Its labels are of interest, and no row grew."""
    w = World(scheduler_names=(KUBE,), profiles=((KUBE, KUBE_SCHEDULER),))
    w.node("n0", cpu=4, labels={"kubernetes.io/hostname": "n0"})
    w.running("low", "n0", cpu=1, priority=0)
    w.pod("big", cpu=64, priority=10, scheduler=KUBE)
    w.pod(
        "web-0",
        cpu=1,
        labels=WEB_LABELS,
        scheduler=KUBE,
        owner=REPLICAS,
    )
    assert w.cycle() == {"web-0": "n0"}
    w.edit("web-0", terminating=True)
    assert w.cycle() == {}
