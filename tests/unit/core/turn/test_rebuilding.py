"""A state that is built again knows what the old one knew, and counts as it did."""

from msgspec.structs import replace

from quorate.core.check.invariants import check_all
from quorate.core.model import Membership
from quorate.core.model.changes import ClaimWritten, ObjectChanged
from tests.unit.core.devices import test_special_claims as special
from tests.unit.core.devices.test_device_gangs import gang, given, gpu_world
from tests.unit.core.world import World, binds_of


def rebuilt_with_a_member_that_came_bound():
    """Return a world, built again, where a pod that ran in another gang is in gang b of 2."""
    w = World()
    w.node("n0", cpu=8)
    w.gang("a", 1)
    w.cycle()
    b = w.object("b", 2)
    w.edit("a-0", node="n0", phase="Running", membership=Membership(b, None))
    w.scheduler._rebuild()
    return w, b


def test_a_member_that_was_adopted_is_counted_alive_by_nobody():
    w, b = rebuilt_with_a_member_that_came_bound()
    assert check_all(w.scheduler, w.now_s) == []
    assert w.cluster.pods["uid-a-0"].adopted
    w.delete("a-0")
    assert w.cluster.gangs[b].alive == 0


def test_a_gang_whose_adopted_member_went_after_a_rebuild_starts_its_next_life_whole():
    w, b = rebuilt_with_a_member_that_came_bound()
    w.delete("a-0")
    w.pod("b-0", b)
    w.pod("b-1", b)
    assert sorted(w.cycle()) == ["b-0", "b-1"]
    for name in ("b-0", "b-1"):
        w.edit(name, phase="Failed")
    w.pod("b-2", b)
    assert w.cycle() == {}, "a new life needs its quorum"


def test_a_pod_whose_bind_the_watch_has_not_told_of_keeps_its_node_also_in_another_gang():
    w = World()
    w.node("n0", cpu=8)
    w.gang("a", 1)
    w.settle(w.decide())
    b = w.object("b", 2)
    w.edit("a-0", node="", membership=Membership(b, None))  # news from before the bind
    w.pod("b-0", b)
    w.decide()
    assert w.where("a-0") == "n0"
    w.scheduler._rebuild()
    assert w.where("a-0") == "n0"
    w.pod("b-1", b)
    assert sorted(w.cycle()) == ["b-0", "b-1"]


def test_devices_that_were_written_into_a_claim_are_not_given_again_before_the_watch_tells():
    w = gpu_world(1)
    gang(w, "first", 1)
    plan = w.decide()
    [give] = binds_of(plan)[0].gives
    before = w.cluster.devices.claims["team", "first-0-gpu"]
    now = replace(before, version="20", allocation=give.allocation, reserved_for=("uid-first-0",))
    w.observe(ClaimWritten(now))
    w.settle(plan)
    w.scheduler._rebuild()
    w.observe(ObjectChanged(replace(before, version="3")))  # the watch is late
    gang(w, "second", 1)
    assert given(w.decide(100)) == []


def test_the_devices_of_a_claim_that_we_made_are_not_given_again_before_the_watch_tells():
    w = special.gpu_world(1)
    w.gang("first", 1, **special.asks(1))
    plan = w.decide()
    [give] = binds_of(plan)[0].gives
    made = special.made(w, "first-0", devices=give.allocation)
    w.observe(ClaimWritten(made))
    w.settle(plan)
    w.scheduler._rebuild()
    assert w.cluster.devices.special == {"uid-first-0": (made.namespace, made.name)}
    w.gang("second", 1, **special.asks(1))
    assert special.gives(w.decide(100)) == {}


def test_a_claim_of_which_the_watch_told_more_is_as_the_watch_says():
    w = gpu_world(1)
    gang(w, "first", 1)
    before = w.cluster.devices.claims["team", "first-0-gpu"]
    w.observe(ClaimWritten(replace(before, version="20")))
    w.observe(ObjectChanged(replace(before, version="21", reserved_for=("other",))))
    w.scheduler._rebuild()
    assert w.cluster.devices.claims["team", "first-0-gpu"].version == "21"
