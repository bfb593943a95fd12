"""Packing by domain places each pod where the plain way places it, and as many."""

import random
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.cluster.cluster import Cluster
from quorate.core.model import Node, Pod, PodSpec
from quorate.core.model.changes import NodeChanged, PodChanged
from quorate.core.place.packing import pack as packing_of
from quorate.core.place.packing.domains import Cells, Levels, fixed_slots
from quorate.core.place.packing.fill import fill_cells
from quorate.core.place.packing.one_by_one import place_one_by_one
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import own_slots
from tests.property import plain_packing
from tests.property.seeds import drawn, seeds
from tests.unit.core.terms import apart, near, pods, spread
from tests.unit.core.world import TEAM

OWN = pods(app="web")
KEYS = ["host", "pair", "rack", "row", "zone"]
packings = st.sampled_from(["most-allocated", "least-allocated"])


def cells_of(chance, rows, missing):
    """Random domains of the rows; some are of one row each."""
    codes = np.array([chance.randrange(chance.choice([1, 2, 3, 9])) for _ in range(rows)])
    if chance.random() < 0.2:
        codes = np.array(chance.sample(range(rows), rows))
    present = np.array([not missing or chance.random() < 0.8 for _ in range(rows)])
    values, codes[present] = np.unique(codes[present], return_inverse=True)
    codes[~present] = -1
    return Cells(codes, len(values))


def levels(chance, cells):
    counts = [chance.choice([0, 0, 0, 1, 2, 5]) for _ in range(cells.number)]
    in_minimum = [chance.random() < 0.8 for _ in range(cells.number)]
    skew, too_few = chance.choice([1, 1, 2, 4, 99]), chance.random() < 0.1
    return Levels(np.array(counts), np.array(in_minimum), skew, too_few)


@drawn(1000)
@given(seeds)
def test_pods_are_dealt_out_as_one_after_the_other(seed):
    chance = random.Random(seed)
    rows = chance.randint(1, 30)
    domains = [cells_of(chance, rows, missing=False) for _ in range(chance.randint(0, 3))]
    if domains and chance.random() < 0.3:
        domains.append(domains[0])
    constraints = [(one, levels(chance, one)) for one in domains]
    alone = [cells_of(chance, rows, missing=True) for _ in range(chance.choice([0, 0, 1, 2]))]
    slots = np.array([chance.choice([0, 1, 1, 2, 5]) for _ in range(rows)])
    order = np.array(chance.sample(range(rows), rows))
    order = order[slots[order] > 0]
    asked = chance.randint(0, 50), slots, order, constraints, alone
    assert np.array_equal(place_one_by_one(*asked), plain_packing.place_one_by_one(*asked))


def world(chance):
    """Nodes of several topologies, pods of the class on some of them, and the class."""
    cluster, count = Cluster(("quorate",)), chance.randint(1, 30)
    for number in range(count):
        row = chance.randrange(4)
        values = (
            f"h{number}",
            f"p{number // 2}",
            f"r{chance.randrange(6)}",
            f"w{row}",
            f"z{row % 2}",
        )
        labels = [one for one in zip(KEYS, values, strict=True) if chance.random() < 0.95]
        cpu = chance.choice([0, 1, 2, 4])
        cluster.apply(NodeChanged(Node(f"n{number}", (("cpu", cpu), ("pods", 9)), tuple(labels))))
    web = (("app", "web"),)
    for number in range(chance.choice([0, 0, 3, 9])):
        on = f"n{chance.randrange(count)}"
        spec = PodSpec((("cpu", chance.randint(0, 1)),))
        cluster.apply(
            PodChanged(Pod(f"u{number}", TEAM, f"r{number}", "x", spec, node=on, labels=web))
        )
    spec = {}
    if chance.random() < 0.4:
        spec |= apart(OWN, by=chance.choice(KEYS))
    if chance.random() < 0.7:
        more = {"skew": chance.choice([1, 1, 2, 9]), "min_domains": chance.choice([1, 1, 1, 4])}
        keys = chance.sample(KEYS, chance.choice([1, 1, 2]))
        spec["spread"] = tuple(spread(OWN, by=key, **more)["spread"][0] for key in keys)
    near_keys = chance.sample(KEYS, chance.choice([1, 1, 2]))
    spec["affinity"] = tuple(near(OWN, by=key)["affinity"][0] for key in near_keys)
    waiting = Pod("u", TEAM, "p", "quorate", PodSpec((("cpu", 1),), **spec), labels=web)
    cluster.apply(PodChanged(waiting))
    entry = cluster.pods["u"]
    matched = cluster.neighbours.matched(entry.label_set)
    room = Room(cluster.snapshot(), RuleCache())
    return room, cluster.classes.variant(entry.pod_class, matched)


@drawn(1000)
@given(seeds, st.integers(1, 20), packings)
def test_each_domain_gets_what_it_gets_by_itself(seed, count, packing):
    room, pod_class = world(random.Random(seed))
    asked = pod_class, count, fixed_slots(pod_class, room, [pod_class]), room, packing
    assert np.array_equal(packing_of._spread_out(*asked), plain_packing.spread_out(*asked))


@drawn(1000)
@given(seeds, st.integers(1, 20), packings)
def test_those_that_belong_together_go_where_the_most_are_placed(seed, count, packing):
    room, pod_class = world(random.Random(seed))
    asked = pod_class, count, fixed_slots(pod_class, room, [pod_class]), room, packing
    assert np.array_equal(packing_of._together(*asked), plain_packing.together(*asked))


@drawn(500)
@given(seeds, packings)
def test_cells_are_filled_all_at_once_as_each_by_itself(seed, packing):
    chance = random.Random(seed)
    room, pod_class = world(chance)
    slots = own_slots(pod_class, room)
    cells = cells_of(chance, len(slots), missing=True)
    quotas = np.array([chance.randint(0, n) for n in cells.sums(slots).tolist()], np.int64)
    asked = pod_class, quotas, cells.codes, slots, room, packing
    assert np.array_equal(fill_cells(*asked), plain_packing.fill_cells(*asked))


@drawn(300)
@given(seeds, st.integers(1, 20), packings)
def test_where_one_topology_counts_one_try_is_enough(seed, count, packing):
    room, pod_class = world(random.Random(seed))
    slots = fixed_slots(pod_class, room, [pod_class])
    with patch.object(packing_of, "_spread_out", wraps=packing_of._spread_out) as tries:
        packing_of._together(pod_class, count, slots, room, packing)
    if packing_of.is_exact(pod_class, room):
        assert tries.call_count <= 1
