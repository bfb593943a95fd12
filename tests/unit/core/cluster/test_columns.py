"""A resource has a column while some node lists it; what pods ask for decides no array's size."""

import pytest

from quorate.core.cluster.nodes.encoding import FIRST_RESOURCES, Resources
from quorate.core.model import Owner, policy
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.model.reasons import Reason
from tests.unit.core.held_world import lose
from tests.unit.core.world import World

ODD = "example.com/x"


def asks(count: int, name: str = ODD) -> dict:
    return {"requests": {name: count}}


def lists(**names: int) -> dict:
    return {f"example.com/{name}": count for name, count in names.items()}


def kube() -> World:
    return World(profiles=(("quorate", KUBE_SCHEDULER),))


def extended(w: World) -> list[str]:
    """The columns besides the first, "" for a free one."""
    return w.cluster.resources.names[len(FIRST_RESOURCES) :]


# Names that no node has


@pytest.mark.parametrize("names", [1, 50, 1000])
def test_names_that_only_pods_know_take_no_column(names):
    w = World()
    w.node("n0")
    for index in range(names):
        w.pod(f"p{index}", **asks(1, f"example.com/r{index}"))
    assert w.cycle() == {}
    assert extended(w) == []
    assert w.cluster.nodes.free.shape[1] == w.cluster.nodes.allocatable.shape[1] == 8


def test_a_gang_that_asks_for_what_no_node_has_is_told_so():
    w = World()
    w.node("n0", cpu=2)
    w.node("n1", cpu=4)
    gang = w.gang("job", 2, cpu=3, **asks(1))
    assert w.cycle() == {}
    said = w.why(gang)
    assert said.reason is Reason.REQUEST_TOO_LARGE
    assert said.message == (
        "0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient example.com/x. "
        "2 members must start together and 0 fit: pod job-0 asks for 1 example.com/x; "
        "the largest matching node has none"
    )
    assert said.blockers[0].nearest_miss == "node n1 lacks 1 example.com/x"


def test_a_single_pod_is_told_so_in_kube_scheduler_s_words_and_preempts_nobody():
    w = kube()
    w.node("n0", cpu=4)
    w.running("low", "n0", cpu=4, priority=1)
    high = w.pod("high", cpu=1, priority=9, **asks(1))
    plan = w.decide()
    assert plan.preemptions == ()
    assert plan.gangs == ()
    (gang,) = [one for one in w.cluster.gangs.values() if high.uid in one.members]
    assert w.why(gang.key).message == (
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient example.com/x. "
        "no new claims to deallocate, preemption: 0/1 nodes are available: "
        "1 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_is_tried_again_is_still_refused_by_its_name():
    w = kube()
    w.node("n0")
    w.pod("p", **asks(1))
    assert w.cycle() == {}
    w.running("other", "n0")
    w.edit("p", labels=(("app", "web"),))
    assert w.cycle() == {}


def test_nominated_pods_in_the_way_do_not_hide_what_no_node_has():
    w = kube()
    w.node("n0", cpu=4)
    w.running("low", "n0", cpu=1, priority=1)
    w.pod("first", cpu=4, priority=9)
    assert len(w.decide().preemptions) == 1
    w.pod("second", cpu=2, priority=9, **asks(1))
    assert w.decide().preemptions == ()
    (gang,) = [one for one in w.cluster.gangs.values() if "uid-second" in one.members]
    assert w.why(gang.key).message.startswith(
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient example.com/x. "
    )


def test_the_other_members_of_a_gang_start_without_the_one_that_fits_nowhere():
    w = World()
    w.node("n0", cpu=8)
    gang = w.object("job", 3)
    for name in ("a", "b", "c"):
        w.pod(name, gang, cpu=1)
    w.pod("d", gang, cpu=1, **asks(2))
    assert sorted(w.cycle()) == ["a", "b", "c"]


# Names come and go with nodes


def test_a_node_that_brings_the_name_wakes_who_asks_for_it():
    w = World()
    w.node("n0")
    gang = w.gang("job", 2, **asks(2))
    held = w.cluster.pods["uid-job-0"].pod_class
    assert w.cycle() == {}
    assert held.missing == ((ODD, 2),)
    w.node("n1", **lists(x=4))
    assert w.cycle() == {"job-0": "n1", "job-1": "n1"}
    assert w.cluster.pods["uid-job-0"].pod_class is held
    assert held.missing == ()
    assert w.used("n1", ODD) == 4
    assert w.cluster.gangs[gang].started


def test_what_pods_use_already_is_counted_when_the_name_comes():
    w = World()
    w.node("n0")
    w.node("n1")
    w.running("before", "n0", **asks(3))
    w.running("elsewhere", "n1", **asks(1))
    w.node("n0", **lists(x=4))
    assert w.used("n0", ODD) == 3
    assert w.used("n1", ODD) == 1
    w.gang("job", 1, **asks(2))
    assert w.cycle() == {}
    w.delete("before")
    assert w.cycle() == {"job-0": "n0"}
    assert w.used("n0", ODD) == 2


@pytest.mark.parametrize("unused_max", [0, 1, 3])
@pytest.mark.parametrize("gone", range(8))
def test_columns_close_up_when_more_than_so_many_are_free(monkeypatch, unused_max, gone):
    monkeypatch.setattr(policy, "COLUMNS_UNUSED_MAX", unused_max)
    resources = Resources()
    names = [f"r{index}" for index in range(8)]
    resources.add(names)
    resources.drop(names[:gone])
    version = resources.version
    kept = resources.renumber()
    assert (resources.version > version) is (kept is not None)
    in_use = 4 + 8 - gone
    assert (kept is None) is (gone <= in_use + unused_max)
    assert len(resources.names) == (in_use if kept is not None else 12)
    assert [resources.names[column] for column in resources.columns.values()] == [
        *FIRST_RESOURCES,
        *names[gone:],
    ]


@pytest.mark.parametrize("still_listed", [True, False])
def test_room_is_not_held_where_the_name_is_gone(still_listed):
    w = World()
    for name in ("n0", "n1"):
        w.node(name, **lists(x=1))
    gang = w.gang("job", 2, cpu=1, owner=Owner("batch/v1", "Job", "job"), **asks(1))
    w.cycle()
    lost = lose(w, "job-1")
    w.decide()
    assert [reservation.node for reservation in w.cluster.reservations.of(gang)] == [lost]
    other = {"n0": "n1", "n1": "n0"}[lost]
    w.node(lost)
    if not still_listed:
        w.node(other)
    w.decide()
    assert w.cluster.reservations.of(gang) == []


def test_a_preemptor_counts_what_victims_use_of_a_name_that_came_later():
    w = kube()
    w.node("n0", cpu=8)
    w.running("low", "n0", cpu=1, priority=1, **asks(4))
    w.node("n0", cpu=8, **lists(x=4))
    w.pod("high", cpu=1, priority=9, **asks(4))
    assert [one.victims[0].name for one in w.decide().preemptions] == ["low"]
