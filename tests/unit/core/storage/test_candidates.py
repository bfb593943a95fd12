"""Volumes for a claim are looked up by node; steps are taken for what that costs."""

import random

import numpy as np
import pytest

from quorate.core.model import Requirement, SelectorTerm
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


@pytest.mark.parametrize("world", range(60))
def test_each_node_gets_the_smallest_free_volume_that_reaches_it(world):
    chance = random.Random(f"{SEED} {world}")
    groups, order = some_groups(chance)
    candidates, starts, taken = VolumeCandidates(groups, order), {}, set()
    for _ in range(4):
        counts = candidates.free_at(N, frozenset(taken))
        for row in range(N):
            reaching = (numbers for numbers, rows in groups if row in rows.tolist())
            free = [one for numbers in reaching for one in numbers if one not in taken]
            assert counts[row] == len(free)
            assert candidates.pick_at(row, taken, starts) == min(free, key=order.get, default=-1)
        taken.update(chance.sample(sorted(order), min(len(order), 2)))


def test_a_node_costs_what_reaches_it_not_what_there_is():
    taken = {}
    for volumes in (10, 4000):
        groups = [([number], np.array([number, number + 1])) for number in range(volumes)]
        candidates = VolumeCandidates(groups, {number: number for number in range(volumes)})
        candidates.pick_at(0, set(), {})
        candidates.take_steps()
        assert [candidates.pick_at(row % 10, set(), {}) for row in range(400)]
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
