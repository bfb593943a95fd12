"""The room of volumes in one cycle: later gangs see what earlier ones took, told to nobody else.

Nothing here is assumed in the cluster: what was taken is in the room alone.
"""

import numpy as np
import pytest

from quorate.core.model import ClaimUse, policy
from quorate.core.model.steps import OutOfStepsError, Steps
from quorate.core.place.packing import pack as pack_module
from quorate.core.place.packing.pack import is_exact, pack
from quorate.core.room.volume_room import MovedVolumes
from quorate.core.rules.filtering import pod_slots
from tests.unit.core.storage_world import DRIVER, HOSTNAME, ZONE, on
from tests.unit.core.volume_world import (
    MANY,
    bound,
    by_node,
    class_of,
    classes_of,
    gang,
    on_rows,
    room_of,
    world,
)

SINGLE = ("ReadWriteOncePod",)


# A volume that all share


@pytest.mark.parametrize("limited", [(), ("n0",), ("n0", "n1", "n2")])
def test_a_shared_volume_puts_no_pod_in_anothers_way_whatever_the_limits(limited):
    w = world()
    bound(w, "data")
    which = gang(w, "g", 20, "data")
    for name in limited:
        w.limit(name, 1)
    room, pod_class = room_of(w), class_of(w, which)
    assert not room.volumes.constrains(pod_class)
    assert not pack_module.constrain_one_another(pod_class, room)
    assert is_exact(pod_class, room)
    assert by_node(w, pack(pod_class, 20, room, "most-allocated")) == {"n0": 8, "n1": 8, "n2": 4}


@pytest.mark.parametrize(
    ("limit", "own", "expected"),
    [(0, 0, 0), (1, 0, 8), (1, 1, 0), (2, 1, 1), (3, 1, 2), (4, 2, 1), (5, 2, 2), (9, 1, 8)],
)
def test_slots_count_the_shared_volume_once_and_each_pods_own_ones(limit, own, expected):
    w = world("n0", cpu=8)
    w.limit("n0", limit)
    bound(w, "data")
    which = w.object("g", 10)
    for index in range(10):
        claims = [f"own-{index}-{number}" for number in range(own)]
        for claim in claims:
            bound(w, claim)
        w.pod(f"g-{index}", which, claims=tuple(map(ClaimUse, ["data", *claims])))
    room, pod_class = room_of(w), class_of(w, which)
    assert by_node(w, pod_slots(pod_class, room)) == {"n0": expected}
    assert by_node(w, pack(pod_class, 10, room, "most-allocated")) == {"n0": expected}


def test_where_a_pod_has_the_volume_any_number_follows_at_the_limit():
    w = world("n0", "n1")
    bound(w, "data")
    bound(w, "other")
    w.limit("n0", 1)
    w.limit("n1", 1)
    w.running("r", "n0", claims=(ClaimUse("data"),))
    w.running("s", "n1", claims=(ClaimUse("other"),))
    which = gang(w, "g", 4, "data")
    assert by_node(w, pod_slots(class_of(w, which), room_of(w))) == {"n0": 7, "n1": 0}


# Claims of one pod at a time


@pytest.mark.parametrize("pods", [2, 5])
def test_of_pods_with_one_exclusive_claim_one_is_placed_and_that_is_known_at_once(pods):
    w = world()
    bound(w, "one", modes=SINGLE)
    which = gang(w, "g", pods, "one")
    room, pod_class = room_of(w), class_of(w, which)
    assert room.volumes.most(pod_class) == 1
    assert is_exact(pod_class, room)
    assert pack(pod_class, pods, room, "most-allocated").sum() == 1
    assert pack(pod_class, pods, room, "most-allocated").sum() == 0


def test_an_exclusive_claim_that_a_gang_of_this_cycle_uses_is_in_use_for_the_next():
    w = world()
    bound(w, "one", modes=SINGLE)
    first, second = gang(w, "a", 1, "one"), gang(w, "b", 1, "one")
    room, later = room_of(w), class_of(w, second)  # its wants are older than the placement
    assert pack(class_of(w, first), 1, room, "most-allocated").sum() == 1
    assert pod_slots(later, room).sum() == 0
    assert class_of(w, second) is later


# What a gang took, and the next one of the cycle


def test_limits_hold_for_all_gangs_of_the_cycle_together():
    w = world("n0", "n1", cpu=8)
    w.limit("n0", 2)
    w.limit("n1", 1)
    bound(w, "shared")
    first, second = gang(w, "a", 3, "shared"), gang(w, "b", 3, "shared")
    bound(w, "c0")
    bound(w, "c1")
    third = gang(w, "c", 1, "c0", "c1")
    room = room_of(w)
    later, last = class_of(w, second), class_of(w, third)
    assert by_node(w, pod_slots(last, room)) == {"n0": 1, "n1": 0}
    room.take(class_of(w, first), on_rows(w, room, n0=3))
    assert by_node(w, pod_slots(later, room)) == {"n0": 5, "n1": 8}
    assert by_node(w, pod_slots(last, room)) == {"n0": 0, "n1": 0}
    assert by_node(w, room.volumes.attached(DRIVER)) == {"n0": 1, "n1": 0}
    assert w.cluster.storage.nodes.counts == {}


