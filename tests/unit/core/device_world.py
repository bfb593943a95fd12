"""Devices in few words: slices, classes and claims as values, and worlds that have them."""

import numpy as np
from msgspec.structs import replace

from quorate.core.cluster.cluster import Cluster
from quorate.core.model import (
    DeviceClass,
    Node,
    Pod,
    PodSpec,
    ResourceClaim,
    ResourceSlice,
)
from quorate.core.model.changes import NodeChanged, ObjectChanged, PodChanged
from quorate.core.model.devices import (
    Attribute,
    Capacity,
    ClaimSpec,
    Device,
    DeviceChoice,
    DeviceRequest,
    DeviceTraits,
    PodClaim,
)
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import pod_slots
from tests.unit.core.world import TEAM, World, binds_of

DRIVER = "gpu.example.com"


def attribute(name: str, value) -> Attribute:
    """A value that looks like a version is one."""
    kind = {bool: "bool", int: "int"}.get(type(value), "string")
    if isinstance(value, str) and value[:1].isdigit():
        kind = "version"
    return Attribute(name, kind, value)


def device(name, *, memory=None, driver=DRIVER, attributes=None, **more):
    """A device with attributes."""
    capacity = (Capacity("memory", memory),) if memory else ()
    found = tuple(attribute(key, value) for key, value in sorted((attributes or {}).items()))
    return Device(name, DeviceTraits(driver, found, capacity, **more))


def on(node: str, *devices, name="", generation=1, slices=1, pool="", driver=DRIVER):
    """A slice of the node's own pool."""
    return ResourceSlice(
        name=name or f"{node}-slice",
        driver=driver,
        pool=pool or node,
        generation=generation,
        slices=slices,
        node=node,
        devices=devices,
    )


def choice(*selectors, name="r", cls="gpu", count=1, **more) -> DeviceChoice:
    return DeviceChoice(name, cls, selectors, count, **more)


def request(*selectors, name="r", **more) -> DeviceRequest:
    return DeviceRequest(name, (choice(*selectors, name=name, **more),))


def first_of(*choices: DeviceChoice, name="r") -> DeviceRequest:
    return DeviceRequest(name, choices, is_list=True)


def spec(*requests: DeviceRequest) -> ClaimSpec:
    return ClaimSpec(requests or (request(),))


def claim(name: str, what: ClaimSpec | None = None, *, owner="", version="1", **more):
    return ResourceClaim(
        namespace=TEAM,
        name=name,
        uid=f"claim-{name}",
        version=version,
        spec=what or spec(),
        owner_uid=owner,
        **more,
    )


def gpu_class(*selectors: str, name="gpu", **more) -> DeviceClass:
    return DeviceClass(name=name, selectors=selectors, **more)


class Nodes2:
    """A cluster with nodes n0 and n1 in zones a and b, and whatever objects a test names."""

    def __init__(self, *objects):
        self.cluster = Cluster(["quorate"])
        for name, where in (("n0", "a"), ("n1", "b")):
            allocatable = (("cpu", 8000), ("pods", 110))
            self.tell(NodeChanged(Node(name, allocatable, (("zone", where),))))
        for one in (gpu_class(), *objects):
            self.tell(ObjectChanged(one))

    def tell(self, change):
        self.cluster.apply(change)

    def ask(self, *specs):
        """Return the class of a pod with one claim for each spec, and a room."""
        pod_claims = []
        for index, what in enumerate(specs):
            self.tell(ObjectChanged(claim(f"c{index}", what, owner="uid")))
            pod_claims.append(PodClaim(f"c{index}", f"c{index}", own=True))
        pod = Pod("uid", TEAM, "p", "quorate", PodSpec(), device_claims=tuple(pod_claims))
        self.tell(PodChanged(pod))
        base = self.cluster.classes.of(PodSpec())
        ask = self.cluster.device_needs.of(pod)
        return self.cluster.classes.variant(base, frozenset(), device_needs=ask), self.room()

    def room(self):
        return Room(self.cluster.snapshot(), RuleCache())

    def given(self, *specs, node="n0"):
        """Return the devices of each claim on the node, None, or what is broken."""
        pod_class, room = self.ask(*specs)
        row = self.cluster.nodes.rows[node]
        _, [found] = room.device_room.for_one_pod(pod_class.device_needs, np.array([row]))
        if found is None or isinstance(found, Broken):
            return found
        room.device_room.take(pod_class.id, pod_class.device_needs, [row], [node])
        given = room.device_room.pop_allocations(pod_class.id, row)
        return [[one.device.name for one in allocation.devices] for _, allocation in given]

    def slots(self, what):
        """Return how many pods with such a claim each node takes."""
        pod_class, room = self.ask(what)
        rows = [self.cluster.nodes.rows[name] for name in ("n0", "n1")]
        return pod_slots(pod_class, room)[rows].tolist()


def seen(device_room, device_needs, row=0):
    """Return the claims without devices, and the row's kind of node as they see it."""
    outcomes = device_room.outcomes(device_needs)
    kind = outcomes._reduce(int(device_room._codes[row]), None).kind
    return device_needs.unallocated, kind


def many(count: int, **more):
    """A pool of node n0, in slices of a hundred devices."""
    each = [range(first, min(first + 100, count)) for first in range(0, count, 100)]
    return [
        on("n0", *(device(f"d{i}", **more) for i in some), name=f"s{n}", slices=len(each))
        for n, some in enumerate(each)
    ]


def gpu_world(*counts: int, of: DeviceClass | None = None) -> World:
    """One node for each count, with so many devices."""
    w = World()
    w.observe(ObjectChanged(of or gpu_class('device.driver == "gpu.example.com"')))
    for index, count in enumerate(counts):
        w.node(f"n{index}")
        w.observe(ObjectChanged(on(f"n{index}", *(device(f"d{i}") for i in range(count)))))
    return w


def gang(w: World, name: str, count: int, what=None):
    key = w.object(name, count)
    for index in range(count):
        pod = f"{name}-{index}"
        w.observe(ObjectChanged(claim(f"{pod}-gpu", what, owner=f"uid-{pod}")))
        w.pod(pod, key, device_claims=(PodClaim("gpu", f"{pod}-gpu", own=True),))
    return key


def given(plan) -> list[str]:
    return sorted(
        str(one.device)
        for bind in binds_of(plan)
        for give in bind.gives
        for one in (give.allocation.devices if give.allocation else ())
    )


def written(w: World, plan) -> None:
    """The API server has what the plan writes into claims, and the watch says so."""
    for bind in binds_of(plan):
        for give in bind.gives:
            before = w.cluster.devices.claims["team", give.claim]
            users = (*before.reserved_for, bind.uid)
            now = replace(before, version="2", reserved_for=users)
            if give.allocation is not None:
                now = replace(now, allocation=give.allocation)
            w.observe(ObjectChanged(now))
