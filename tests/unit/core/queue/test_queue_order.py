"""Which gang comes first when there is room for one of them."""

import pytest

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model.changes import BindFailure
from quorate.core.model.reasons import Reason
from quorate.core.queue.ready import order_key
from tests.unit.core.world import LABELS, X_K8S, World, fail, key, world


@pytest.mark.parametrize(
    ("older", "newer", "first"),
    [
        ({"created_s": 1.0}, {"created_s": 2.0}, "older"),
        ({"created_s": 1.0}, {"created_s": 2.0, "priority": 5}, "newer"),
        ({"created_s": 1.0, "priority": -1}, {"created_s": 2.0, "priority": 0}, "newer"),
        ({"created_s": 1.0, "priority": 5}, {"created_s": 2.0, "priority": 5}, "older"),
    ],
)
def test_priority_comes_before_age(older, newer, first):
    w = world(cpu=2)
    w.gang("newer", 2, dialect=LABELS, **newer)
    w.gang("older", 2, dialect=LABELS, **older)
    assert set(w.cycle()) == {f"{first}-0", f"{first}-1"}


def test_the_age_of_a_gang_with_an_object_is_the_objects():
    w = world(cpu=2)
    w.gang("a-late", 2, gang_spec={"created_s": 20.0}, created_s=1.0)
    w.gang("b-early", 2, gang_spec={"created_s": 10.0}, created_s=5.0)
    assert set(w.cycle()) == {"b-early-0", "b-early-1"}


def test_a_half_started_gang_comes_before_any_priority():
    w = world(cpu=2)
    w.gang("half", 2)
    w.cycle(half_1=fail(BindFailure.REFUSED))
    w.gang("vip", 1, priority=1000)
    assert set(w.cycle()) == {"half-1"}


def test_a_started_gang_that_grows_comes_in_its_own_order():
    w = world(cpu=3)
    gang = w.gang("job", 2, created_s=1.0)
    w.cycle()
    w.pod("job-more", gang, created_s=9.0)
    w.gang("vip", 1, priority=1000)
    assert set(w.cycle()) == {"vip-0"}


def test_what_gangs_in_line_are_told_sorts_them_as_the_line_does():
    """Who waits for members, or has its nodes, is not in line."""
    w = world(cpu=4)
    w.gang("half", 2)
    w.gang("runs", 2, created_s=1.0)
    w.cycle(half_1=fail(BindFailure.REFUSED))
    w.gang("vip", 4, priority=1000, created_s=3.0)
    w.gang("newer", 4, created_s=2.0)
    w.gang("older", 4, created_s=1.0)
    w.gang("few", 4, 3)
    w.running("filler", "n0")
    w.decide()
    told = {name: w.why(key(name)).order for name in ("newer", "vip", "older", "half")}
    assert sorted(told, key=told.get) == ["half", "vip", "older", "newer"]
    assert (w.why(key("few")).order, w.why(key("runs")).order) == ((), ())


def test_a_gang_that_backs_off_keeps_its_place():
    w = world(cpu=2)
    gang = w.gang("vip", 2, priority=1000, created_s=3.0)
    for _ in range(2):  # after the first one it is tried again at once
        w.cycle(fail(BindFailure.REFUSED))
    w.decide()
    told = w.why(gang)
    assert (told.reason, told.order) == (Reason.BACKING_OFF, (1.0, -1000.0, 3.0))


def test_an_equal_gang_that_does_not_fit_is_passed_by():
    w = world(cpu=3)
    w.gang("a-large", 4, created_s=1.0)
    w.gang("b-fits", 3, created_s=1.0)
    assert set(w.cycle()) == {"b-fits-0", "b-fits-1", "b-fits-2"}


def test_two_gangs_that_both_want_all_room_do_not_share_it():
    w = world(cpu=4)
    w.gang("a", 4)
    w.gang("b", 4)
    assert {name[0] for name in w.cycle()} == {"a"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (key("job", X_K8S), key("job", LABELS)),
        (key("p@uid-1", "pod"), key("p@uid-2", "pod")),
    ],
)
def test_the_order_is_total_so_that_it_never_depends_on_hashes(one, other):
    assert order_key(GangEntry(one)) != order_key(GangEntry(other))


def test_at_most_so_many_binds_are_planned_and_the_rest_follow_at_once():
    w = World(binds_per_plan_max=3)
    w.node("n0", cpu=8)
    for name in "abc":
        w.gang(name, 2)
    plan = w.decide()
    assert len(plan.gangs) == 2
    assert plan.wake_at_s == w.now_s
    w.settle(plan)
    assert set(w.cycle()) == {"c-0", "c-1"}


def test_at_most_so_many_pods_of_no_gang_are_planned_at_once_and_a_gang_is_not_split():
    w = World(singles_per_plan_max=2)
    w.node("n0", cpu=8)
    for name in ("a", "b", "c"):
        w.pod(name)
    w.gang("z", 3, created_s=1.0)
    plan = w.decide()
    assert {bind.name for gang in plan.gangs for bind in gang.binds} == {"a", "b"}
    assert {which.name.partition("@")[0] for which in plan.touched} == {"a", "b"}, "no others yet"
    w.settle(plan)
    plan = w.decide()
    assert {bind.name for gang in plan.gangs for bind in gang.binds} == {"c", "z-0", "z-1", "z-2"}
