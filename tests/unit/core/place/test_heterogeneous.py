"""Gangs of several pod classes: that one order of placing them fails does not mean no fit."""

import pytest

from quorate.core.model import HostPort
from quorate.core.model.reasons import Reason
from tests.unit.core.terms import apart, pods
from tests.unit.core.world import World, pairs

A = {"node_selector": pairs({"zone": "a"})}
PORTS = {
    name: {"host_ports": (HostPort("TCP", "0.0.0.0", number),)}
    for name, number in (("p80", 80), ("p81", 81))
}
BOTH_PORTS = {"host_ports": PORTS["p80"]["host_ports"] + PORTS["p81"]["host_ports"]}


def world(nodes, pods, need=None, **policy):
    """Nodes and pods as keyword tables; the gang needs all pods unless told otherwise."""
    w = World(**policy)
    for index, node in enumerate(nodes):
        w.node(f"n{index}", **node)
    gang = w.object("job", len(pods) if need is None else need)
    for index, pod in enumerate(pods):
        w.pod(f"p{index}", gang, **pod)
    return w, gang


def cpu(*amounts):
    return [{"cpu": amount} for amount in amounts]


FITS = {
    "perfect packing by cpu": (cpu(10, 10), cpu(6, 5, 3, 4, 2)),
    "largest first fails: 6 5 5 4 4 3 3 into 10 10 10": (
        cpu(10, 10, 10),
        cpu(6, 5, 5, 4, 4, 3, 3),
    ),
    "largest first fails: 44 33 33 22 into two bins": (cpu(66, 66), cpu(44, 33, 33, 22)),
    "three bins exactly full": (cpu(12, 12, 12), cpu(7, 6, 5, 5, 4, 4, 3, 2)),
    "two resources that cross": (
        [{"cpu": 9, "memory": 3}, {"cpu": 3, "memory": 9}],
        [
            {"cpu": 6, "memory": 1},
            {"cpu": 1, "memory": 6},
            {"cpu": 3, "memory": 2},
            {"cpu": 2, "memory": 3},
        ],
    ),
    "the small one is tied to the node that the large one likes": (
        [{"cpu": 4, "labels": {"zone": "a"}}, {"cpu": 4}],
        [{"cpu": 4}, {"cpu": 1, "spec": A}],
    ),
    "a launcher without gpu on a gpu node": (
        [{"cpu": 4, "gpu": 2}, {"cpu": 3, "gpu": 2}],
        [{"cpu": 1.5, "gpu": 1}] * 3 + [{"cpu": 2}],
    ),
    "pod slots are scarce": (
        [{"cpu": 4, "pods": 1}, {"cpu": 2, "pods": 3}],
        [{"cpu": 3}, {"cpu": 1}, {"cpu": 1}],
    ),
    "host ports of two classes": (
        cpu(4, 4, 4),
        [{"spec": PORTS["p80"]}] * 2 + [{"spec": PORTS["p81"]}] * 2 + [{"spec": BOTH_PORTS}],
    ),
    "host ports and tight cpu": (
        cpu(5, 3),
        [
            {"cpu": 3, "spec": PORTS["p80"]},
            {"cpu": 3, "spec": PORTS["p80"]},
            {"cpu": 2, "spec": PORTS["p81"]},
        ],
    ),
}


@pytest.mark.parametrize("packing", ["most-allocated", "least-allocated"])
@pytest.mark.parametrize(("nodes", "pods"), FITS.values(), ids=FITS.keys())
def test_a_gang_that_fits_is_placed(nodes, pods, packing):
    w, _ = world(nodes, pods, packing=packing)
    assert len(w.cycle()) == len(pods)


NO_FIT = {
    "in sum it would": (cpu(5, 5), cpu(4, 4, 2)),
    "each class alone would": (cpu(4, 4), cpu(3, 3, 2)),
    "ports": (
        cpu(4, 4),
        [{"spec": PORTS["p80"]}] * 2 + [{"spec": BOTH_PORTS}],
    ),
    "two resources": (
        [{"cpu": 4, "memory": 2}, {"cpu": 2, "memory": 4}],
        [{"cpu": 3, "memory": 3}, {"cpu": 1, "memory": 1}],
    ),
}


@pytest.mark.parametrize(("nodes", "pods"), NO_FIT.values(), ids=NO_FIT.keys())
def test_a_gang_that_does_not_fit_is_not_placed_in_part(nodes, pods):
    w, gang = world(nodes, pods)
    assert w.cycle() == {}
    assert w.why(gang).reason in (Reason.NOT_ENOUGH_ROOM, Reason.REQUEST_TOO_LARGE)
    assert w.cluster.gangs[gang].assumed == 0


def test_members_that_no_node_takes_use_up_none_of_the_choices():
    """m, y0 and y1 fit; a-x would take their room, and 16 others have nowhere to go."""
    rack = {"labels": {"rack": "r"}}
    alone = apart(pods(app="a"), by="rack")
    w = World()
    w.node("n0", cpu=3, **rack)
    gang = w.object("job", 3)
    w.pod("a-x", gang, cpu=2)
    for number in range(8):
        for twin in "01":
            spec = {"node_selector": pairs({"zone": f"z{number}"})}
            w.pod(f"c{number}-{twin}", gang, cpu=1, spec=spec)
    w.pod("m", gang, cpu=1, labels={"app": "a"}, spec=alone)
    w.pod("y0", gang, cpu=1)
    w.pod("y1", gang, cpu=1)
    assert set(w.cycle()) == {"m", "y0", "y1"}


def test_a_bound_ends_the_search_and_the_reason_says_so():
    pods = cpu(6, 5, 5, 4, 4, 3, 3)
    w, gang = world(cpu(10, 10, 10), pods, search_steps_max=3)
    placed = w.cycle()
    if not placed:
        assert "the search for a joint placement was cut short" in w.why(gang).message
    assert len(placed) in (0, len(pods))


@pytest.mark.parametrize("workers", [4, 250])
def test_the_tied_class_goes_first_however_many_pods_there_are(workers):
    """Beyond the size of the search, the order of classes decides."""
    nodes = [{"cpu": 8, "gpu": 8, "labels": {"zone": "a"}}]
    nodes += [{"cpu": 8, "gpu": 8}] * (workers // 8 + 1)
    pods = [{"cpu": 1, "gpu": 1}] * workers
    pods += [{"cpu": 8, "spec": A}]
    w, _ = world(nodes, pods)
    assert len(w.cycle()) == workers + 1


def test_a_started_gang_places_its_extras_class_by_class():
    w, gang = world(cpu(4), cpu(2, 2), need=2)
    w.cycle()
    w.pod("large", gang, cpu=8)
    w.pod("small", gang, cpu=1)
    w.node("n1", cpu=1)
    assert w.cycle() == {"small": "n1"}
    w.node("n2", cpu=8)
    assert w.cycle() == {"large": "n2"}


def test_several_hundred_classes_are_placed_in_one_go():
    w, _ = world(
        [{"cpu": 300, "memory": 300, "pods": 400}] * 2,
        [{"cpu": 0.1 + index / 1000} for index in range(300)],
    )
    assert len(w.cycle()) == 300


def test_a_hopeless_gang_of_many_classes_comes_to_an_end():
    """Choosing which members make the quorum must not try all subsets."""
    w, gang = world(cpu(40, 40), [{"cpu": 1.5 + index / 1000} for index in range(53)])
    assert w.cycle() == {}
    assert w.why(gang).members.waiting == 53
