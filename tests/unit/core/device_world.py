"""Devices in few words: slices, classes and claims as values, for tables of tests."""

from quorate.core.model import DeviceClass, Requirement, ResourceClaim, ResourceSlice, SelectorTerm
from quorate.core.model.devices import (
    Attribute,
    Capacity,
    ClaimSpec,
    CounterUse,
    Device,
    DeviceChoice,
    DeviceConstraint,
    DeviceRequest,
    DeviceTraits,
    Nodes,
)

DRIVER = "gpu.example.com"
TEAM = "team"


def attribute(name: str, value) -> Attribute:
    """A value that looks like a version is one."""
    kind = {bool: "bool", int: "int"}.get(type(value), "string")
    if isinstance(value, str) and value[:1].isdigit():
        kind = "version"
    return Attribute(name, kind, value)


def device(name, *, nodes=None, memory=None, driver=DRIVER, uses=None, attributes=None, **more):
    """A device with attributes; ``uses`` are counters of the set "set"."""
    capacity = (Capacity("memory", memory),) if isinstance(memory, str) else ()
    if isinstance(memory, Capacity):
        capacity = (memory,)
    counters = (CounterUse("set", tuple(sorted(uses.items()))),) if uses else ()
    found = tuple(attribute(key, value) for key, value in sorted((attributes or {}).items()))
    traits = DeviceTraits(driver, found, capacity, counters=counters, **more)
    return Device(name, traits, nodes)


def on(node: str, *devices, name="", generation=1, slices=1, pool="", driver=DRIVER, counters=None):
    """A slice of the node's own pool; ``counters`` are those of the set "set"."""
    return ResourceSlice(
        name=name or f"{node}-slice",
        driver=driver,
        pool=pool or node,
        generation=generation,
        slices=slices,
        nodes=Nodes(node),
        devices=devices,
        counters=(CounterUse("set", tuple(sorted(counters.items()))),) if counters else (),
    )


def reached_by(nodes: Nodes, *devices, name="shared", driver=DRIVER):
    """A slice of a pool that several nodes see."""
    return ResourceSlice(
        name=name, driver=driver, pool=name, generation=1, slices=1, nodes=nodes, devices=devices
    )


def zone(value: str) -> Nodes:
    """Nodes of a zone."""
    return Nodes(terms=(SelectorTerm((Requirement("zone", "In", (value,)),)),))


def choice(*selectors, name="r", cls="gpu", count=1, **more) -> DeviceChoice:
    return DeviceChoice(name, cls, selectors, count, **more)


def request(*selectors, name="r", **more) -> DeviceRequest:
    return DeviceRequest(name, (choice(*selectors, name=name, **more),))


def first_of(*choices: DeviceChoice, name="r") -> DeviceRequest:
    return DeviceRequest(name, choices, is_list=True)


def spec(*requests: DeviceRequest, match=(), distinct=()) -> ClaimSpec:
    constraints = [DeviceConstraint((), match=one) for one in match]
    constraints += [DeviceConstraint((), distinct=one) for one in distinct]
    return ClaimSpec(requests or (request(),), tuple(constraints))


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
