"""Gangs that fit only if the right pod comes first of those that are attracted to one another.

A pod whose affinity selects itself may go anywhere while no pod runs that it selects. The joint
search may not take placements for the same which differ in where that first one is.
"""

from tests.unit.core.terms import apart, near, pods
from tests.unit.core.world import World

JOB = {"job": "j"}


def world(*nodes):
    w = World()
    for number, (zone, cpu, most) in enumerate(nodes):
        w.node(f"n{number}", labels={"zone": zone, "host": f"n{number}"}, cpu=cpu, pods=most)
    return w


def test_the_first_one_is_on_the_node_that_no_other_makes_acceptable():
    """Two of the large ones fill n1: one of them has to be first, and the small one opens n0."""
    w = world(("a", 3, 2), ("a", 4, 5))
    gang = w.object("job", 4)
    w.pod("small", gang, cpu=1, labels=JOB)
    for number in range(3):
        w.pod(f"large-{number}", gang, cpu=2, labels=JOB, spec=near(pods(**JOB), by="host"))
    binds = w.cycle()
    assert sorted(binds.values()) == ["n0", "n0", "n1", "n1"]
    assert binds["small"] == "n0"


def test_of_many_nodes_the_one_that_needs_the_first_one_gets_it():
    """As above, but on so many nodes that orders cannot begin with each of them in turn."""
    w = world(*[("a", 3, 2)] * 99, ("a", 4, 2))
    gang = w.object("job", 200)
    for number in range(99):
        w.pod(f"small-{number}", gang, cpu=1, labels=JOB)
    for number in range(101):
        w.pod(f"large-{number}", gang, cpu=2, labels=JOB, spec=near(pods(**JOB), by="host"))
    binds = w.cycle()
    assert len(binds) == 200
    assert sum(node == "n99" for node in binds.values()) == 2


def test_zones_that_differ_in_where_the_first_one_is_are_not_alike():
    """The first one needs nobody: the lone pod has to open the zone that the first is not in."""
    w = world(*[(zone, 4, 2) for zone in "aabb"])
    gang = w.object("job", 3)
    spec = near(pods(**JOB), by="zone") | apart(pods(role="seeks"), by="zone")
    for number in range(2):
        w.pod(f"seeks-{number}", gang, cpu=3, labels=JOB | {"role": "seeks"}, spec=spec)
    w.pod("lone", gang, cpu=2, labels=JOB)
    binds = w.cycle()
    assert sorted(binds) == ["lone", "seeks-0", "seeks-1"]
    zones = {dict(w.nodes[binds[name]].labels)["zone"] for name in ("seeks-0", "seeks-1")}
    assert zones == {"a", "b"}
