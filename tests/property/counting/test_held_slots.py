"""Held slots in any world: they are right, they end, and they are for the replacement."""

from collections import Counter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.cluster.gangs.gangs import Where
from quorate.core.model import Owner
from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler
from tests.property.seeds import drawn
from tests.unit.core.random_worlds import Play, scripts
from tests.unit.core.world import World, binds_of, key

OWNER = Owner("batch/v1", "Job", "j")


class Watched(Play):
    """Checks what is held after each decision, by plain sums of its own."""

    held = 0

    def put(self, pod):
        """Each pod has an owner who has not said yet how many it makes."""
        super().put(msgspec.structs.replace(pod, owner=OWNER))

    def do_decide(self, after_s=0.0):
        plan = super().do_decide(after_s)
        cluster = self.scheduler.cluster
        for reservation in cluster.reservations:
            Watched.held += 1
            gang = cluster.gangs[reservation.key]
            assert self.now_s < reservation.until_s <= self.now_s + self.policy.hold_s
            assert gang.started
            assert gang.waits or any(self.lives(entry) for entry in gang.members.values())
            tolerates = reservation.pod_class.spec.tolerations  # also a cordon
            assert tolerates or not self.nodes[reservation.node].unschedulable
        for name in {reservation.node for reservation in cluster.reservations}:
            self.check_room(name)
        while len(self.under_way) % 3:  # most binds succeed: many gangs start
            self.do_answer(0, "ok")
        return plan

    @staticmethod
    def lives(entry):
        is_placed = entry.where in (Where.BOUND, Where.ASSUMED)
        return is_placed and not (entry.pod.finished or entry.pod.terminating)

    def check_room(self, name):
        """What is held and what pods take is no more than the node has."""
        specs = [
            reservation.pod_class.spec
            for reservation in self.scheduler.cluster.reservations
            if reservation.node == name
        ]
        wanted = {r for spec in specs for r, amount in spec.requests if amount} | {"pods"}
        specs += [entry.pod.spec for entry in self.scheduler.cluster.pods_on(name)]
        used = {"pods": len(specs)}
        for spec in specs:
            for resource, amount in spec.requests:
                used[resource] = used.get(resource, 0) + amount
        has = dict(self.nodes[name].allocatable)
        assert {r: used[r] for r in wanted if used[r] > has.get(r, 0)} == {}


def test_what_is_held_is_free_and_for_gangs_that_go_on_and_not_for_longer_than_its_time():
    @drawn(120)
    @given(scripts())
    def run(script):
        Watched().run(script)

    Watched.held = 0
    run()
    assert Watched.held > 10, "these worlds have held slots"


class Bounded(Watched):
    """An operator who allows little."""

    above = 0

    def __init__(self):
        super().__init__()
        self.policy = Policy(hold_s_max=100.0, hold_s=90.0, held_slots_per_gang_max=1)
        self.policy = msgspec.structs.replace(self.policy, held_slots_per_namespace_max=2)
        self.scheduler, self.twin = Scheduler(self.policy), Scheduler(self.policy)

    def do_decide(self, after_s=0.0):
        plan = super().do_decide(after_s)
        reservations = self.scheduler.cluster.reservations
        by_gang = Counter(reservation.key for reservation in reservations)
        by_namespace = Counter(reservation.key.namespace for reservation in reservations)
        assert max(by_gang.values(), default=0) <= 1
        assert max(by_namespace.values(), default=0) <= 2
        Bounded.above += any(reservations.not_reserved(key) for key in self.scheduler.cluster.gangs)
        return plan


def test_no_more_is_held_than_the_operator_allows_in_any_world():
    @drawn(800)
    @given(scripts())
    def run(script):
        Bounded().run(script)

    Bounded.above = 0
    run()
    assert Bounded.above > 0, "in these worlds more is lost than may be held"


fresh_gangs = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(-1, 0))
"""Size, cpu, priority."""


@drawn(150)
@given(
    st.integers(1, 4),
    st.integers(2, 5),
    st.lists(fresh_gangs, max_size=5),
    st.integers(0, 4),
    st.booleans(),
    st.integers(1, 3),
)
def test_a_replacement_is_placed_at_once_where_the_lost_one_was(cpu, size, fresh, lost, slow, n):
    """Whatever waits that is of no higher priority, however old, and however often it is tried."""
    w = World()
    for index in range(size):
        w.node(f"n{index}", cpu=cpu)
    w.gang("a", size, cpu=cpu, created_s=100.0, owner=OWNER)
    assert len(w.cycle()) == size
    for index, (pods, each, priority) in enumerate(fresh):
        w.gang(f"fresh{index}", pods, cpu=min(each, cpu), priority=priority, created_s=1.0)
    w.cycle()
    name = f"a-{lost % size}"
    node = w.where(name)
    if slow:
        w.tell(msgspec.structs.replace(w.pods[name], node=node, terminating=True))
        w.cycle()
    w.delete(name)
    for _ in range(n):
        assert w.cycle(after_s=90.0) == {}
    w.pod("a-new", key("a"), cpu=cpu, created_s=500.0)
    plan = w.decide()
    assert [(bind.name, bind.node) for bind in binds_of(plan)] == [("a-new", node)]
