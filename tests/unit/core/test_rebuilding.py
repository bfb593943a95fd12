"""A state that is built again knows what the old one knew, and counts as it did."""

from quorate.core.invariants import check_all
from quorate.core.model import Membership
from tests.unit.core.world import World


def test_a_member_that_was_adopted_is_counted_alive_by_nobody():
    w = World()
    w.node("n0", cpu=8)
    w.gang("a", 1)
    w.cycle()
    b = w.object("b", 2)
    w.edit("a-0", node="n0", phase="Running", membership=Membership(b, None))
    w.scheduler._rebuild()
    assert check_all(w.scheduler, w.now_s) == []
    assert w.cluster.pods["uid-a-0"].adopted
    w.delete("a-0")
    assert w.cluster.gangs[b].alive == 0


def test_a_gang_whose_adopted_member_went_after_a_rebuild_starts_its_next_life_whole():
    w = World()
    w.node("n0", cpu=8)
    w.gang("a", 1)
    w.cycle()
    b = w.object("b", 2)
    w.edit("a-0", node="n0", phase="Running", membership=Membership(b, None))
    w.scheduler._rebuild()
    w.delete("a-0")
    w.pod("b-0", b)
    w.pod("b-1", b)
    assert sorted(w.cycle()) == ["b-0", "b-1"]
    for name in ("b-0", "b-1"):
        w.edit(name, phase="Failed")
    w.pod("b-2", b)
    assert w.cycle() == {}, "a new life needs its quorum"
