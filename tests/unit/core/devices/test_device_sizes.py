"""Sizes follow need: what came and went leaves nothing behind, and what is held stays valid."""

import gc

import numpy as np
import pytest

from quorate.core.cluster.devices.views import SharedTraits
from quorate.core.model import Allocation, DeviceId, Node, policy
from quorate.core.model.changes import NodeChanged, NodeGone, ObjectChanged, ObjectGone
from quorate.core.model.devices import DeviceTraits, GivenDevice
from quorate.core.room.devices.cel.expressions import Expressions
from quorate.core.room.devices.device_room import DeviceRoom
from quorate.core.room.devices.outcomes import Outcomes
from tests.unit.core.device_world import (
    DRIVER,
    Nodes2,
    claim,
    device,
    gang,
    gpu_class,
    gpu_world,
    on,
    request,
    spec,
    written,
)
from tests.unit.core.world import TEAM

ROWS = np.arange(2)


def device_room_of(world: Nodes2, outcomes: Outcomes) -> DeviceRoom:
    cluster = world.cluster
    return DeviceRoom(cluster.devices, cluster.device_views, outcomes)


def unlike(node: str, number: int):
    """A slice of devices that no other node has, and never had."""
    uuids = ({"uuid": f"u{number}-{i}"} for i in range(2))
    return on(node, *(device(f"d{i}", attributes=one) for i, one in enumerate(uuids)), pool=node)


def test_slices_and_claims_that_came_and_went_leave_nothing(monkeypatch):
    monkeypatch.setattr(policy, "DEVICE_KINDS_SPARE_MIN", 10)
    world, outcomes = Nodes2(gpu_class()), Outcomes()
    devices, views = world.cluster.devices, world.cluster.device_views
    for turn in range(300):
        world.tell(ObjectChanged(unlike("n0", turn)))
        what = spec(request(f'device.attributes["{DRIVER}"].uuid != "{turn % 3}"', count=2))
        pod_class, _ = world.ask(what)
        device_room = device_room_of(world, outcomes)
        assert device_room.pods(pod_class.device_needs, ROWS).tolist() == [1, 0]
        device_room.take(pod_class.id, pod_class.device_needs, [0], ["n0"])
    del device_room
    gc.collect()
    assert len(views.kinds) <= 10 + 2 * 2 + 2
    assert len(views._traits) < 80
    assert len(outcomes) <= 3 * len(views.kinds)
    assert world.cluster.device_needs._made < 10, "equal specs are known again"
    world.tell(ObjectGone("ResourceSlice", "", "n0-slice"))
    world.tell(ObjectGone("ResourceClaim", TEAM, "c0"))
    device_room_of(world, outcomes)
    assert (devices.by_pool, views._pools, views._of_node) == ({}, {}, {})


def test_pools_are_those_of_a_fresh_start(monkeypatch):
    """A row is another node's now and then, and none shows another's devices."""
    monkeypatch.setattr(policy, "DEVICE_KINDS_SPARE_MIN", 1)
    world, outcomes = Nodes2(), Outcomes()
    allocatable = (("cpu", 8000), ("pods", 110))
    for turn in range(60):
        name = f"m{turn % 7}"
        if turn % 3 == 0:
            world.tell(NodeGone(f"m{(turn + 3) % 7}"))
        world.tell(NodeChanged(Node(name, allocatable)))
        if turn % 4:
            world.tell(ObjectChanged(unlike(name, turn)))
        else:
            world.tell(ObjectGone("ResourceSlice", "", f"{name}-slice"))
        pod_class, _ = world.ask(spec())
        rows = np.array(sorted(world.cluster.nodes.rows.values()))
        found = device_room_of(world, outcomes).pods(pod_class.device_needs, rows).tolist()
        world.cluster.devices.all_stale = True
        again = device_room_of(world, outcomes).pods(pod_class.device_needs, rows).tolist()
        assert again == found, turn


@pytest.mark.parametrize(("count", "all_stale"), [(4, False), (5, False), (6, True)])
def test_many_stale_pools_are_remembered_as_all(monkeypatch, count, all_stale):
    monkeypatch.setattr(policy, "DEVICE_STALE_POOLS_MAX", 5)
    world = Nodes2()
    devices = world.cluster.devices
    for number in range(count):
        world.tell(ObjectChanged(unlike(f"x{number}", number)))
    assert len(devices.stale_pools) <= 5
    assert devices.all_stale is all_stale


def test_a_node_that_came_and_went_unseen_has_no_devices():
    world, outcomes = Nodes2(), Outcomes()
    pod_class, _ = world.ask(spec())
    device_room_of(world, outcomes)
    world.tell(NodeChanged(Node("brief", (("cpu", 8000), ("pods", 110)))))
    world.tell(NodeGone("brief"))
    rows = np.arange(len(world.cluster.nodes))
    assert device_room_of(world, outcomes).pods(pod_class.device_needs, rows).tolist() == [0, 0, 0]


def test_claims_of_pools_that_nobody_knows_are_not_remembered():
    world = Nodes2()
    given = Allocation((GivenDevice("r", DeviceId(DRIVER, "n9", "d0")),))
    world.tell(ObjectChanged(claim("c", allocation=given)))
    assert world.cluster.devices.stale_pools == {}


@pytest.mark.parametrize("spare", [2, 30])
def test_kinds_that_somebody_looks_up_stay_valid(monkeypatch, spare):
    monkeypatch.setattr(policy, "DEVICE_KINDS_SPARE_MIN", spare)
    world, outcomes = Nodes2(unlike("n0", 0)), Outcomes()
    pod_class, _ = world.ask(spec())
    device_room = device_room_of(world, outcomes)
    copy = device_room.copy()
    copy.take(pod_class.id, pod_class.device_needs, [0], ["n0"])
    for turn in range(1, 20):
        world.tell(ObjectChanged(unlike("n0", turn)))
        device_room_of(world, outcomes)
    assert device_room.pods(pod_class.device_needs, ROWS).tolist() == [2, 0]
    assert copy.pods(pod_class.device_needs, ROWS).tolist() == [1, 0]


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
    ("bound", "value"), [("DEVICE_OUTCOMES_ASKS_MAX", 2 * 2), ("DEVICE_OUTCOMES_MAX", 2)]
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
    assert asked[2] is asked[0]
    assert list(outcomes._by_needs.values()) == [asked[0], asked[3]]
    assert len(outcomes) == 4
    pod_class, _ = world.ask(spec())
    assert device_room_of(world, outcomes).outcomes(pod_class.device_needs) is asked[0]


def shared(driver: str) -> SharedTraits:
    return SharedTraits(DeviceTraits(driver))


def test_programs_and_answers_go_one_by_one(monkeypatch):
    monkeypatch.setattr(policy, "CEL_PROGRAMS_TEXT_MAX", 3 * (100 + len("true && 0 == 0")))
    expressions = Expressions()
    texts = [f"true && {n} == {n}" for n in range(4)]
    for text in (*texts[:3], texts[0], texts[3]):
        assert expressions.matches(text, shared("driver")) is True
    assert list(expressions._known) == [texts[2], texts[0], texts[3]]
    monkeypatch.setattr(policy, "CEL_ANSWERS_MAX", 3)
    for number in range(5):
        assert expressions.matches(texts[3], shared(f"driver-{number}")) is True
    known = expressions._known.get(texts[3])
    assert known is not None
    assert len(known.answers) == 3


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
