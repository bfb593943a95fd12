"""A blocked gang is woken by the change that can help it, and by nothing else."""

import pytest

from tests.unit.core.world import X_K8S, World, key, pairs

ZONE_A = {"zone": "a"}


def blocked_world(**pod):
    """One node full of another's pod; a gang of two that wants 2 cpu each, in zone a."""
    w = World()
    w.node("n0", cpu=4, labels=ZONE_A)
    w.node("other", cpu=4, labels={"zone": "b"})
    w.running("filler", "n0", cpu=3)
    w.running("far", "other", cpu=3)
    spec = {"node_selector": pairs(ZONE_A)}
    w.gang("job", 2, cpu=2, spec=spec, **pod)
    assert w.cycle() == {}
    assert not w.tries(w.decide(), key("job"))
    return w


def shrink_filler(w):
    pod = w.pods["filler"]
    w.pod("filler", node="n0", phase="Running", scheduler=pod.scheduler, cpu=0)


HELPS = {
    "pod deleted": lambda w: w.delete("filler"),
    "pod finished": lambda w: w.edit("filler", phase="Succeeded"),
    "pod resized": shrink_filler,
    "allocatable grew": lambda w: w.node("n0", cpu=7, labels=ZONE_A),
    "node added": lambda w: w.node("n1", cpu=4, labels=ZONE_A),
    "label changed": lambda w: w.node("other", cpu=7, labels=ZONE_A),
    "gang shrank": lambda w: (w.object("job", 1), w.node("n0", cpu=5, labels=ZONE_A)),
}


@pytest.mark.parametrize("change", HELPS.values(), ids=HELPS.keys())
def test_a_change_that_makes_room_places_the_gang(change):
    w = blocked_world()
    change(w)
    assert w.cycle() != {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"taints": ["gpu:NoSchedule"]}, {"taints": []}),
        ({"taints": ["gpu:NoExecute"]}, {"taints": ["gpu:PreferNoSchedule"]}),
        ({"cordoned": True}, {"cordoned": False}),
        ({"labels": {}}, {"labels": {"zone": "a"}}),
        ({"gpu": 1}, {"gpu": 2}),
        ({"cpu": 1}, {"cpu": 2}),
        ({"pods": 1}, {"pods": 2}),
    ],
)
def test_a_node_that_becomes_fit_places_the_gang(before, after):
    w = World()
    good = {"labels": {"zone": "a"}, "gpu": 2}
    w.node("n0", **{**good, **before})
    w.gang("job", 2, gpu=1, spec={"node_selector": (("zone", "a"),)})
    assert w.cycle() == {}
    w.node("n0", **{**good, **after})
    assert len(w.cycle()) == 2


NO_HELP = {
    "nothing": lambda w: None,
    "a pod of another node deleted": lambda w: w.delete("far"),
    "a pod starts elsewhere": lambda w: w.running("more", "other", cpu=1),
    "a node of another zone grew": lambda w: w.node("other", cpu=40, labels={"zone": "b"}),
    "the node grew too little": lambda w: w.node("n0", cpu=4.5, labels=ZONE_A),
    "the node grew in what it has enough of": lambda w: w.node(
        "n0", cpu=4, memory=500, labels=ZONE_A
    ),
    "the same node again": lambda w: w.node("n0", cpu=4, labels=ZONE_A),
    "the node was cordoned": lambda w: w.node("n0", cpu=99, labels=ZONE_A, cordoned=True),
    "the node was tainted": lambda w: w.node("n0", cpu=99, labels=ZONE_A, taints=["t:NoSchedule"]),
    "another gang came": lambda w: w.gang("another", 2, pods=1),
    "a pod's status changed": lambda w: w.edit("filler", phase="Unknown"),
    "a gang elsewhere started": lambda w: w.gang("small", 1),
    "time passed": lambda w: None,
}


@pytest.mark.parametrize("change", NO_HELP.values(), ids=NO_HELP.keys())
def test_a_change_that_cannot_help_wakes_nobody(change):
    w = blocked_world()
    change(w)
    assert not w.tries(w.decide(after_s=500.0), key("job"))


def tried(w, which, change):
    """Whether the gang was tried again, also where nodes came or went (all are reported then).

    The queue keeps the blocked in the order in which they were blocked.
    """
    w.gang("after", 2, cpu=1, spec={"node_selector": (("zone", "nowhere"),)})
    w.decide()
    assert list(w.scheduler.queue.blocked) == [which, key("after")]
    change(w)
    w.decide()
    return list(w.scheduler.queue.blocked) != [which, key("after")]


@pytest.mark.parametrize(
    ("change", "is_tried"),
    [
        (lambda w: w.node("n1", cpu=1, labels=ZONE_A), False),
        (lambda w: w.node("n1", cpu=9, labels={"zone": "b"}), False),
        (lambda w: w.node("n1", cpu=9, labels=ZONE_A, cordoned=True), False),
        (lambda w: w.lose_node("n0"), False),
        (lambda w: w.lose_node("other"), False),
        (lambda w: w.node("n1", cpu=3, labels=ZONE_A), False),
        (lambda w: w.node("n1", cpu=4, labels=ZONE_A), True),
    ],
    ids=["too small", "wrong zone", "cordoned", "lost", "other lost", "one fits", "both fit"],
)
def test_a_node_that_comes_or_goes_wakes_only_whom_it_could_help(change, is_tried):
    assert tried(blocked_world(), key("job"), change) is is_tried


def test_every_blocked_gang_is_reported_when_the_set_of_nodes_differs():
    w = blocked_world()
    w.node("n9", cpu=0)
    assert key("job") in w.decide().touched


def test_nothing_wakes_by_time_when_nothing_is_due():
    w = blocked_world()
    assert w.decide().wake_at_s is None
    assert key("job", X_K8S) in w.scheduler.queue.blocked
