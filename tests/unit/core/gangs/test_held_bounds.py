"""How long and how many slots are held is the operator's choice: no quota counts a promise."""

import pytest

from quorate.core.model import Owner, policy
from quorate.core.model.changes import OwnerChanged
from quorate.core.model.reasons import Reason
from quorate.core.room.reserved_room import reserved_for
from quorate.shell.report.reservations import ReservationEvents
from tests.unit.core.world import LABELS, TEAM, World, key

OWNER = Owner("example.com/v1", "Thing", "a")


def started(w, name, pods, *, namespace=TEAM, gang_spec=None, **more):
    """A gang that runs, each of its pods on a node of its own."""
    for index in range(pods):
        w.node(f"{name}-n{index}", cpu=1, labels={"for": name})
    more.setdefault("owner", OWNER)
    selector = {"node_selector": (("for", name),)}
    gang = w.gang(name, pods, spec=selector, namespace=namespace, gang_spec=gang_spec, **more)
    assert len(w.cycle()) == pods
    return gang


def lose(w, name, *numbers):
    w.delete(*[f"{name}-{index}" for index in numbers])
    w.decide(after_s=1)


def held(w, gang):
    return len(w.cluster.reservations.of(gang))


@pytest.mark.parametrize("owner", [None, OWNER], ids=["without an owner", "with one"])
def test_one_living_pod_does_not_hold_99_gpus_for_a_day(owner):
    w = World()
    for index in range(13):
        w.node(f"n{index}", cpu=64, gpu=8)
    w.gang("squat", 100, dialect=LABELS, cpu=1, gpu=1, hold_s=86400.0, owner=owner)
    w.cycle()
    lose(w, "squat", *range(1, 100))
    if owner is not None:
        w.observe(OwnerChanged(TEAM, OWNER, None))
    w.gang("honest", 16, cpu=1, gpu=1)
    assert len(w.cycle()) == (16 if owner is None else 0)
    assert len(w.cluster.reservations) == (0 if owner is None else 99)
    w.cycle(after_s=w.scheduler.policy.hold_s_max)
    assert len(w.cluster.reservations) == 0
    assert w.where("honest-0")


def test_nothing_is_held_for_a_pod_without_an_owner():
    """Nobody makes another one: that it is below min says nothing of that."""
    w = World()
    gang = started(w, "a", 3, owner=None, hold_s=600.0, gang_spec={"hold_s": 600.0})
    lose(w, "a", 0)
    assert held(w, gang) == 0
    assert w.cluster.reservations.missing(gang) == 0


def test_nothing_is_held_for_a_pod_whose_owner_has_let_it_go():
    w = World()
    gang = started(w, "a", 3)
    w.edit("a-0", owner=None, node=w.where("a-0"))
    lose(w, "a", 0, 1)
    assert held(w, gang) == 1


@pytest.mark.parametrize(("asked_s", "length_s"), [(49.0, 49.0), (50.0, 50.0), (51.0, 50.0)])
@pytest.mark.parametrize("where", ["object", "pods"])
def test_nobody_gets_more_time_than_the_operator_allows(asked_s, length_s, where):
    w = World(hold_s_max=50.0, hold_s=10.0)
    asks = {"gang_spec": {"hold_s": asked_s}} if where == "object" else {"hold_s": asked_s}
    gang = started(w, "a", 2, **asks)
    lose(w, "a", 1)
    assert w.cluster.reservations.wake_at_s() == w.now_s + length_s
    is_cut = asked_s > length_s
    assert w.why(gang).held.endswith("; 51 s were asked for, and 50 are the most") is is_cut


def test_the_default_is_bounded_too():
    w = World(hold_s_max=50.0)
    started(w, "a", 2)
    lose(w, "a", 1)
    assert w.cluster.reservations.wake_at_s() == w.now_s + 50.0


@pytest.mark.parametrize("lost", [2, 3, 4])
def test_a_gang_has_no_more_slots_than_the_operator_allows(lost):
    w = World(held_slots_per_gang_max=3)
    gang = started(w, "a", 6)
    lose(w, "a", *range(lost))
    assert held(w, gang) == min(lost, 3)
    said = w.why(gang).held
    assert said.startswith(f"room for {min(lost, 3)} replacements is held until ")
    assert said.endswith("; 1 more are not held: 3 are the most for a gang") is (lost > 3)


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_the_gangs_of_a_namespace_have_no_more_together(lost):
    w = World(held_slots_per_namespace_max=4)
    first, second = started(w, "a", 5), started(w, "b", 5)
    other = started(w, "c", 5, namespace="other")
    lose(w, "a", 0, 1)
    lose(w, "b", *range(lost))
    lose(w, "c", 0, 1)
    assert (held(w, first), held(w, second), held(w, other)) == (2, min(lost, 2), 2)
    assert ("4 are the most for a namespace" in w.why(second).held) is (lost > 2)
    assert "the most" not in w.why(first).held


