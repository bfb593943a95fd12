"""The queue: an order that depends on nothing else, and gangs that are in one place each."""

import random

from hypothesis import given
from hypothesis import strategies as st

from quorate.core.cluster.alarms import Alarms
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.queue.queue import Queue, Rounds
from quorate.core.queue.ready import Ready, order_key
from quorate.core.turn.woken_by import class_of_its_own
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


@drawn(200)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("ready"), st.sampled_from(NAMES), st.integers(0, 2)),
            st.tuples(st.just("gone"), st.sampled_from(NAMES)),
            st.tuples(st.just("take"), st.integers(0, 4)),
        ),
        max_size=40,
    )
)
def test_ready_gangs_come_as_from_a_sorted_list_whatever_happens_to_them(script):
    ready, gangs, plain = Ready(), {}, set()
    for move, *arguments in script:
        if move == "ready":
            name, age_s = arguments
            gang = gangs.setdefault(key(name), GangEntry(key(name)))
            gang.first_created_s = float(age_s)
            ready.add(gang.key)
            plain.add(gang.key)
        elif move == "gone":
            gangs.pop(key(arguments[0]), None)
            plain.discard(key(arguments[0]))
        else:
            in_order = sorted(plain, key=lambda one: order_key(gangs[one]))
            for expected in in_order[: arguments[0]]:
                assert ready.first(gangs) == order_key(gangs[expected])
                assert ready.pop() == expected
                plain.discard(expected)
        assert plain <= set(ready)


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


@drawn(100)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ready", "block", "off", "take", "time"]), st.sampled_from(NAMES)
        ),
        max_size=30,
    )
)
def test_a_gang_is_in_at_most_one_place(script):
    """As ``decide`` uses it: a gang is blocked or backs off after it was taken."""
    queue = Queue()
    gangs = {key(name): GangEntry(key(name)) for name in NAMES}
    taken = set()
    for now_s, (move, name) in enumerate(script):
        which = key(name)
        if move == "ready":
            queue.make_ready([which])
            taken.discard(which)
        elif move == "take":
            while queue.ready.first(gangs) is not None:
                taken.add(queue.ready.pop())
        elif move == "time":
            queue.time_passed(float(now_s))
            taken -= set(queue.ready)
        elif which in taken and move == "block":
            queue.block(gangs[which], class_of_its_own(gangs[which]))
            taken.discard(which)
        elif which in taken and move == "off":
            queue.back_off(which, now_s + 3.0)
            taken.discard(which)
        places = [set(queue.ready), set(queue.blocked), set(queue.backing_off), taken]
        assert sum(map(len, places)) == len(set().union(*places))


def test_gangs_are_woken_when_their_time_has_come_and_once():
    for chance in chances(60):
        alarms, plain = Alarms(), {}
        for now_s in range(60):
            which = key(chance.choice(NAMES))
            if chance.random() < 0.6:
                plain[which] = float(now_s + chance.randint(0, 9))
                alarms.set(which, plain[which])
            elif chance.random() < 0.5:
                plain.pop(which, None)
                alarms.discard(which)
            assert alarms.next_s() == min(plain.values(), default=None)
            due = {one for one, due_s in plain.items() if due_s <= now_s}
            assert set(alarms.take_due(float(now_s))) == due
            plain = {one: due_s for one, due_s in plain.items() if one not in due}
            assert set(alarms) == set(plain)


def test_a_round_names_each_gang_that_was_there_when_it_began():
    for chance in chances(60):
        rounds, there, owed = Rounds(), set(), set()
        for _ in range(80):
            which, move = key(chance.choice(NAMES)), chance.random()
            if move < 0.3:
                rounds.add(which)
                there.add(which)
                owed.discard(which)  # its words are up to date
            elif move < 0.5:
                rounds.discard(which)
                there.discard(which)
                owed.discard(which)
            elif move < 0.6:
                rounds.begin()
                owed = set(there)
            else:
                named = rounds.take(chance.choice([1, 2, 3]))
                assert set(named) <= there
                owed -= set(named)
            assert rounds.is_under_way or not owed
