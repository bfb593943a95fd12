"""What is taken of a queue is what members with a node request, there and below it."""

import msgspec
import pytest

from quorate.core.cluster.gangs.pods import Where
from quorate.core.model import Membership, Queue
from quorate.core.model.changes import ObjectChanged
from quorate.core.telling.queue_amounts import QueueAmounts
from tests.unit.core.world import GPU, VOLCANO, amounts, key, world

ABOVE, BELOW = Queue("above"), Queue("below", parent="above")


class Counted:
    """A world of which the touched gangs are counted, as the shell has it."""

    def __init__(self):
        self.world, self.amounts = world(4), QueueAmounts()
        for queue in (Queue("root"), ABOVE, BELOW):
            self.world.observe(ObjectChanged(queue))

    def gang(self, name, queue, pods, **more):
        return self.world.gang(name, pods, gang_spec={"queue": queue}, dialect=VOLCANO, **more)

    def taken(self):
        plan = self.world.decide()
        self.world.settle(plan)
        for touched in (plan.touched, self.world.decide().touched):
            self.amounts.touch(touched)
        assert not self.amounts.count(self.world.cluster.gangs, 1000)
        return self.amounts.by_queue(self.world.cluster.queues)


def of(pods, cpu):
    return amounts(cpu=cpu, pods=pods)


def test_what_is_below_a_queue_is_taken_of_it():
    c = Counted()
    c.gang("one", "above", 1)
    c.gang("two", "below", 2)
    c.gang("none", "nowhere", 1)
    assert c.taken() == {"root": of(3, 3), "above": of(3, 3), "below": of(2, 2)}


@pytest.mark.parametrize(
    "leave",
    [
        lambda w: w.edit("two-1", phase="Succeeded"),
        lambda w: w.edit("two-1", terminating=True),
        lambda w: w.delete("two-1"),
        lambda w: w.edit("two-1", membership=None),
    ],
)
def test_who_leaves_takes_nothing(leave):
    c = Counted()
    c.gang("two", "below", 2)
    c.taken()
    leave(c.world)
    assert c.taken() == dict.fromkeys(("root", "above", "below"), of(1, 1))


def test_who_waits_takes_nothing():
    c = Counted()
    c.gang("wide", "below", 2, cpu=9)
    assert set(c.taken().values()) == {()}


def test_members_of_other_schedulers_take_nothing():
    c = Counted()
    which = c.gang("two", "below", 1)
    c.world.running("foreign", "n0", gang=which)
    assert c.taken()["below"] == of(1, 1)


def test_who_was_bound_before_it_joined_takes_what_it_has_also_after_the_others():
    c = Counted()
    which = c.gang("two", "below", 1)
    c.world.pod("late")
    c.taken()
    c.world.edit("late", membership=Membership(which))
    assert c.taken()["below"] == of(2, 2)
    c.world.edit("two-0", phase="Succeeded")
    assert c.taken()["below"] == of(1, 1)
    c.world.pod("next", which)
    assert c.taken()["below"] == of(2, 2)
    assert c.world.cluster.pods["uid-late"].where is Where.PAST


def test_a_gang_takes_of_the_queue_that_its_object_names_now():
    c = Counted()
    which = c.gang("two", "below", 2)
    c.taken()
    c.world.object("two", 2, dialect=VOLCANO, queue="above")
    assert c.taken() == {"root": of(2, 2), "above": of(2, 2), "below": ()}
    c.world.drop_object(which)
    assert set(c.taken().values()) == {()}


def test_a_queue_may_be_put_elsewhere():
    c = Counted()
    c.gang("two", "below", 2)
    c.taken()
    c.world.observe(ObjectChanged(msgspec.structs.replace(BELOW, parent="")))
    assert c.taken() == {"root": of(2, 2), "above": (), "below": of(2, 2)}


def test_queues_in_a_circle_take_each_once():
    c = Counted()
    c.world.observe(ObjectChanged(msgspec.structs.replace(ABOVE, parent="below")))
    c.gang("two", "below", 2)
    assert c.taken() == {"root": (), "above": of(2, 2), "below": of(2, 2)}


def test_so_many_members_are_looked_at_in_one_go():
    c = Counted()
    keys = [c.gang(name, "below", 2) for name in ("one", "two", "three")]
    c.world.cycle()
    c.amounts.touch(keys)
    assert c.amounts.count(c.world.cluster.gangs, 4)
    assert not c.amounts.count(c.world.cluster.gangs, 4)
    assert c.amounts.by_queue(c.world.cluster.queues)["below"] == of(6, 6)


def test_what_is_told_of_a_queue_touches_none_of_its_gangs():
    """We write it ourselves: each write would have all gangs of the queue tried anew."""
    c = Counted()
    c.gang("wide", "below", 2, cpu=9)
    c.taken()
    c.world.observe(ObjectChanged(msgspec.structs.replace(BELOW, allocated=amounts(**{GPU: 1}))))
    assert key("wide", VOLCANO) not in c.world.decide().touched
    assert c.world.cluster.queues["below"].allocated
