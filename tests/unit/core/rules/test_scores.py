"""Where pods go when several nodes take them: as placing them one after the other would give."""

import pytest

from quorate.core.model import PreferredTerm, Requirement, SelectorTerm, Toleration
from tests.unit.core.world import World


def counts(w, placed):
    found = dict.fromkeys(w.nodes, 0)
    for node in placed.values():
        found[node] += 1
    return list(found.values())


def spread(packing, nodes, pods, running=(), **pod):
    """Return how many of the gang's pods each node gets."""
    w = World(packing=packing)
    for index, node in enumerate(nodes):
        w.node(f"n{index}", **node)
    for index, (node, more) in enumerate(running):
        w.running(f"other-{index}", node, **more)
    w.gang("job", pods, **pod)
    return counts(w, w.cycle())


@pytest.mark.parametrize(
    ("nodes", "running", "pods", "most", "least"),
    [
        ([{"cpu": 4}] * 3, [], 3, [3, 0, 0], [1, 1, 1]),
        ([{"cpu": 4}] * 3, [], 6, [4, 2, 0], [2, 2, 2]),
        ([{"cpu": 4}] * 3, [("n1", {"cpu": 2})], 4, [2, 2, 0], [2, 0, 2]),
        ([{"cpu": 4}] * 3, [("n1", {"cpu": 2})], 7, [4, 2, 1], [3, 1, 3]),
        ([{"cpu": 8}, {"cpu": 4}], [], 4, [0, 4], [3, 1]),
        ([{"cpu": 8}, {"cpu": 4}], [], 12, [8, 4], [8, 4]),
        ([{"cpu": 4, "pods": 1}, {"cpu": 8}], [], 5, [1, 4], [1, 4]),
        ([{"cpu": 4}, {"cpu": 4, "cordoned": True}], [], 2, [2, 0], [2, 0]),
    ],
)
def test_most_allocated_fills_and_least_allocated_spreads(nodes, running, pods, most, least):
    assert spread("most-allocated", nodes, pods, running) == most
    assert spread("least-allocated", nodes, pods, running) == least


def test_gpus_decide_where_pods_ask_for_them():
    """On a GPU cluster it is GPUs that must not be left in fragments."""
    nodes = [{"cpu": 64, "gpu": 8}] * 2
    running = [("n0", {"cpu": 20}), ("n1", {"cpu": 0, "gpu": 6})]
    assert spread("most-allocated", nodes, 2, running, gpu=1) == [0, 2]


def test_pods_that_ask_for_nothing_spread_evenly():
    assert spread("least-allocated", [{}] * 4, 8, cpu=0) == [2, 2, 2, 2]


@pytest.mark.parametrize("packing", ["most-allocated", "least-allocated"])
def test_untolerated_soft_taints_are_avoided_while_there_is_other_room(packing):
    nodes = [{"cpu": 4, "taints": ["slow:PreferNoSchedule"]}, {"cpu": 4}]
    assert spread(packing, nodes, 3) == [0, 3]
    assert spread(packing, nodes, 5) == [1, 4]


def test_tolerated_soft_taints_are_not_avoided():
    nodes = [{"cpu": 4, "taints": ["slow:PreferNoSchedule"]}, {"cpu": 8}]
    spec = {"tolerations": (Toleration(key="slow", operator="Exists"),)}
    assert spread("most-allocated", nodes, 3, spec=spec) == [3, 0]


def prefers(*weighted):
    return {
        "preferred_terms": tuple(
            PreferredTerm(weight, SelectorTerm((Requirement(name, "Exists"),)))
            for weight, name in weighted
        )
    }


@pytest.mark.parametrize("packing", ["most-allocated", "least-allocated"])
@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (prefers((10, "b")), [0, 2, 0]),
        (prefers((10, "a"), (20, "b")), [0, 2, 0]),
        (prefers((10, "a"), (5, "b"), (6, "c")), [0, 0, 2]),
        (prefers((1, "nowhere")), None),
        ({"preferred_terms": (PreferredTerm(5, SelectorTerm()),)}, None),
    ],
)
def test_preferred_affinity_adds_up_weights(packing, spec, wanted):
    nodes = [
        {"labels": {"a": ""}},
        {"labels": {"b": ""}},
        {"labels": {"a": "", "c": ""}},
    ]
    found = spread(packing, nodes, 2, spec=spec)
    if wanted is None:
        wanted = spread(packing, nodes, 2)
    assert found == wanted


def test_a_preference_never_costs_a_place():
    nodes = [{"cpu": 2, "labels": {"a": ""}}, {"cpu": 8}]
    assert spread("most-allocated", nodes, 5, spec=prefers((100, "a"))) == [2, 3]


@pytest.mark.parametrize("packing", ["most-allocated", "least-allocated"])
def test_the_same_world_gives_the_same_plan(packing):
    def plan():
        w = World(packing=packing)
        for index in range(40):
            w.node(f"n{index}", cpu=4 + index % 3)
        for name in "abc":
            w.gang(name, 7)
        return w.decide()

    assert plan() == plan()
