"""What owners of pods make is remembered while they have pods, and no longer."""

import pytest

from quorate.core.model import Owner
from quorate.core.model.changes import OwnerChanged
from quorate.core.model.reasons import Reason
from quorate.core.queue.gate import held_by
from tests.unit.core.world import LABELS, TEAM, Unwalked, World, key

JOB, OTHER = Owner("batch/v1", "Job", "one"), Owner("batch/v1", "Job", "other")
GANG = key("g", LABELS)


def told(makes: int | None = 1) -> World:
    w = World()
    w.node("n0")
    w.pod("p", GANG, min_count=5, owner=JOB)
    w.observe(OwnerChanged(TEAM, JOB, makes))
    return w


@pytest.mark.parametrize("makes", [1, None])
def test_of_owners_whose_pods_came_and_went_nothing_is_left(makes):
    w = told(makes)
    w.delete("p")
    assert w.cluster.owners.known == {}
    assert [what for what, _ in w.scheduler._objects.all(w.cluster)] == [("node", "n0")]


def test_an_answer_that_comes_when_the_pods_are_gone_is_not_kept():
    w = told()
    w.delete("p")
    w.observe(OwnerChanged(TEAM, JOB, 3))
    assert w.cluster.owners.known == {}


def test_an_owner_that_lost_its_pod_to_another_one_is_forgotten():
    w = told()
    w.edit("p", owner=OTHER)
    assert w.cluster.owners.known == {}


def test_a_rebuild_keeps_who_made_an_owner():
    w = told()
    w.observe(OwnerChanged(TEAM, JOB, 1, "nightly"))
    w.scheduler._rebuild()
    assert w.cluster.owners.cron_job_of(TEAM, JOB) == "nightly"


def test_news_of_an_owners_only_pod_leave_what_it_makes_as_it_is():
    w = told()
    w.edit("p", labels=(("a", "b"),))
    w.cycle()
    assert w.why(GANG).reason is Reason.OWNER_MAKES_TOO_FEW


def test_what_owners_make_is_known_when_the_state_is_built_again():
    w = told()
    w.scheduler._rebuild()
    w.cycle()
    assert w.why(GANG).reason is Reason.OWNER_MAKES_TOO_FEW


@pytest.mark.parametrize("makes", [None, 3, 9])
def test_each_news_of_an_incomplete_gang_costs_the_same_however_many_members_it_has(makes):
    """All members were asked for their owner: 136 ms of 4,000, at the news of each of them."""
    w = told(makes)
    gang = w.cluster.gangs[GANG]
    gang.members = Unwalked(gang.members)
    reason = held_by(gang, w.cluster, w.now_s)
    assert reason is (Reason.OWNER_MAKES_TOO_FEW if makes == 3 else Reason.NOT_ENOUGH_MEMBERS)
