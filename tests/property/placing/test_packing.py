"""Packing alike pods that constrain one another: each is accepted, and as many as one by one."""

import random

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from quorate.core.cluster.cluster import Cluster
from quorate.core.model import Pod, PodSpec
from quorate.core.model.changes import NodeChanged, PodChanged
from quorate.core.place.packing.pack import _pack_one_by_one, constrain_one_another, pack
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import pod_slots
from tests.property.seeds import drawn, seeds
from tests.property.worlds.shapes import POD_LABELS
from tests.unit.core.random_terms import random_node, random_terms
from tests.unit.core.terms import apart, near, pods, spread
from tests.unit.core.world import TEAM

packings = st.sampled_from(["most-allocated", "least-allocated"])
OWN = pods(app="web")


def own_terms(chance):
    """Terms that select the pod itself, several together."""
    spec = {}
    if chance.random() < 0.4:
        spec |= apart(OWN, by=chance.choice(["host", "zone", "rack"]))
    if chance.random() < 0.4:
        keys = chance.sample(["host", "zone", "rack"], chance.choice([1, 1, 2]))
        spec["affinity"] = tuple(near(OWN, by=key)["affinity"][0] for key in keys)
    if chance.random() < 0.5:
        more = {"skew": chance.randint(1, 3), "min_domains": chance.choice([1, 1, 2, 5])}
        keys = chance.sample(["host", "zone", "rack"], chance.choice([1, 1, 2]))
        spec["spread"] = tuple(spread(OWN, by=key, **more)["spread"][0] for key in keys)
    return spec


def world(chance):
    """A cluster with running pods, and a room; return the class of the pods to place too."""
    cluster = Cluster(("quorate",))
    nodes = [random_node(chance, number) for number in range(chance.randint(1, 9))]
    for one in nodes:
        cluster.apply(NodeChanged(one))
    for number in range(chance.choice([0, 2, 5])):
        spec = PodSpec((("cpu", 1),), **(random_terms(chance) if chance.random() < 0.5 else {}))
        labels = chance.choice(POD_LABELS)
        on = chance.choice(nodes).name
        cluster.apply(
            PodChanged(Pod(f"u{number}", TEAM, f"r{number}", "x", spec, node=on, labels=labels))
        )
    spec = PodSpec((("cpu", chance.randint(0, 2)),), **own_terms(chance))
    waiting = Pod("u", TEAM, "p", "quorate", spec, labels=(("app", "web"),))
    cluster.apply(PodChanged(waiting))
    entry = cluster.pods["u"]
    pod_class = cluster.classes.variant(
        entry.pod_class, cluster.neighbours.matched(entry.label_set)
    )
    return Room(cluster.snapshot(), RuleCache()), pod_class


def accepts(room, pod_class, counts):
    """Whether the pods can be placed one after the other, in some order, each where it may go then.

    Along two topologies the order matters. The pods are alike, so that what is left tells all of
    those that are placed.
    """
    refused = set()

    def is_placeable(room, left):
        if not left.any():
            return True
        if tuple(left) in refused:
            return False
        for node in np.flatnonzero((left > 0) & (pod_slots(pod_class, room) > 0)):
            one = np.zeros_like(left)
            one[node] = 1
            after = room.copy()
            after.take(pod_class, one)
            if is_placeable(after, left - one):
                return True
        refused.add(tuple(left))
        return False

    return is_placeable(room, counts)


@drawn(500)
@given(seeds, st.integers(1, 12), packings)
@example(3507552, 8, "most-allocated")  # not in the order of the nodes
def test_each_is_accepted_and_as_many_are_placed_as_one_by_one(seed, count, packing):
    room, pod_class = world(random.Random(seed))
    plain, before = room.copy(), room.copy()
    placed = pack(pod_class, count, room, packing)
    assert placed.sum() <= count
    assert accepts(before, pod_class, placed)
    assert placed.sum() >= _pack_one_by_one(pod_class, count, plain, packing).sum()
    after = before.copy()
    after.take(pod_class, placed)
    assert np.array_equal(after.free, room.free)


def test_the_worlds_constrain_often_enough():
    worlds = [world(random.Random(seed)) for seed in range(100)]
    assert sum(constrain_one_another(pod_class, room) for room, pod_class in worlds) > 60