def test_a_copy_keeps_its_taking_to_itself():
    w = world("n0")
    w.limit("n0", 1)
    bound(w, "one")
    bound(w, "two")
    which, other = gang(w, "a", 1, "one"), gang(w, "b", 1, "two")
    room = room_of(w)
    room.copy().take(class_of(w, which), on_rows(w, room, n0=1))
    assert by_node(w, pod_slots(class_of(w, other), room)) == {"n0": 1}


def test_a_volume_chosen_for_one_gang_is_not_free_for_the_next():
    w = world("n0")
    w.volume("pv-1")
    first = w.claiming("a", 1, storage_class="local")
    second = w.claiming("b", 1, storage_class="local")
    room, later = room_of(w), class_of(w, second)
    pod_class = class_of(w, first)
    pack(pod_class, 1, room, "most-allocated")
    assert room.volumes.take_chosen(pod_class, 0) == ("pv-1",)
    assert pack(later, 1, room, "most-allocated").sum() == 0


@pytest.mark.parametrize("modes", [MANY, ("ReadWriteOnce",)])
def test_a_claim_that_two_gangs_share_is_made_where_the_first_of_them_said(modes):
    """As if it were written: what the second one sees once the plan of the first is assumed."""
    w = world("n0", "n1", "n2", cpu=2)
    w.claim("shared", access_modes=modes)
    first, second = gang(w, "a", 2, "shared"), gang(w, "b", 2, "shared")
    room, later = room_of(w), class_of(w, second)
    pod_class = class_of(w, first)
    placed = pack(pod_class, 2, room, "most-allocated")
    [row] = np.flatnonzero(placed)
    assert room.volumes.take_chosen(pod_class, row) == ("",)
    [node] = [name for name, count in by_node(w, placed).items() if count]
    assert {name for name, slots in by_node(w, pod_slots(later, room)).items() if slots} == set()
    room.free[row] += 2000
    assert {name for name, slots in by_node(w, pod_slots(later, room)).items() if slots} == {node}
    w.cluster.storage.assume("x", [(w.claims["shared"].key, "", node)])
    assumed = room_of(w)
    assert by_node(w, pod_slots(class_of(w, second), assumed) > 0) == {
        n: n == node for n in w.nodes
    }


def test_within_one_gang_a_claim_that_can_be_shared_is_made_for_pods_on_any_node():
    w = world("n0", "n1", cpu=2)
    w.claim("shared", access_modes=MANY)
    which = w.object("g", 4)
    for index in range(4):
        w.pod(f"g-{index}", which, cpu=1 if index < 2 else 2, claims=(ClaimUse("shared"),))
    room = room_of(w)
    small, large = classes_of(w, which)
    assert pack(small, 2, room, "most-allocated").sum() == 2
    assert not room.volumes.constrains(large)
    assert pack(large, 2, room, "most-allocated").sum() == 1


def test_a_volume_that_two_gangs_share_is_given_to_their_claim_once():
    w = world("n0", "n1")
    w.volume("pv-1", affinity=on(HOSTNAME, "n1"))
    w.volume("pv-2", affinity=on(HOSTNAME, "n1"))
    w.claim("shared", storage_class="local")
    first, second = gang(w, "a", 2, "shared"), gang(w, "b", 2, "shared")
    room, later = room_of(w), class_of(w, second)
    for pod_class in (class_of(w, first), later):
        placed = pack(pod_class, 2, room, "most-allocated")
        assert by_node(w, placed) == {"n0": 0, "n1": 2}
        row = w.cluster.nodes.rows["n1"]
        assert [room.volumes.take_chosen(pod_class, row) for _ in range(2)] == [("pv-1",)] * 2


# Which pods get volumes


def local_volumes(w, **of_node):
    for node, sizes in of_node.items():
        for number, size in enumerate(sizes):
            name = f"pv-{node}-{number}"
            w.volume(name, capacity=size * 2**30, affinity=on(HOSTNAME, node))


def test_local_volumes_are_slots_and_no_pod_is_in_anothers_way():
    w = world()
    local_volumes(w, n0=[1, 1, 1], n1=[1, 2], n2=[])
    which = w.claiming("db", 5, storage_class="local")
    room, pod_class = room_of(w), class_of(w, which)
    assert not room.volumes.constrains(pod_class)
    assert by_node(w, pod_slots(pod_class, room)) == {"n0": 3, "n1": 2, "n2": 0}
    placed = pack(pod_class, 5, room, "most-allocated")
    assert by_node(w, placed) == {"n0": 3, "n1": 2, "n2": 0}
    chosen = {room.volumes.take_chosen(pod_class, row) for row in np.repeat([0, 1], [3, 2])}
    assert len(chosen) == 5


