"""Sizes follow need: what came and went leaves nothing behind, and what is held stays valid."""

import gc

import numpy as np
import pytest

from quorate.core.cluster.devices.pools import SharedTraits
from quorate.core.cluster.devices.views import DeviceKinds
from quorate.core.model import Allocation, DeviceId, Node, policy
from quorate.core.model.changes import NodeChanged, NodeGone, ObjectChanged, ObjectGone
from quorate.core.model.devices import DeviceTraits, GivenDevice
from quorate.core.room.devices.allocations import Outcomes
from quorate.core.room.devices.cel.expressions import Expressions
from quorate.core.room.devices.device_room import DeviceRoom
from tests.unit.core.device_world import (
    DRIVER,
    Nodes2,
    claim,
    device,
    gang,
    gpu_class,
    gpu_world,
    on,
    reached_by,
    request,
    spec,
    written,
    zone,
)
from tests.unit.core.world import TEAM

ROWS = np.arange(2)


def device_room_of(world: Nodes2, outcomes: Outcomes) -> DeviceRoom:
    cluster = world.cluster
    return DeviceRoom(cluster.devices, cluster.device_views, cluster.nodes, outcomes)


def unlike(node: str, number: int):
    """A slice of devices that no other node has, and never had."""
    uuids = ({"uuid": f"u{number}-{i}"} for i in range(2))
    return on(node, *(device(f"d{i}", attributes=one) for i, one in enumerate(uuids)), pool=node)


def test_slices_and_claims_that_came_and_went_leave_nothing(monkeypatch):
    monkeypatch.setattr(policy, "DEVICE_KINDS_SPARE_MIN", 10)
    monkeypatch.setattr(policy, "DEVICE_SPECS_SPARE_MAX", 20)
    world, outcomes = Nodes2(gpu_class()), Outcomes()
    cluster, devices, views = world.cluster, world.cluster.devices, world.cluster.device_views
    for turn in range(300):
        world.tell(ObjectChanged(unlike("n0", turn)))
        what = spec(request(f'device.attributes["{DRIVER}"].uuid != "{turn % 3}"', count=2))
        pod_class, _ = world.ask(what)
        world.tell(ObjectChanged(claim("other", spec(request(name=f"r{turn}")))))
        device_room = device_room_of(world, outcomes)
        assert device_room.pods(pod_class.device_needs, ROWS).tolist() == [1, 0]
        assert device_room.take(pod_class.id, pod_class.device_needs, [0], ["n0"])
        world.tell(ObjectGone("ResourceClaim", TEAM, "other"))
    del device_room
    gc.collect()
    assert len(views.kinds) < 40
    assert len(views.traits) < 80
    assert len(views.views) == len(views._rows) == 2
    assert views.kinds.remembered <= 3 * len(views.kinds)
    assert len(devices._specs) < 12
    assert cluster.device_needs._made < 10, "equal specs are known again"
    world.tell(ObjectGone("ResourceSlice", "", "n0-slice"))
    world.tell(ObjectGone("ResourceClaim", TEAM, "c0"))
    device_room_of(world, outcomes)
    assert (devices.by_pool, devices.of_node, devices.shared_pools) == ({}, {}, {})
    assert views.views_of == {}
    assert not devices._specs.of


def test_nodes_that_came_and_went_leave_no_view():
    world, outcomes = Nodes2(reached_by(zone("a"), device("z0"))), Outcomes()
    views = world.cluster.device_views
    allocatable = (("cpu", 8000), ("pods", 110))
    for turn in range(100):
        name = f"m{turn}"
        world.tell(NodeChanged(Node(name, allocatable, (("zone", f"z{turn}"),))))
        world.tell(ObjectChanged(unlike(name, turn)))
        pod_class, _ = world.ask(spec())
        device_room = device_room_of(world, outcomes)
        row = world.cluster.nodes.rows[name]
        assert device_room.pods(pod_class.device_needs, np.array([0, 1, row])).tolist() == [1, 0, 2]
        world.tell(ObjectGone("ResourceSlice", "", f"{name}-slice"))
        if turn % 2:
            device_room_of(world, outcomes)
        world.tell(NodeGone(name))
    device_room_of(world, outcomes)
    assert len(views.views) < 10
    assert len(views._own) == 0
    assert len(views._reach_of) <= 2 * len(views.of_row) + 1
    assert sorted(views.views_of) == [(DRIVER, "shared")]
    used = [view for view, rows in enumerate(views._rows) if rows]
    assert sorted(views._free) == [v for v in range(len(views.views)) if v not in used]