def test_a_gang_in_a_full_namespace_has_none_and_says_so():
    w = World(held_slots_per_namespace_max=2)
    started(w, "a", 5)
    second = started(w, "b", 5)
    lose(w, "a", 0, 1)
    lose(w, "b", 0)
    assert held(w, second) == 0
    assert w.why(second).held == (
        "no room is held for 1 lost member: 2 are the most for a namespace"
    )
    w.decide(after_s=301)
    assert w.why(second).held == ""


def test_losses_in_one_decision_are_held_for_in_the_order_of_the_gangs_names():
    for names in (("a", "b"), ("b", "a")):
        w = World(held_slots_per_namespace_max=2)
        for name in names:
            started(w, name, 5)
        w.delete(*[f"{name}-{index}" for name in names for index in (0, 1)])
        w.decide()
        assert (held(w, key("a")), held(w, key("b"))) == (2, 0)


def test_a_slot_that_is_used_makes_room_for_the_next_loss():
    w = World(held_slots_per_gang_max=1)
    gang = started(w, "a", 3)
    lose(w, "a", 0)
    w.pod("a-new", gang, spec={"node_selector": (("for", "a"),)}, owner=OWNER)
    assert len(w.cycle()) == 1
    assert held(w, gang) == 0
    lose(w, "a", 1)
    assert held(w, gang) == 1
    assert "the most" not in w.why(gang).held


def test_a_rack_of_18_nodes_is_held_for_a_gang_of_1000():
    w = World()
    for index in range(125):
        w.node(f"n{index}", cpu=8)
    gang = w.gang("a", 1000, owner=OWNER)
    w.cycle()
    rack = [name for name in w.pods if w.where(name) in {f"n{i}" for i in range(18)}]
    w.delete(*rack)
    w.decide(after_s=1)
    assert len(rack) == held(w, gang) == 144


@pytest.mark.parametrize(
    "policy",
    [{"held_slots_per_gang_max": 0}, {"held_slots_per_namespace_max": 0}, {"hold_s_max": 0.0}],
)
def test_a_bound_of_0_holds_nothing_and_says_nothing(policy):
    w = World(**policy)
    gang = started(w, "a", 3)
    lose(w, "a", 0)
    assert held(w, gang) == 0
    assert w.why(gang).held == ""


def test_room_that_is_not_held_is_given_to_whoever_waits():
    w = World(held_slots_per_gang_max=1)
    started(w, "a", 3)
    waits = w.gang("b", 1, spec={"node_selector": (("for", "a"),)})
    assert w.cycle() == {}
    assert w.why(waits).reason is Reason.NOT_ENOUGH_ROOM
    w.delete("a-0", "a-1")
    w.cycle(after_s=1)
    assert w.cycle() == {} or w.where("b-0")
    assert w.where("b-0")
    assert len(w.cluster.reservations) == 1


def test_an_event_tells_what_is_not_held_and_none_tells_that_it_ended():
    w = World(held_slots_per_namespace_max=2)
    started(w, "a", 5)
    second = started(w, "b", 5)
    lose(w, "a", 0, 1)
    lose(w, "b", 0)
    notes, entry, reservations = (
        ReservationEvents(),
        w.cluster.gangs[second],
        w.cluster.reservations,
    )
    said = w.why(second).held
    note = notes.news(entry, said, reservations)
    assert note is not None
    assert (note.reason, note.note) == ("SlotNotHeld", said)
    assert w.why(second).held_until_s == 1302.0
    assert notes.news(entry, said, reservations) is None
    w.decide(after_s=301)
    assert notes.news(entry, w.why(second).held, reservations) is None


@pytest.mark.parametrize("lost", [2, 3, 4])
def test_so_many_nodes_are_named(lost, monkeypatch):
    monkeypatch.setattr(policy, "RESERVED_NODES_NAMED_MAX", 3)
    w = World()
    gang = started(w, "a", 5, hold_s=600.0, gang_spec={"hold_s": 600.0})
    lose(w, "a", *range(lost))
    said = reserved_for(w.cluster.reservations.of(gang))
    assert said.count("a-n") == min(lost, 3)
    assert ("and 1 more" in said) == (lost == 4)
