"""Gangs come in an order that depends on nothing but what they are, and as from a sorted list."""

import random

from hypothesis import given
from hypothesis import strategies as st

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.queue.ready import order_key
from tests.property.seeds import chances, drawn, seeds
from tests.unit.core.world import LABELS, World, key

NAMES = [f"g{index}" for index in range(8)]
sizes = st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(0, 3))
"""Min, priority, creation."""


def plan_of(gangs, cpu, order):
    w = World()
    w.node("n0", cpu=cpu)
    for index in order:
        min_count, priority, created_s = gangs[index]
        w.gang(
            NAMES[index], min_count, dialect=LABELS, priority=priority, created_s=float(created_s)
        )
    return w.decide()


@drawn(150)
@given(st.lists(sizes, min_size=1, max_size=8), st.integers(0, 14), seeds)
def test_gangs_are_tried_by_priority_age_and_name_whatever_their_arrival(gangs, cpu, seed):
    arrival = list(range(len(gangs)))
    random.Random(seed).shuffle(arrival)
    plan = plan_of(gangs, cpu, arrival)
    left, expected = cpu, []
    for index in sorted(arrival, key=lambda i: (-gangs[i][1], gangs[i][2], NAMES[i])):
        if gangs[index][0] <= left:
            left -= gangs[index][0]
            expected.append(NAMES[index])
    assert [gang.key.name for gang in plan.gangs] == expected


keys = st.builds(
    key,
    st.sampled_from(["a", "b@1", "b@2"]),
    st.sampled_from(["x-k8s", "coscheduler", "pod"]),
    st.sampled_from(["team", "other"]),
)


@drawn(100)
@given(st.lists(keys, unique=True, max_size=12))
def test_no_two_gangs_have_the_same_place(found):
    assert len({order_key(GangEntry(k)) for k in found}) == len(found)


SIZES = [1, 1, 2, 3, 5]
"""Cpus of a pod: gangs of several sizes and specs wait for the same room."""


class OneNode:
    """One node on which cpu alone decides: what a plain sorted list of gangs would place is known.

    ``waiting`` holds ``(order, name, count, cpu)``.
    """

    def __init__(self, chance):
        self.w, self.chance = World(), chance
        self.cpu, self.made, self.waiting = 60, 0, []
        self.w.node("n0", cpu=self.cpu, pods=1000)
        self.held = {}
        self.hold(self.cpu)

    def hold(self, cpu):
        """Another scheduler's pods take this much."""
        for _ in range(cpu):
            self.made += 1
            self.held[f"filler-{self.made}"] = None
            self.w.running(f"filler-{self.made}", "n0", cpu=1, scheduler="other")

    def add(self):
        chance = self.chance
        for _ in range(chance.choice([1, 1, 5, 30])):
            self.made += 1
            name, priority = f"g{self.made:04}", chance.choice([0, 0, 0, 7])
            count, cpu = chance.choice([1, 1, 2, 3]), chance.choice(SIZES)
            created_s = float(chance.randint(1, 5))
            self.w.gang(
                name, count, dialect=LABELS, priority=priority, cpu=cpu, created_s=created_s
            )
            self.waiting.append(((-priority, created_s, name), name, count, cpu))

    def free(self):
        for name in list(self.held)[: self.chance.choice([1, 1, 2, 4, 9])]:
            del self.held[name]
            self.w.delete(name)

    def end(self):
        """A gang of ours that runs goes, and with it all its pods."""
        running = [name for name in self.w.pods if name.startswith("g") and self.w.where(name)]
        if running:
            gang = self.chance.choice(running).partition("-")[0]
            self.w.delete(*[name for name in list(self.w.pods) if name.startswith(f"{gang}-")])

    def expected(self):
        """Go through the sorted list once, and place whatever fits."""
        placed = []
        free = self.cpu - self.w.used("n0") // 1000
        for one in sorted(self.waiting):
            if one[2] * one[3] <= free:
                free -= one[2] * one[3]
                placed.append(one)
        self.waiting = [one for one in self.waiting if one not in placed]
        return [name for _, name, _, _ in placed]


def test_gangs_of_many_kinds_are_placed_as_from_a_sorted_list():
    for chance in chances(40):
        world = OneNode(chance)
        for _ in range(30):
            for move in chance.choices([world.add, world.free, world.end], k=2):
                move()
            expected = world.expected()
            plan = world.w.decide()
            assert [gang.key.name for gang in plan.gangs] == expected
            world.w.settle(plan)
