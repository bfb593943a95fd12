"""Gangs whose pods claim volumes and devices: both are chosen at once, volumes are bound first."""

import pytest

from quorate.core.check.verify import verify_gang
from quorate.core.model import ClaimUse
from quorate.core.model.changes import ObjectChanged
from quorate.core.model.devices import PodClaim
from quorate.core.turn.cycle import members_of
from tests.invariants import check_all
from tests.unit.core.device_world import claim, device, gpu_class, on
from tests.unit.core.storage_world import StorageWorld, nodes_of, planned, prepared
from tests.unit.core.world import binds_of


@pytest.fixture
def world():
    made = StorageWorld()
    made.observe(ObjectChanged(gpu_class()))
    yield made
    assert check_all(made.scheduler, made.now_s) == []


def gpu_node(world, name, devices):
    world.labelled_node(name)
    world.observe(ObjectChanged(on(name, *(device(f"d{i}") for i in range(devices)))))


def job(world, name, count):
    which = world.object(name, count)
    for index in range(count):
        pod = f"{name}-{index}"
        world.claim(f"data-{pod}")
        world.observe(ObjectChanged(claim(f"gpu-{pod}", owner=f"uid-{pod}")))
        world.pod(
            pod,
            which,
            claims=(ClaimUse(f"data-{pod}"),),
            device_claims=(PodClaim("gpu", f"gpu-{pod}", own=True),),
        )
    return which


def devices_of(plan):
    return sorted(
        str(one.device)
        for bind in binds_of(plan)
        for give in bind.gives
        for one in (give.allocation.devices if give.allocation else ())
    )


def test_alike_pods_are_one_class_and_those_without_devices_another(world):
    gpu_node(world, "n0", 4)
    which = job(world, "g", 3)
    world.claim("data-g-3")
    world.pod("g-3", which, claims=(ClaimUse("data-g-3"),))
    members = members_of(world.cluster.gangs[which], world.cluster)
    assert sorted(len(alike) for alike in members.values()) == [1, 3]


def test_devices_are_given_when_all_volumes_are_bound_and_not_before(world):
    gpu_node(world, "n0", 2)
    gpu_node(world, "n1", 1)
    job(world, "g", 3)
    first = world.decide()
    assert (len(prepared(first)), first.gangs) == (3, ())
    assert sorted(planned(first).values()) == ["n0", "n0", "n1"]
    [gang] = first.preparing
    assert verify_gang(gang, world.cluster) == []
    world.written(first)
    world.bound(first)
    last = world.decide(1)
    assert nodes_of(last) == planned(first)
    assert devices_of(last) == [f"gpu.example.com/{one}" for one in ("n0/d0", "n0/d1", "n1/d0")]


def test_devices_chosen_for_a_gang_that_waits_for_its_volumes_are_not_given_to_others(world):
    gpu_node(world, "n0", 2)
    job(world, "a", 2)
    first = world.decide()
    job(world, "b", 1)
    assert world.decide(1).preparing == ()
    world.written(first)
    world.decide(1)
    world.give_up("data-a-0")
    last = world.decide(1)
    assert len(last.undo) == 1
    assert planned(last) == {"b-0": "n0"}


def test_a_gang_that_avoids_a_node_gets_the_devices_that_were_chosen_elsewhere(world):
    gpu_node(world, "n0", 2)
    gpu_node(world, "n1", 2)
    which = job(world, "g", 2)
    world.cluster.gangs[which].memory.avoid = {"n0": world.now_s + 60.0}
    first = world.decide()
    assert set(planned(first).values()) == {"n1"}
    world.bound(first)
    last = world.decide(1)
    assert devices_of(last) == [f"gpu.example.com/n1/d{one}" for one in (0, 1)]
