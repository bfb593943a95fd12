"""The queue: an order that depends on nothing else, and blocked gangs that are woken exactly."""

import random
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from quorate.core.queue.ordering import order_key
from quorate.core.queue.queue import Queue
from quorate.core.queue.requeue import Blocked
from quorate.core.state.gangs import GangEntry
from tests.unit.core.random_worlds import profile, seeds
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


@profile(150)
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
    st.sampled_from(["x-k8s", "labels", "pod"]),
    st.sampled_from(["team", "other"]),
)


@profile(200)
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
def test_gangs_that_a_decision_did_not_come_to_keep_their_place_until_something_happens(script):
    queue, gangs, ready = Queue(), {}, set()
    for move, *arguments in script:
        if move == "ready":
            name, age_s = arguments
            gang = gangs.setdefault(key(name), GangEntry(key(name)))
            gang.first_created_s = float(age_s)
            queue.make_ready([gang.key])
            ready.add(gang.key)
        elif move == "gone":
            gangs.pop(key(arguments[0]), None)
            ready.discard(key(arguments[0]))
        else:
            taken = [gang.key for gang in islice(queue.take_ready(gangs), arguments[0])]
            in_order = sorted(ready, key=lambda one: order_key(gangs[one]))
            assert taken == in_order[: arguments[0]]
            ready.difference_update(taken)
            assert ready <= queue.ready
            assert queue.ready.isdisjoint(taken)


@profile(100)
@given(st.lists(keys, unique=True, max_size=12))
def test_no_two_gangs_have_the_same_place(found):
    assert len({order_key(GangEntry(k)) for k in found}) == len(found)


class PlainBlocked:
    """What ``Blocked`` must do, slowly."""

    def __init__(self):
        self.classes = {}

    def add(self, which, class_ids):
        self.classes.pop(which, None)
        self.classes[which] = set(class_ids)

    def discard(self, which):
        self.classes.pop(which, None)

    def woken_by(self, helped):
        return {which for which, ids in self.classes.items() if ids & helped}


class_ids = st.sets(st.integers(0, 4), max_size=3)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(NAMES), class_ids),
        st.tuples(st.just("discard"), st.sampled_from(NAMES)),
        st.tuples(st.just("wake"), class_ids),
    ),
    max_size=40,
)


@profile(200)
@given(moves)
def test_blocked_gangs_are_woken_by_their_classes_and_by_no_other(script):
    blocked, plain = Blocked(), PlainBlocked()
    for move, *arguments in script:
        if move == "add":
            which, ids = key(arguments[0]), arguments[1]
            blocked.add(which, sorted(ids))
            plain.add(which, ids)
        elif move == "discard":
            blocked.discard(key(arguments[0]))
            plain.discard(key(arguments[0]))
        else:
            asked = []
            woken = blocked.woken_by(lambda c, _, h=arguments[0], a=asked: (a.append(c), c in h)[1])
            assert woken == plain.woken_by(arguments[0])
            assert len(asked) == len(set(asked)), "one question for each class"
        assert list(blocked) == list(plain.classes)
        assert len(blocked) == len(plain.classes)


@profile(100)
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
            taken |= {gang.key for gang in queue.take_ready(gangs)}
        elif move == "time":
            queue.time_passed(float(now_s))
            taken -= queue.ready
        elif which in taken and move == "block":
            queue.block(which, [1])
            taken.discard(which)
        elif which in taken and move == "off":
            queue.back_off(which, now_s + 3.0)
            taken.discard(which)
        places = [queue.ready, set(queue.blocked), set(queue.backing_off), taken]
        assert sum(map(len, places)) == len(set().union(*places))