def test_views_are_those_of_a_fresh_start(monkeypatch):
    """A view that was given back is another node's, and none shows another's devices."""
    monkeypatch.setattr(policy, "DEVICE_KINDS_SPARE_MIN", 1)
    world, outcomes = Nodes2(), Outcomes()
    allocatable = (("cpu", 8000), ("pods", 110))
    for turn in range(60):
        name = f"m{turn % 7}"
        if turn % 3 == 0:
            world.tell(NodeGone(f"m{(turn + 3) % 7}"))
        world.tell(NodeChanged(Node(name, allocatable, (("zone", "ab"[turn % 2]),))))
        if turn % 4:
            world.tell(ObjectChanged(unlike(name, turn)))
        else:
            world.tell(ObjectGone("ResourceSlice", "", f"{name}-slice"))
        if turn % 10 == 9:
            world.tell(ObjectChanged(reached_by(zone("ab"[turn % 20 // 10]), device("z0"))))
        pod_class, _ = world.ask(spec())
        rows = np.array(sorted(world.cluster.nodes.rows.values()))
        found = device_room_of(world, outcomes).pods(pod_class.device_needs, rows).tolist()
        fresh = DeviceRoom(
            world.cluster.devices, type(world.cluster.device_views)(), world.cluster.nodes, outcomes
        )
        assert fresh.pods(pod_class.device_needs, rows).tolist() == found, turn


def test_many_stale_nodes_are_remembered_as_all(monkeypatch):
    monkeypatch.setattr(policy, "DEVICE_STALE_NODES_MAX", 5)
    world = Nodes2()
    devices = world.cluster.devices
    for count in (4, 5):
        world.tell(ObjectChanged(unlike(f"x{count}", count)))
        for number in range(count):
            world.tell(ObjectChanged(unlike(f"x{number}", number)))
        assert (len(devices.stale_nodes) <= 5, devices.all_stale) == (True, count == 5)


def test_a_node_that_came_and_went_unseen_has_a_view_all_the_same():
    world, outcomes = Nodes2(), Outcomes()
    pod_class, _ = world.ask(spec())
    device_room_of(world, outcomes)
    world.tell(NodeChanged(Node("brief", (("cpu", 8000), ("pods", 110)))))
    world.tell(NodeGone("brief"))
    device_room = device_room_of(world, outcomes)
    rows = np.arange(len(world.cluster.nodes))
    assert (world.cluster.device_views.of_row[rows] >= 0).all()
    assert device_room.pods(pod_class.device_needs, rows).tolist() == [0, 0, 0]


def test_pools_whose_devices_nobody_asks_for_are_forgotten_with_their_slices():
    world = Nodes2()
    devices = world.cluster.devices
    for turn in range(5):
        world.tell(ObjectChanged(unlike("n0", turn)))
        given = Allocation((GivenDevice("r", DeviceId(DRIVER, "n0", "d0")),))
        world.tell(ObjectChanged(claim(f"c{turn}", allocation=given)))
        assert devices.stale_pools == {(DRIVER, "n0")}
        world.tell(ObjectGone("ResourceSlice", "", "n0-slice"))
        assert devices.stale_pools == set()
        world.tell(ObjectGone("ResourceClaim", TEAM, f"c{turn}"))
        assert devices.stale_pools == set()


def test_kinds_go_one_by_one_and_those_in_use_stay():
    kinds = DeviceKinds()
    codes = [kinds.code((number,)) for number in range(10)]
    kinds.code((0,))
    kinds.remember(1, 7, "seen")
    kinds.evict({codes[2]}, spare=3)
    left = [number for number in range(10) if number in kinds._values]
    assert left == [0, 2, 8, 9], "the one in use, and the three that were asked for last"
    assert kinds.remembered == 0
    assert kinds.code((2,)) == codes[2]
    again = {kinds.code((number,)) for number in range(20, 26)}
    assert again == {1, 3, 4, 5, 6, 7}, "numbers stay small"


@pytest.mark.parametrize(("spare", "kept"), [(2, False), (30, True)])
def test_kinds_that_somebody_looks_up_stay_valid(monkeypatch, spare, kept):
    monkeypatch.setattr(policy, "DEVICE_KINDS_SPARE_MIN", spare)
    world, outcomes = Nodes2(unlike("n0", 0)), Outcomes()
    pod_class, _ = world.ask(spec())
    device_room = device_room_of(world, outcomes)
    copy = device_room.copy()
    assert copy.take(pod_class.id, pod_class.device_needs, [0], ["n0"])
    mine, its = device_room.codes(ROWS)[0], copy.codes(ROWS)[0]
    kinds = world.cluster.device_views.kinds
    before = kinds[its].kind
    for turn in range(1, 20):
        world.tell(ObjectChanged(unlike("n0", turn)))
        device_room_of(world, outcomes)
    assert kinds[its].kind is before
    assert device_room.codes(ROWS)[0] == mine
    del device_room, copy
    for turn in range(20, 40):
        world.tell(ObjectChanged(unlike("n0", turn)))
        device_room_of(world, outcomes)
    assert (before in kinds._codes) is kept


def test_specs_are_known_again_for_a_while_after_the_last_claim_had_them(monkeypatch):
    monkeypatch.setattr(policy, "DEVICE_SPECS_SPARE_MAX", 3 * 2)
    devices = Nodes2().cluster.devices

    def number(which: int) -> int:
        devices.put_claim(claim("c", spec(request(name=f"r{which}"))))
        return devices.spec_number((TEAM, "c"))

    numbers = [number(which) for which in range(5)]  # the last one is in use
    assert [number(1), number(2), number(4)] == [numbers[1], numbers[2], numbers[4]]
    assert number(0) not in numbers
    assert len(devices._specs) == 4


def test_asks_go_one_by_one(monkeypatch):
    monkeypatch.setattr(policy, "DEVICE_ASKS_MAX", 3 * 2)
    world = Nodes2()
    ids = [world.ask(spec(request(name=f"r{n}")))[0].device_needs.id for n in range(3)]
    assert world.ask(spec(request(name="r0")))[0].device_needs.id == ids[0]
    world.ask(spec(request(name="new")))
    assert world.ask(spec(request(name="r0")))[0].device_needs.id == ids[0], "it was used since"
    assert len(world.cluster.device_needs._known) == 3
    assert world.ask(spec(request(name="r1")))[0].device_needs.id not in ids


@pytest.mark.parametrize(
    ("bound", "value"), [("DEVICE_OUTCOMES_ASKS_MAX", 2 * 2), ("DEVICE_OUTCOMES_MAX", 4)]
)
def test_outcomes_go_ask_by_ask(monkeypatch, bound, value):
    monkeypatch.setattr(policy, bound, value)
    world, outcomes = Nodes2(unlike("n0", 0)), Outcomes()
    asked = []
    for count in (1, 2, 1, 3):
        pod_class, _ = world.ask(spec(request(count=count)))
        device_room = device_room_of(world, outcomes)
        device_room.pods(pod_class.device_needs, ROWS)
        asked.append(device_room.outcomes(pod_class.device_needs))
    kinds = world.cluster.device_views.kinds
    assert asked[2] is asked[0]
    assert list(outcomes._by_needs.values()) == [asked[0], asked[3]]
    assert kinds.remembered == sum(len(one.remembered) for one in kinds._values.values()) == 4
    pod_class, _ = world.ask(spec())
    assert device_room_of(world, outcomes).outcomes(pod_class.device_needs) is asked[0]


def shared(driver: str) -> SharedTraits:
    return SharedTraits(DeviceTraits(driver))


def test_programs_and_answers_go_one_by_one(monkeypatch):
    monkeypatch.setattr(policy, "CEL_PROGRAMS_TEXT_MAX", 3 * len("true && 0 == 0"))
    expressions = Expressions()
    texts = [f"true && {n} == {n}" for n in range(4)]
    for text in (*texts[:3], texts[0], texts[3]):
        assert expressions.matches(text, shared("driver")) is True
    assert list(expressions._known) == [texts[2], texts[0], texts[3]]
    assert len(expressions) == 3
    monkeypatch.setattr(policy, "CEL_ANSWERS_MAX", 3)
    for number in range(5):
        assert expressions.matches(texts[3], shared(f"driver-{number}")) is True
    assert list(expressions._known) == [texts[3]]
    assert len(expressions) == len(expressions._known[texts[3]].answers) == 3


@pytest.mark.parametrize(("asked", "kept"), [(2, 2), (3, 3), (4, 3)])
def test_traits_keep_the_answers_given_last(monkeypatch, asked, kept):
    monkeypatch.setattr(policy, "CEL_ANSWERS_PER_TRAITS_MAX", 3)
    expressions, traits = Expressions(), shared("driver")
    for _ in range(2):
        for number in range(asked):
            assert expressions.matches(f"{number} == 1", traits) is (number == 1)
    assert len(traits.answers) == kept


def test_programs_of_different_schedulers_do_not_answer_for_one_another():
    traits = shared("driver")
    assert Expressions().matches("true", traits) is True
    assert Expressions().matches("false", traits) is False


def test_a_pod_that_is_not_placed_after_all_is_found_by_its_uid():
    w = gpu_world(4)
    gang(w, "a", 2)
    gang(w, "b", 2)
    plan = w.decide()
    devices = w.cluster.devices
    assumed = devices.assumed
    assert len(assumed._of_claim) == len(assumed._of_pod) == 4
    devices.forget("uid-a-0")
    assert sorted(assumed._of_pod) == ["uid-a-1", "uid-b-0", "uid-b-1"]
    written(w, plan)
    assert len(assumed._of_claim) == len(assumed._of_pod) == 3, "until the binds have outcomes"
    w.settle(plan)
    assert (assumed._of_claim, assumed._of_pod) == ({}, {})
    w.observe(ObjectChanged(gpu_class(name="again")))
    devices.remove_claim((TEAM, "a-0-gpu"))
    devices.forget("uid-a-0")
