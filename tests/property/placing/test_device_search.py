"""The search for devices: what trying everything finds."""

import random

from quorate.core.model import Taint, Toleration, policy
from quorate.core.model.changes import ObjectChanged
from quorate.core.model.devices import PodClaim
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.search import ChosenDevices, DeviceSearch, free_for_one_request
from tests.property.plain_allocator import Plain
from tests.property.seeds import SEED, times
from tests.unit.core.device_world import (
    DRIVER,
    Nodes2,
    choice,
    claim,
    device,
    first_of,
    gpu_class,
    on,
    request,
    seen,
    spec,
)
from tests.unit.core.world import World, binds_of


def random_device(chance, name):
    more = {"attributes": {"model": chance.choice("aab")}}
    if chance.random() < 0.7:
        more["attributes"]["rack"] = chance.choice([1, 2])
    if chance.random() < 0.2:
        more["taints"] = (Taint("bad", "NoSchedule"),)
    if chance.random() < 0.1:
        more["closed"] = "consumesCounters"
    return device(name, **more)


def random_pool(chance, name):
    devices = [random_device(chance, f"d{i}") for i in range(chance.randint(1, 6))]
    if chance.random() < 0.03:
        devices.append(devices[0])  # the pool is invalid
    slices = 1 + (chance.random() < 0.03)  # or one is missing
    return on("n0", *devices, name=name, pool=name, slices=slices)


def random_choice(chance, name):
    selectors = []
    if chance.random() < 0.4:
        selectors.append(f'device.attributes["{DRIVER}"].model == "{chance.choice("ab")}"')
    if chance.random() < 0.1:
        selectors.append(f'device.attributes["{DRIVER}"].rack == 1')  # broken without a rack
    more = {"count": chance.choice([1, 1, 1, 2, 3, None])}
    if chance.random() < 0.5:
        more["tolerations"] = (Toleration("bad", "Exists"),)
    return selectors, {"name": name, **more}


def random_request(chance, name):
    if chance.random() < 0.3:
        names = [f"{name}{i}" for i in range(chance.randint(1, 3))]
        choices = [random_choice(chance, one) for one in names]
        return first_of(*(choice(*selectors, **more) for selectors, more in choices), name=name)
    selectors, more = random_choice(chance, name)
    return request(*selectors, **more)


def random_search(chance):
    """Return the claims and a kind of node: what a search begins with."""
    pools = [random_pool(chance, f"p{i}") for i in range(chance.randint(1, 2))]
    world = Nodes2(*pools, gpu_class())
    specs = [
        spec(*(random_request(chance, f"r{i}") for i in range(chance.randint(1, 3))))
        for _ in range(chance.randint(1, 3))
    ]
    pod_class, room = world.ask(*specs)
    device_room, needs = room.device_room, pod_class.device_needs
    found = DeviceSearch(*seen(device_room, needs)).run()
    if isinstance(found, ChosenDevices) and chance.random() < 0.3:  # part of it is in use
        device_room.take(pod_class.id, needs, [0], ["n0"])
    return seen(device_room, needs)


def worlds(count):
    for number in range(times(count)):
        yield f"QUORATE_SEED={SEED}, world {number}", random.Random(f"{SEED}/{number}")


def test_the_first_solution_is_that_of_trying_everything(monkeypatch):
    kinds = {ChosenDevices: 0, Broken: 0, type(None): 0}
    for said, chance in worlds(1_500):
        monkeypatch.setattr(policy, "DEVICES_PER_CLAIM_MAX", chance.choice([2, 3, 4, 32]))
        claims, kind = random_search(chance)
        found = DeviceSearch(claims, kind).run()
        expected = Plain(claims, kind).run()
        if _is_cut_short(found) or _is_cut_short(expected):
            continue  # trying everything may take minutes
        assert found == expected, said
        kinds[type(expected)] += 1
        number = free_for_one_request(claims, kind)
        assert number < 0 or (number > 0) == isinstance(found, ChosenDevices), said
    assert min(kinds.values()) > 10, (SEED, kinds)


def _is_cut_short(answer):
    return isinstance(answer, Broken) and "cut short" in answer


CLASSES = {
    "gpu": (),
    "again": ('device.driver == "gpu.example.com"',),
    "big": ('device.attributes["gpu.example.com"].kind == "big"',),
    "small": ('device.attributes["gpu.example.com"].kind == "small"',),
}


def claims_of_classes(chance):
    """A claim whose requests are of several classes that match the same devices."""

    def of(name):
        return choice(name=name, cls=chance.choice(list(CLASSES)), count=chance.choice([1, 1, 2]))

    if chance.random() < 0.3:
        return spec(first_of(of("a"), of("b")))
    names = [f"r{i}" for i in range(chance.choice([1, 1, 2]))]
    return spec(*(request(name=one, cls=chance.choice(list(CLASSES))) for one in names))


def test_no_plan_is_refused_where_claims_of_several_classes_meet_on_one_device():
    """Each gang fits or waits: the check refuses none, and planning meets no defect."""
    started = 0
    for said, chance in worlds(600):
        w = World()
        w.observe(*(ObjectChanged(gpu_class(*cel, name=name)) for name, cel in CLASSES.items()))
        for node in ("n0", "n1", "n2"):
            w.node(node, cpu=chance.choice([2, 8]))
            kinds = [chance.choice(["big", "small"]) for _ in range(chance.randint(0, 4))]
            found = [device(f"d{i}", attributes={"kind": kind}) for i, kind in enumerate(kinds)]
            w.observe(ObjectChanged(on(node, *found, pool=chance.choice([node, node, "both"]))))
        w.observe(ObjectChanged(claim("shared", claims_of_classes(chance))))
        for number in range(4):
            count = chance.randint(1, 3)
            which = w.object(f"g{number}", count)
            for pod in (f"g{number}-{index}" for index in range(count)):
                entries = [PodClaim("own", f"{pod}-own", own=True)]
                own = claim(f"{pod}-own", claims_of_classes(chance), owner=f"uid-{pod}")
                w.observe(ObjectChanged(own))
                entries += [PodClaim("all", "shared", own=False)] * chance.choice([0, 0, 1, 2])
                w.pod(pod, which, device_claims=tuple(entries))
            plan, problems = w.scheduler.verified(w.scheduler.decide(w.now_s))
            assert (problems, w.scheduler.incidents()) == ([], []), said
            started += len(plan.gangs)
            w.settle(plan)
            given = [
                one.device
                for held in w.cluster.devices.claims.values()
                for one in (held.allocation.devices if held.allocation else ())
            ]
            assert len(given) == len(set(given)), said
            assert len(binds_of(plan)) == sum(len(gang.binds) for gang in plan.gangs)
    assert started > 20, SEED
