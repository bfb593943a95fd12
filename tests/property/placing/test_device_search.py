"""The search for devices: what trying everything finds, in one go or in many turns."""

import random

import numpy as np

from quorate.core.model import Taint, Toleration, policy
from quorate.core.model.devices import Capacity
from quorate.core.model.steps import OutOfStepsError, Steps
from quorate.core.room.devices.allocator import ChosenDevices, DeviceSearch
from quorate.core.room.devices.cel.programs import Broken
from tests.property.plain_allocator import Plain
from tests.property.seeds import SEED, times
from tests.unit.core.device_world import (
    DRIVER,
    Nodes2,
    choice,
    device,
    first_of,
    gpu_class,
    on,
    request,
    spec,
)

MODEL, RACK = f"{DRIVER}/model", f"{DRIVER}/rack"


def random_device(chance, name, uses):
    more = {"attributes": {"model": chance.choice("aab")}}
    if chance.random() < 0.7:
        more["attributes"]["rack"] = chance.choice([1, 2])
    if chance.random() < 0.2:
        more["taints"] = (Taint("bad", "NoSchedule"),)
    if chance.random() < 0.3:
        more["shareable"] = True
        more["memory"] = Capacity("memory", "40Gi", default="10Gi", smallest="10Gi", step="10Gi")
    if uses and chance.random() < 0.6:
        more["uses"] = {"m": chance.choice(["10Gi", "20Gi"])}
    return device(name, **more)


def random_pool(chance, name):
    has_counters = chance.random() < 0.3
    count = chance.randint(1, 5)
    devices = [random_device(chance, f"d{i}", has_counters) for i in range(count)]
    if chance.random() < 0.03:
        devices.append(devices[0])  # the pool is invalid
    slices = 1 + has_counters + (chance.random() < 0.03)  # or one is missing
    yield on("n0", *devices, name=name, pool=name, slices=slices)
    if has_counters:
        left = {"m": chance.choice(["20Gi", "40Gi", "60Gi"])}
        yield on("n0", name=f"{name}-counters", pool=name, slices=slices, counters=left)


def random_choice(chance, name):
    selectors = []
    if chance.random() < 0.4:
        selectors.append(f'device.attributes["{DRIVER}"].model == "{chance.choice("ab")}"')
    if chance.random() < 0.1:
        selectors.append(f'device.attributes["{DRIVER}"].rack == 1')  # broken without a rack
    more = {"count": chance.choice([1, 1, 1, 2, 3, None])}
    if chance.random() < 0.1:
        more["admin"] = True
    if chance.random() < 0.5:
        more["tolerations"] = (Toleration("bad", "Exists"),)
    if chance.random() < 0.2:
        more["capacity"] = (("memory", "15Gi"),)
    return selectors, {"name": name, **more}


def random_request(chance, name):
    if chance.random() < 0.3:
        names = [f"{name}{i}" for i in range(chance.randint(1, 3))]
        choices = [random_choice(chance, one) for one in names]
        return first_of(*(choice(*selectors, **more) for selectors, more in choices), name=name)
    selectors, more = random_choice(chance, name)
    return request(*selectors, **more)


def random_search(chance):
    """Return the claims, a kind of node, and the numbers of choices: what a search begins with."""
    pools = [one for i in range(chance.randint(1, 2)) for one in random_pool(chance, f"p{i}")]
    world = Nodes2(*pools, gpu_class())
    specs = [
        spec(
            *(random_request(chance, f"r{i}") for i in range(chance.randint(1, 3))),
            match=[chance.choice([MODEL, RACK])] if chance.random() < 0.3 else (),
            distinct=[chance.choice([MODEL, RACK])] if chance.random() < 0.2 else (),
        )
        for _ in range(chance.randint(1, 3))
    ]
    pod_class, room = world.ask(*specs)
    device_room = room.device_room
    if chance.random() < 0.3:  # part of it is in use
        some = pod_class.device_needs.unallocated[0]
        device_room.take(pod_class.id, pod_class.device_needs, [0], ["n0"])
        assert some is pod_class.device_needs.unallocated[0]
    asked = device_room.outcomes(pod_class.device_needs)
    [code] = device_room.codes(np.array([0])).tolist()
    kind = asked.seen_kind(code)
    return pod_class.device_needs.unallocated, kind, asked._looks.choices


def worlds(count):
    for number in range(times(count)):
        yield f"QUORATE_SEED={SEED}, world {number}", random.Random(f"{SEED}/{number}")


def test_the_first_solution_is_that_of_trying_everything(monkeypatch):
    kinds = {ChosenDevices: 0, Broken: 0, type(None): 0}
    for said, chance in worlds(1_500):
        monkeypatch.setattr(policy, "DEVICES_PER_CLAIM_MAX", chance.choice([2, 3, 4, 32]))
        claims, kind, numbers = random_search(chance)
        found = DeviceSearch(claims, kind, numbers).run()
        if _is_cut_short(found):
            continue  # trying everything may take minutes
        expected = Plain(claims, kind, numbers).run()
        if _is_cut_short(expected):
            continue  # it tries more than the search has to
        assert found == expected, said
        kinds[type(expected)] += 1
    assert min(kinds.values()) > 10, (SEED, kinds)


def _is_cut_short(answer):
    return isinstance(answer, Broken) and "cut short" in answer


def test_of_two_alike_the_second_may_meet_an_error_that_the_first_does_not():
    """d0 is one of "all" itself; with d2 in its place, the rack of d1 is met, which is an error."""
    racks = enumerate((1, 2, 1))
    pool = on("n0", *(device(f"d{i}", attributes={"rack": rack}) for i, rack in racks))
    world = Nodes2(pool, gpu_class())
    one = request(f'device.attributes["{DRIVER}"].rack == 1', name="r0", count=1)
    pod_class, room = world.ask(spec(one, request(name="r1", count=None, admin=True), match=[RACK]))
    asked = room.device_room.outcomes(pod_class.device_needs)
    [code] = room.device_room.codes(np.array([0])).tolist()
    search = pod_class.device_needs.unallocated, asked.seen_kind(code), asked._looks.choices
    found = DeviceSearch(*search).run()
    assert isinstance(found, Broken)
    assert found == Plain(*search).run()


def test_a_search_in_slices_of_steps_finds_what_one_go_finds(monkeypatch):
    monkeypatch.setattr(policy, "DEVICE_LOOKS_AT_ONCE_MAX", 1)
    interrupted = 0
    for said, chance in worlds(300):
        claims, kind, numbers = random_search(chance)
        whole = DeviceSearch(claims, kind, numbers)
        expected = whole.run()
        search = DeviceSearch(claims, kind, numbers)
        turns = 1
        while True:
            try:
                found = search.run(Steps(chance.choice([1, 2, 5])))
                break
            except OutOfStepsError:
                turns += 1
        assert found == expected, said
        assert search._looks.looks == whole._looks.looks, said
        interrupted += turns > 1
    assert interrupted > 20, SEED
