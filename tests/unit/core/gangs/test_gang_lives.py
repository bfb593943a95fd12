"""A gang's life: it ends when no member is alive, and the next one needs a new quorum (ADR 14)."""

import pytest

from quorate.core.model import Membership
from quorate.core.model.changes import (
    BindFailure,
    GangChanged,
    JournalFound,
    NodeChanged,
    PodBound,
    PodChanged,
)
from quorate.core.model.journal import Journal, entry_of, is_older
from tests.unit.core.held_world import full_world, lose
from tests.unit.core.recovery_world import GRACE_S, JOB
from tests.unit.core.world import LABELS, VOLCANO, World, binds_of, fail, key, names, world

OLD = {"phase": "Failed", "node": "n0", "attempt": "old-1", "attempt_size": 2}
NEW = {"phase": "Running", "node": "n0", "attempt": "new-1", "attempt_size": 2}
NEVER_WROTE = Journal("old", 1, (), ("new",))


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


# A dead leader was binding a new life, and failed pods of an earlier one are kept


def half_bound_again(
    journal: Journal | None, *, cpu: int = 1, old=None, marked=None, new=None
) -> World:
    """A gang with min 2: two of an earlier life, one that a dead leader bound, one that waits."""
    w = World(recovery_s=GRACE_S)
    w.node("n0", cpu=cpu)
    gang = w.object("job", 2)
    w.pod("old-0", gang, **OLD | (old or {}))
    w.pod("old-1", gang, **OLD | {"started": True} | (marked or {}))
    w.pod("new-0", gang, **NEW | (new or {}))
    w.pod("new-1", gang)
    if journal is not None:
        w.observe(JournalFound(journal))
    return w


def evicted(w: World) -> list[str]:
    """Return whom a successor evicts as it finds no room for the rest."""
    assert w.decide().evictions == ()
    return names(w.decide(after_s=GRACE_S).evictions)


@pytest.mark.parametrize(
    "journal",
    [
        pytest.param(NEVER_WROTE, id="its leader never wrote a journal"),
        pytest.param(Journal("new", 0), id="its attempt began after the last renewal"),
        pytest.param(Journal("new", 1, (JOB,)), id="its attempt was open"),
        pytest.param(Journal("new", 1, None), id="too many were open"),
    ],
)
def test_the_mark_of_an_earlier_life_does_not_say_that_the_new_one_had_started(journal):
    assert evicted(half_bound_again(journal)) == ["new-0"]


def test_attempts_of_one_leader_are_in_the_order_of_their_numbers():
    assert evicted(half_bound_again(None, new={"attempt": "old-2"})) == ["new-0"]
    of_both = {"old": {"attempt": "new-1"}, "marked": {"attempt": "new-1"}}
    assert evicted(half_bound_again(NEVER_WROTE, **of_both, new={"attempt": "new-2"})) == ["new-0"]


def test_two_leaders_that_wrote_no_journal_are_in_the_order_in_which_they_led():
    journal = Journal("first", 1, (), ("old", "new"))
    assert evicted(half_bound_again(journal)) == ["new-0"]
    assert evicted(half_bound_again(Journal("first", 1, (), ("new", "old")))) == []
    assert evicted(half_bound_again(Journal("old", 0, None, ("new",)))) == ["new-0"]


def test_of_very_many_leaders_without_a_journal_the_last_are_known_in_their_order():
    journal = Journal("a", 3)
    for number in range(100):
        journal = journal.passed_on(f"b{number}")
    assert is_older("b97-1", "b99-1", journal)
    assert is_older("b0-1", "b99-1", journal)
    assert not is_older("b99-1", "b98-1", journal)


def test_failed_members_alone_do_not_make_a_quorum_where_who_bore_the_mark_is_gone():
    w = half_bound_again(NEVER_WROTE)
    w.delete("old-1")
    w.pod("old-2", key("job"), **OLD)
    assert evicted(w) == ["new-0"]


def test_members_of_an_earlier_life_that_are_still_being_deleted_are_no_others():
    going = {"phase": "Running", "terminating": True}
    w = half_bound_again(NEVER_WROTE, cpu=3, old=going, marked=going)
    assert evicted(w) == ["new-0"]


def test_the_new_life_is_finished_where_it_fits_and_is_left_alone_then():
    w = half_bound_again(NEVER_WROTE, cpu=2)
    plan = w.decide()
    (gang,) = plan.gangs
    assert (names(gang.binds), gang.first, gang.started) == (["new-1"], 0, False)
    w.settle(plan)
    w.delete("new-1")
    assert w.decide(after_s=60).evictions == ()


def test_no_other_member_is_bound_by_itself():
    w = half_bound_again(NEVER_WROTE, cpu=2)
    w.object("job", 3)
    w.pod("new-2", key("job"))
    assert w.cycle() == {}


@pytest.mark.parametrize(
    ("journal", "more"),
    [
        pytest.param(Journal("new", 1), {}, id="its attempt was settled"),
        pytest.param(NEVER_WROTE, {"marked": {"attempt": "new-1"}}, id="a mark of its attempt"),
        pytest.param(NEVER_WROTE, {"marked": {"attempt": "new-2"}}, id="a mark that came later"),
        pytest.param(NEVER_WROTE, {"new": {"started": True}}, id="it bears the mark"),
        pytest.param(None, {}, id="nobody can tell which came first"),
        pytest.param(NEVER_WROTE, {"new": {"attempt": ""}}, id="another scheduler bound it"),
    ],
)
def test_what_may_have_started_is_left_alone(journal, more):
    assert evicted(half_bound_again(journal, **more)) == []


def test_members_that_reach_min_by_themselves_have_started():
    w = half_bound_again(NEVER_WROTE)
    w.edit("new-1", **NEW)
    assert evicted(w) == []


def test_who_finished_in_an_attempt_that_came_to_nothing_still_counts():
    """It may have finished after the other one was bound: then both are of one life."""
    done = {"phase": "Succeeded"}
    w = half_bound_again(NEVER_WROTE, old=done, marked=done | {"started": False})
    assert evicted(w) == []


def test_a_gang_is_looked_at_once_while_a_member_is_alive():
    """What is known to have started stays so when those that bore its mark are lost."""
    w = half_bound_again(NEVER_WROTE)
    w.edit("new-1", **NEW, started=True)
    w.decide()
    w.delete("new-1")
    w.pod("new-2", key("job"))
    assert evicted(w) == []


def test_a_gang_by_labels_is_looked_at_too():
    w = World(recovery_s=GRACE_S)
    w.node("n0", cpu=1)
    gang = w.gang("job", 2, pods=0, dialect=LABELS)
    for name, more in (("old-0", OLD), ("old-1", OLD | {"started": True}), ("new-0", NEW)):
        w.pod(name, gang, min_count=2, **more)
    w.pod("new-1", gang, min_count=2)
    w.observe(JournalFound(NEVER_WROTE))
    assert evicted(w) == ["new-0"]
