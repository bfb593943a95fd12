"""Which gang comes first when there is room for one of them."""

from quorate.core.model.changes import BindFailure
from quorate.core.model.reasons import Reason
from tests.unit.core.world import fail, key, world


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
