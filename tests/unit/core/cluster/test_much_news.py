"""News of very many gangs: a few thousand are taken in by each decision, and then it plans."""

import pytest

from quorate.core.lifecycle.attempts import Attempts
from quorate.core.model import Owner, policy
from quorate.core.model.changes import GangGone
from tests.invariants import check_all
from tests.unit.core.world import World, binds_of, key, names

MOST = 8


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(policy, "TOUCHED_PER_TURN_MAX", MOST)


@pytest.mark.parametrize(("gangs", "turns"), [(MOST - 1, 1), (MOST, 1), (MOST + 1, 2), (25, 4)])
def test_nothing_is_planned_before_all_news_is_taken_in(few, monkeypatch, gangs, turns):
    w = World()
    w.node("n0", cpu=1)
    for number in range(gangs - 1):
        w.gang(f"b{number}", 2, 1)
    w.gang("a", 1)
    taken, resume = [], Attempts.resume

    def noted(attempts, gang, *more):
        taken.append(gang.key.name)
        return resume(attempts, gang, *more)

    monkeypatch.setattr(Attempts, "resume", noted)
    for _ in range(turns - 1):
        before = len(taken)
        plan = w.decide()
        assert not plan.gangs
        assert plan.wake_at_s == w.now_s
        assert len(taken) - before == MOST
        assert w.scheduler.advance.is_behind
    assert names(binds_of(w.decide())) == ["a-0"]
    assert not w.scheduler.advance.is_behind
    assert len(taken) == gangs


@pytest.mark.parametrize("goes_too", [False, True])
def test_what_is_held_for_a_gang_whose_end_is_not_taken_in_yet_is_no_defect(few, goes_too):
    w = World()
    w.node("n0", cpu=2)
    w.gang("z", 1, owner=Owner("example.com/v1", "Thing", "z"))
    w.cycle()
    for number in range(MOST):
        w.gang(f"b{number}", 2, 1)
    w.delete("z-0")
    if goes_too:
        w.observe(GangGone(key("z")))
    w.decide()
    assert w.scheduler.advance.is_left(key("z"))
    assert check_all(w.scheduler, w.now_s) == []
    w.decide()
    assert check_all(w.scheduler, w.now_s) == []


def test_gangs_come_before_pods_of_no_gang(few):
    """The life-cycle of a gang may keep room from others; a pod of no gang keeps none."""
    w = World()
    for number in range(MOST):
        w.pod(f"single-{number}")
    gang = w.gang("z", 1)
    w.decide()
    assert w.scheduler.advance.is_behind
    assert gang in w.scheduler.queue.ready


def test_a_defect_while_news_is_taken_in_costs_its_gang_alone(few, monkeypatch):
    resume = Attempts.resume

    def fails(attempts, gang, *more):
        if gang.key.name == "b1":
            raise ZeroDivisionError
        return resume(attempts, gang, *more)

    w = World()
    w.node("n0", cpu=1)
    for number in range(2 * MOST):
        w.gang(f"b{number}", 2, 1)
    w.gang("z", 1)
    monkeypatch.setattr(Attempts, "resume", fails)
    started = [binds_of(w.decide()) for _ in range(8)]
    assert [names(binds) for binds in started if binds] == [["z-0"]]
