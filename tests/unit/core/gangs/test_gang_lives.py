"""A gang's life: it ends when no member is alive, and the next one needs a new quorum (ADR 14)."""

import pytest

from quorate.core.model import Membership
from quorate.core.model.changes import BindFailure, GangChanged, NodeChanged, PodBound, PodChanged
from quorate.core.model.journal import entry_of
from tests.unit.core.gangs.test_gang_meaning import world
from tests.unit.core.gangs.test_held_slots import full_world, lose
from tests.unit.core.world import VOLCANO, World, binds_of, fail, key


@pytest.mark.parametrize(
    "ends", [{"phase": "Succeeded"}, {"phase": "Failed"}, {"terminating": True}]
)
def test_who_comes_when_no_member_is_alive_is_a_new_gang_with_a_new_quorum(ends):
    w = world(cpu=8)
    gang = w.gang("job", 2)
    w.cycle()
    for name in ("job-0", "job-1"):
        w.edit(name, **ends)
    w.pod("again-0", gang)
    assert w.cycle() == {}
    assert w.why(gang).message.startswith("1 of 2 members exist")
    w.pod("again-1", gang)
    assert set(w.cycle()) == {"again-0", "again-1"}


def test_a_member_that_is_evicted_and_ends_keeps_no_life_going():
    w = world(cpu=8)
    gang = w.gang("job", 2)
    w.cycle(job_1=fail(BindFailure.REFUSED))
    w.edit("job-1", gates=("held",))
    (evicted,) = w.decide(after_s=61.0).evictions
    assert evicted.name == "job-0"
    w.edit("job-0", terminating=True)  # a finalizer holds it
    for name in ("a", "b"):
        w.pod(name, gang)
    assert set(w.cycle(after_s=61.0)) == {"a", "b"}
    for name in ("a", "b"):
        w.edit(name, node=w.where(name), phase="Failed")
    w.pod("again", gang)
    assert w.cycle() == {}
    assert w.why(gang).message.startswith("1 of 2 members exist")


def test_two_jobs_that_restart_as_a_whole_on_room_for_one_do_not_halve_it():
    w = World(hold_s=0.0)
    for index in range(8):
        w.node(f"n{index}", cpu=1)
    gangs = [w.gang(name, 4, cpu=1) for name in "ab"]
    assert len(w.cycle()) == 8
    for index in range(4):
        w.lose_node(f"n{index}")
    for name in list(w.pods):
        w.edit(name, phase="Failed")
    for index in range(4):
        for which in gangs:
            w.pod(f"{which.name}-again-{index}", which)
            w.cycle(after_s=1.0)
    running = {name.split("-")[0] for name, pod in w.pods.items() if "again" in name and pod.node}
    assert len(running) == 1
    assert sum(1 for name, pod in w.pods.items() if "again" in name and pod.node) == 4


def test_finished_members_of_an_earlier_life_do_not_count_for_a_successor_either():
    w = world(cpu=8)
    gang = w.object("job", 2)
    for index in range(2):
        w.pod(f"old-{index}", gang, node="n0", phase="Failed", attempt="a-1", started=True)
    w.pod("new-0", gang)
    assert w.cycle() == {}
    w.pod("new-1", gang)
    assert set(w.cycle()) == {"new-0", "new-1"}


def test_a_gang_that_lost_all_its_members_needs_a_new_quorum():
    w = world()
    gang = w.gang("job", 2)
    w.cycle()
    w.delete("job-0", "job-1")
    w.pod("again", gang)
    assert w.cycle() == {}
    w.pod("more", gang)
    assert set(w.cycle()) == {"again", "more"}


def test_nothing_is_held_for_a_gang_whose_members_have_all_finished():
    w = full_world()
    lose(w, "a-1")
    w.decide()
    assert len(w.cluster.reservations) == 1
    for name in ("a-0", "a-2", "a-3"):
        w.edit(name, node=w.where(name), phase="Succeeded")
    w.decide()
    assert len(w.cluster.reservations) == 0
    assert w.cluster.reservations.missing(key("a")) == 0


@pytest.mark.parametrize("alive", [0, 1, 2])
def test_the_counts_of_a_status_are_those_that_a_successor_finds_where_failed_pods_are_kept(alive):
    w = world(cpu=8)
    gang = w.gang("job", 2, dialect=VOLCANO)
    w.cycle()
    for name in ("job-0", "job-1"):
        w.edit(name, node="n0", phase="Failed", bound_for=entry_of(gang))
    w.pod("again-0", gang)
    w.pod("again-1", gang)
    assert set(w.cycle()) == {"again-0", "again-1"}
    for name in ("again-0", "again-1")[:alive]:
        w.edit(name, node="n0", phase="Running", bound_for=entry_of(gang))
    if alive < 2:
        w.delete("again-1")
    if alive < 1:
        w.edit("again-0", node="n0", phase="Succeeded", bound_for=entry_of(gang))
    w.decide()
    after = World()
    after.observe(NodeChanged(w.nodes["n0"]), GangChanged(w.specs[gang]))
    after.observe(*map(PodChanged, w.pods.values()))
    after.decide()
    ours, theirs = w.why(gang).members, after.why(gang).members
    expected = (2, alive, int(alive == 0), 2 + max(1, alive))
    for found in (ours, theirs):
        assert (found.failed, found.running, found.succeeded, found.placed) == expected


def test_a_pod_whose_bind_is_under_way_for_another_gang_counts_for_nothing_until_it_is_bound():
    w = world(cpu=8)
    w.gang("a", 2)
    b = w.object("b", 2)
    binds = {bind.name: bind for bind in binds_of(w.decide())}
    w.edit("a-0", membership=Membership(b))
    w.pod("b-0", b)
    assert w.cycle() == {}
    assert w.why(b).members.exist == 1
    w.observe(PodBound("uid-a-0", binds["a-0"].node))
    assert w.why(b).members.bound == 1
    assert w.cycle() == {}, "who was bound for another gang starts nobody"
    w.pod("b-1", b)
    assert set(w.cycle()) == {"b-0", "b-1"}


def test_a_pod_that_was_relabelled_while_its_bind_was_under_way_waits_in_its_new_gang_if_it_fails():
    w = world(cpu=8)
    w.gang("a", 2)
    b = w.object("b", 2)
    plan = w.decide()
    w.edit("a-0", membership=Membership(b))
    w.pod("b-0", b)
    w.settle(plan, a_0=fail(BindFailure.REFUSED))
    assert set(w.cycle(after_s=1.0)) == {"a-0", "b-0"}


def test_a_pod_that_was_relabelled_and_back_again_while_its_bind_was_under_way_is_its_gangs_own():
    w = world(cpu=8)
    a = w.gang("a", 2)
    b = w.object("b", 2)
    plan = w.decide()
    w.edit("a-0", membership=Membership(b))
    w.edit("a-0", membership=Membership(a))
    w.settle(plan)
    for bind in binds_of(plan):
        seal = bind.name == binds_of(plan)[-1].name
        fields = {"attempt": plan.gangs[0].attempt, "bound_for": entry_of(a), "started": seal}
        w.edit(bind.name, node=bind.node, phase="Running", **fields)
    w.decide()
    assert w.why(a).members.bound == 2
    assert w.cluster.gangs[a].started
    assert w.decide(after_s=120.0).evictions == ()
