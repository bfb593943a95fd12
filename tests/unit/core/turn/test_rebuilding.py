"""A state that is built again knows what the old one knew, and counts as it did."""

from msgspec.structs import replace

from quorate.core.model import Membership
from quorate.core.model.changes import BindFailed, BindFailure, ClaimWritten, ObjectChanged
from quorate.core.turn.applying import Applier
from tests.invariants import check_all
from tests.unit.core.device_world import gang, given, gpu_world, written
from tests.unit.core.storage_world import StorageWorld, planned
from tests.unit.core.turn.defects import fails_once
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


def test_a_claim_of_which_the_watch_told_more_is_as_the_watch_says():
    w = gpu_world(1)
    gang(w, "first", 1)
    before = w.cluster.devices.claims["team", "first-0-gpu"]
    w.observe(ClaimWritten(replace(before, version="20")))
    w.observe(ObjectChanged(replace(before, version="21", reserved_for=("other",))))
    w.scheduler._rebuild()
    assert w.cluster.devices.claims["team", "first-0-gpu"].version == "21"


def with_a_claim_that_is_being_taken_back():
    """Return a world with a gang of which one member is gone; the other's claim has a device."""
    w = gpu_world(2)
    gang(w, "g", 2)
    plan = w.decide()
    written(w, plan)
    w.observe(*(BindFailed(b.uid, b.node, BindFailure.REFUSED, "no") for b in binds_of(plan)))
    gone = w.pods["g-1"]
    w.delete("g-1")
    return w, gone


def gives_of(plan):
    return {bind.name: [one.claim for one in bind.gives] for bind in binds_of(plan)}


def test_a_claim_that_is_being_taken_back_is_written_again_also_after_a_rebuild():
    """Else its pod is bound without the device, which others may have by then."""
    w, gone = with_a_claim_that_is_being_taken_back()
    assert [one.claim for one in w.decide(after_s=5.0).take_backs] == ["g-0-gpu"]
    w.scheduler._rebuild()
    w.tell(gone)
    assert gives_of(w.decide(after_s=100.0))["g-0"] == ["g-0-gpu"]


def test_a_claim_that_changed_since_it_was_taken_back_is_not_written_again_after_a_rebuild():
    w, gone = with_a_claim_that_is_being_taken_back()
    w.decide(after_s=5.0)
    claim = w.cluster.devices.claims["team", "g-0-gpu"]
    w.observe(ObjectChanged(replace(claim, version="9")))
    w.scheduler._rebuild()
    w.tell(gone)
    assert gives_of(w.decide(after_s=100.0))["g-0"] == []


def test_devices_of_a_gang_that_met_a_defect_are_not_taken_back_unnoticed(monkeypatch):
    w, _ = with_a_claim_that_is_being_taken_back()
    fails_once(monkeypatch, Applier, "apply")
    assert w.decide(after_s=5.0).take_backs == ()
    assert len(w.scheduler.incidents()) == 1
    assert [one.claim for one in w.decide(after_s=5.0).take_backs] == ["g-0-gpu"]


def test_the_node_of_a_claim_whose_pod_was_let_go_is_forgotten_also_after_a_rebuild():
    """The defect came between the two: its pod could go to that node alone, and waited for ever."""
    w = StorageWorld()
    w.labelled_node("n0", cpu=1)
    w.claiming("db", 1)
    plan = w.decide()
    assert planned(plan) == {"db-0": "n0"}
    w.observe(BindFailed("uid-db-0", "n0", BindFailure.UNPREPARED, "too late"))
    w.scheduler._rebuild()
    w.running("rival", "n0")
    w.labelled_node("n1")
    w.undone(w.decide(after_s=1.0))
    assert planned(w.decide(after_s=100.0)) == {"db-0": "n1"}
