"""What owners of pods make is remembered while they have pods, and no longer."""

import pytest

from quorate.core.model import Membership, Owner
from quorate.core.model.changes import OwnerChanged
from quorate.core.model.reasons import Reason
from quorate.core.queue.gate import held_by
from tests.unit.core.world import LABELS, TEAM, Unwalked, World, key, world

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


MPI_JOB, LAUNCHER = Owner("kubeflow.org/v2beta1", "MPIJob", "pi"), Owner("batch/v1", "Job", "pi-l")


def workers(w: World, least: int, count: int, first: int | None = 0) -> None:
    """Make the workers of an MPIJob, and tell how many of them are made before its launcher."""
    for one in range(count):
        w.pod(f"w{one}", w.object("pi", least), owner=MPI_JOB)
    w.observe(OwnerChanged(TEAM, MPI_JOB, None, first=first))


def test_workers_start_whose_launcher_is_made_only_when_they_are_ready():
    """Its PodGroup counts the launcher too: they would wait for one another for ever."""
    w = world(cpu=3)
    workers(w, 3, 2)
    assert w.cycle() == {}
    w.observe(OwnerChanged(TEAM, MPI_JOB, None, first=2))
    assert set(w.cycle()) == {"w0", "w1"}
    w.pod("launcher", key("pi"), owner=LAUNCHER)
    assert set(w.cycle()) == {"launcher"}


@pytest.mark.parametrize("first", [0, None])
def test_workers_wait_for_a_launcher_that_does_not_wait_for_them(first):
    """Or of which it is not known: its pod may be made a moment later."""
    w = world(cpu=2)
    workers(w, 3, 2, first)
    assert w.cycle() == {}
    w.pod("launcher", key("pi"), owner=LAUNCHER)
    assert w.cycle() == {}, "there is room for two of three"


@pytest.mark.parametrize(
    ("least", "first", "too_few", "enough"),
    [
        pytest.param(5, 4, 3, 4, id="all-workers-are-made-first"),
        pytest.param(2, 2, 1, 2, id="min-is-the-workers-already"),
        pytest.param(5, 2, 3, 4, id="more-workers-than-were-read-of"),
    ],
)
def test_min_is_less_by_the_launcher_only(least, first, too_few, enough):
    w = world(cpu=8)
    workers(w, least, too_few, first)
    assert w.cycle() == {}
    workers(w, least, enough, first)
    assert len(w.cycle()) == enough


def test_a_launcher_that_is_there_counts_though_it_was_to_come_later():
    """As that of a job which was suspended when it was made."""
    w = world(cpu=2)
    w.pod("launcher", w.object("pi", 3), owner=LAUNCHER)
    workers(w, 3, 2, first=2)
    assert w.cycle() == {}
    w.node("n1")
    assert len(w.cycle()) == 3


def test_a_job_of_the_same_name_is_read_anew():
    w = world()
    w.node("n1", cpu=0)
    workers(w, 3, 2, first=2)
    w.delete("w0", "w1")
    for one in range(2):
        w.pod(f"w{one}", key("pi"), owner=MPI_JOB)
    assert w.cycle() == {}


@pytest.mark.parametrize("loses_state", [False, True])
def test_a_launcher_to_come_is_known_of_members_that_come_later(loses_state):
    w = world(cpu=3)
    workers(w, 4, 2, first=3)
    if loses_state:
        w.scheduler._rebuild()
    assert w.cycle() == {}
    w.pod("w2", key("pi"), owner=MPI_JOB)
    assert len(w.cycle()) == 3


def test_a_gang_to_which_the_workers_are_moved_does_not_wait_for_the_launcher():
    w = world(cpu=3)
    workers(w, 3, 2, first=2)
    to = w.object("other", 3)
    for one in ("w0", "w1"):
        w.edit(one, membership=Membership(to))
    assert set(w.cycle()) == {"w0", "w1"}