def test_volumes_of_zones_are_given_out_until_each_zone_is_used_up():
    w = world(cpu=4)
    for index in range(12):
        w.labelled_node(f"m{index}", zone="ab"[index % 2], cpu=4)
    for index in range(9):
        w.volume(f"pv-{index}", affinity=on(ZONE, "a" if index < 6 else "b"))
    which = w.claiming("db", 9, storage_class="local")
    room, pod_class = room_of(w), class_of(w, which)
    placed = pack(pod_class, 9, room, "most-allocated")
    zones = {name: dict(node.labels)[ZONE] for name, node in w.nodes.items()}
    per_zone = {"a": 0, "b": 0}
    for name, count in by_node(w, placed).items():
        per_zone[zones[name]] += count
    assert per_zone == {"a": 6, "b": 3}


@pytest.mark.parametrize(("free", "asked", "expected"), [(2, 3, 2), (3, 3, 3), (4, 3, 3)])
def test_volumes_that_all_nodes_reach_let_in_as_many_pods(free, asked, expected):
    w = world()
    for index in range(free):
        w.volume(f"pv-{index}")
    which = w.claiming("db", asked, storage_class="local")
    room, pod_class = room_of(w), class_of(w, which)
    assert room.volumes.most(pod_class) == free
    assert pack(pod_class, asked, room, "most-allocated").sum() == expected


def test_pods_that_must_meet_at_their_claim_go_where_there_is_room_for_all():
    w = world("n0", "n1", "n2")
    w.labelled_node("n0", cpu=2)
    w.labelled_node("n1", cpu=5)
    w.labelled_node("n2", cpu=3)
    w.claim("shared")
    which = gang(w, "g", 4, "shared")
    for packing in ("most-allocated", "least-allocated"):
        room = room_of(w)
        placed = pack(class_of(w, which), 4, room, packing)
        assert by_node(w, placed) == {"n0": 0, "n1": 4, "n2": 0}


# Pods that a trial thinks away


def test_what_was_placed_in_this_cycle_stays_when_others_are_thought_away():
    w = world("n0")
    w.limit("n0", 2)
    bound(w, "data")
    w.running("old", "n0", claims=(ClaimUse("data"),))
    which = gang(w, "a", 1, "data")
    room = room_of(w)
    room.take(class_of(w, which), on_rows(w, room, n0=1))
    moved = MovedVolumes(w.cluster.storage, 0)
    tried = room.what_if()
    tried.volumes.moved = moved
    moved.shift("uid-old", -1)
    assert tried.volumes.holders((DRIVER, "pv-data")) == [0]
    assert by_node(w, tried.volumes.attached(DRIVER)) == {"n0": 1}


# The budget


def many_zonal(w, pods):
    for index in range(pods):
        w.volume(f"pv-{index}", affinity=on(ZONE, "a"))
    return w.claiming("db", pods, storage_class="local", labels={"app": "db"})


def test_choosing_counts_steps_and_a_copy_counts_the_same_ones():
    w = world()
    which = many_zonal(w, 4)
    room = room_of(w)
    assert room.volumes.steps is None
    room.volumes.steps = steps = Steps(100)
    assert room.copy().volumes.steps is steps
    pack(class_of(w, which), 4, room.copy(), "most-allocated")
    assert 0 < steps.taken < 100
    assert steps.left + steps.taken == 100


def test_when_the_turn_is_over_choosing_stops_between_pods():
    w = world()
    which = many_zonal(w, 4)
    room = room_of(w)
    room.volumes.steps = Steps(0)
    with pytest.raises(OutOfStepsError):
        pack(class_of(w, which), 4, room, "most-allocated")
    room.volumes.steps = Steps(1)  # the last one is overdrawn
    with pytest.raises(OutOfStepsError):
        pack_module._pack_one_by_one(class_of(w, which), 4, room, "most-allocated")
    assert room.volumes.steps.taken >= 1
    plain = gang(w, "plain", 2)
    assert pack(class_of(w, plain), 2, room, "most-allocated").sum() == 2


def test_a_thousand_pods_of_zonal_volumes_are_placed_within_one_turn():
    w = world(cpu=64)
    for index in range(20):
        w.labelled_node(f"m{index}", zone="abcd"[index % 4], cpu=64)
    for index in range(1000):
        w.volume(f"pv-{index}", affinity=on(ZONE, "abcd"[index % 4]))
    which = w.claiming("db", 1000, storage_class="local")
    room = room_of(w)
    room.volumes.steps = Steps(policy.TURN_STEPS_MAX)
    placed = pack(class_of(w, which), 1000, room, "most-allocated")
    assert placed.sum() == 1000
    assert room.volumes.steps.left > policy.TURN_STEPS_MAX // 2
