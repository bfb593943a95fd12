"""Binds of the leader before may arrive late: until they cannot, gangs that wait are open too.

Leaders that wrote no journal are named in the next one, up to a bound.
"""

import pytest

from quorate.core.model import policy
from quorate.core.model.changes import JournalFound
from quorate.core.model.journal import Journal, journal_of
from tests.unit.core.recovery_world import JOB, open_in, world
from tests.unit.core.world import key


def test_while_binds_of_the_leader_before_may_arrive_each_gang_that_waits_is_open():
    w = world(cpu=1)
    w.gang("job", 2)
    w.observe(JournalFound(Journal("dead", 0)))
    w.decide()
    assert open_in(w) == (JOB,)
    w.edit("job-0", node="n0", attempt="dead-1", bound_for=JOB)  # of which we are told, and die
    assert open_in(w) == (JOB,)
    assert not w.scheduler.journal().passed_on("next").is_settled(key("job"), ["dead-1"])


def test_a_gang_that_waits_is_open_no_more_when_no_bind_can_arrive():
    w = world(cpu=1)
    w.gang("job", 2)
    w.observe(JournalFound(Journal("dead", 0)))
    w.decide()
    w.decide(after_s=policy.LATE_S)
    assert open_in(w) == ()


def test_it_is_so_too_when_the_leader_before_died_without_a_journal_or_there_was_none():
    w = world(cpu=1)
    w.gang("job", 2)
    w.decide()
    assert open_in(w) == (JOB,)
    w.decide(after_s=policy.LATE_S)
    assert open_in(w) == ()


def test_without_a_journal_before_it_a_gang_that_is_left_alone_is_not_open():
    """Another scheduler bound a member: a successor must not undo it either."""
    w = world(cpu=1)
    w.gang("job", 2)
    w.edit("job-0", node="n0", phase="Running")
    w.decide()
    assert open_in(w) == ()


def test_of_many_gangs_that_wait_those_that_are_being_bound_are_named_alone():
    few, many = (key("a"),), [key(f"{n}-{'g' * 60}") for n in range(policy.OPEN_BYTES_MAX // 60)]
    assert journal_of("a", 1, few, many).open == ("x-k8s/team/a",)
    assert journal_of("a", 1, few, many[:2]).open == tuple(
        sorted(f"x-k8s/team/{one.name}" for one in (*few, *many[:2]))
    )


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_so_many_leaders_without_a_journal_are_named(monkeypatch, limit):
    monkeypatch.setattr(policy, "SINCE_MAX", limit)
    journal, others = journal_of("a", 1, []), ["b", "c", "d"]
    for count, other in enumerate(others, start=1):
        journal = journal.passed_on(other)
        named = (journal.by, *journal.since)
        assert named == ("a", *others[:count])[-1 - limit :]
        assert (journal.open is None) == (count > limit)
