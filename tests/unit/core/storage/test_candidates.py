"""Volumes for a claim are looked up by node; steps are taken for what that costs."""

import random

import numpy as np
import pytest

from quorate.core.model import Requirement, SelectorTerm, policy
from quorate.core.model.steps import Steps
from quorate.core.room.reach import Reach
from quorate.core.room.volume_candidates import VolumeCandidates
from tests.property.seeds import SEED
from tests.unit.core.storage_world import GI, HOSTNAME, ZONE, StorageWorld, on
from tests.unit.core.volume_world import class_of, room_of

N = 7


def some_groups(chance):
    """Return groups of volumes, and the order of all of them."""
    numbers = list(range(chance.randint(0, 12)))
    chance.shuffle(numbers)
    order = {number: rank for rank, number in enumerate(numbers)}
    groups = []
    while numbers:
        alike, numbers = numbers[: (some := chance.randint(1, 4))], numbers[some:]
        rows = sorted(chance.sample(range(N), chance.randint(1, N)))
        groups.append((alike, np.array(rows)))
    return groups, order


def plain_pick(groups, order, row, taken, before):
    """Return the smallest volume that reaches the row and is free, of all that there are."""
    free = [
        number
        for numbers, rows in groups
        for number in numbers
        if row in rows.tolist() and number not in taken and number not in before
    ]
    return min(free, key=order.get, default=-1)


@pytest.mark.parametrize("world", range(60))
def test_each_node_gets_the_smallest_free_volume_that_reaches_it(world, monkeypatch):
    chance = random.Random(f"{SEED} {world}")
    if chance.random() < 0.5:
        monkeypatch.setattr(policy, "VOLUME_PAIRS_FLAT_MAX", chance.choice([0, 5, 20]))
    groups, order = some_groups(chance)
    candidates, starts, taken = VolumeCandidates(groups, order), {}, set()
    for _ in range(4):
        before = np.full(N, -1)
        for row in range(N):
            before[row] = chance.choice([-1, -1, *order])
        picked = candidates.pick(N, frozenset(taken), [before])
        for row in range(N):
            mine = {int(before[row])}
            expected = plain_pick(groups, order, row, taken, mine)
            assert picked[row] == expected
            assert candidates.pick_at(row, taken, mine, starts) == expected
        taken.update(chance.sample(sorted(order), min(len(order), 2)))


@pytest.mark.parametrize(("bound", "is_flat"), [(5, False), (6, True), (7, True)])
def test_so_many_pairs_of_volume_and_node_are_looked_at_at_once(bound, is_flat, monkeypatch):
    monkeypatch.setattr(policy, "VOLUME_PAIRS_FLAT_MAX", bound)
    groups = [([number], np.array([number, number + 1])) for number in range(3)]
    candidates = VolumeCandidates(groups, {0: 0, 1: 1, 2: 2})
    assert (candidates._flat is not None) == is_flat
    assert candidates.pick(4, (), []).tolist() == [0, 0, 1, 2]
    assert candidates.pick(4, {0}, []).tolist() == [-1, 1, 1, 2]
    assert candidates.free_at(4, {0}).tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize(("bound", "is_flat"), [(2, False), (3, True), (4, True)])
def test_groups_with_many_volumes_are_not_looked_at_at_once(bound, is_flat, monkeypatch):
    monkeypatch.setattr(policy, "VOLUMES_PER_NODE_FLAT_MAX", bound)
    candidates = VolumeCandidates([([2, 0, 1], np.array([0, 1]))], {2: 0, 0: 1, 1: 2})
    assert (candidates._flat is not None) == is_flat
    assert candidates.pick(3, (), []).tolist() == [2, 2, -1]
    assert candidates.pick(3, {2}, [np.array([0, -1, -1])]).tolist() == [1, 0, -1]
    assert candidates.free_at(3, {2}).tolist() == [2, 2, 0]


def test_a_node_costs_what_reaches_it_not_what_there_is():
    taken = {}
    for volumes in (10, 4000):
        groups = [([number], np.array([number, number + 1])) for number in range(volumes)]
        candidates = VolumeCandidates(groups, {number: number for number in range(volumes)})
        candidates.pick_at(0, set(), (), {})
        candidates.take_steps()
        assert [candidates.pick_at(row % 10, set(), (), {}) for row in range(400)]
        taken[volumes] = candidates.take_steps()
    assert 20 <= taken[10] == taken[4000] <= 40


@pytest.mark.parametrize("world", range(60))
def test_rows_are_looked_up_as_the_rule_finds_them(world):
    chance = random.Random(f"{SEED} {world}")
    w = StorageWorld()
    for index in range(N):
        w.labelled_node(f"n{index}", zone=chance.choice("ab"))
    w.lose_node(f"n{chance.randrange(N)}")
    snapshot = w.cluster.snapshot()
    names = [f"n{index}" for index in range(N + 2)]
    one = Requirement(HOSTNAME, "In", tuple(chance.choices(names, k=chance.randint(0, 5))))
    two = Requirement(ZONE, chance.choice(["In", "NotIn"]), tuple(chance.choices("abc", k=2)))
    for terms in (
        (SelectorTerm((one,)),),
        (SelectorTerm((two,)),),
        (SelectorTerm((one, two)),),
        (SelectorTerm((one,)), SelectorTerm((two,))),
    ):
        expected = np.flatnonzero(Reach(snapshot).affinity(terms) & snapshot.alive)
        assert Reach(snapshot).rows_of(terms).tolist() == expected.tolist()


def test_steps_are_taken_for_what_volumes_are_looked_up_by():
    """Of 60 volumes each on a node, on many nodes, or by two terms: the more, the more steps."""
    zone = Requirement(ZONE, "In", ("z",))
    by_two = (SelectorTerm((zone, Requirement(HOSTNAME, "Exists"))),) * 2
    taken = []
    for kind in ("one", "many", "terms"):
        w = StorageWorld()
        for index in range(2000):
            w.labelled_node(f"n{index}")
        for index in range(60):
            named = [f"n{index + more}" for more in range(100 if kind == "many" else 1)]
            extra = SelectorTerm((Requirement(HOSTNAME, "In", (f"n{index}",)),))
            affinity = (*by_two, extra) if kind == "terms" else on(HOSTNAME, *named)
            w.volume(f"v{index}", affinity=affinity, capacity=GI)
        pod_class = class_of(w, w.claiming("job", 1, storage_class="local"))
        room = room_of(w)
        room.volumes.steps = steps = Steps(10_000)
        room.volumes.constrains(pod_class)
        taken.append(steps.taken)
    assert taken[0] >= 60 // 10
    assert taken[1] >= taken[0] + 60 * 100 // 500
    assert taken[2] >= taken[0] + 60 * 2
