"""Cases of ``core_bench``: gangs whose pods have a claim each, of a volume or of a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from statistics import median

from bench.core.measuring import Case, Row, Stopwatch, freeze
from quorate.core.model import (
    ClaimUse,
    DeviceClass,
    GangKey,
    GangSpec,
    Membership,
    Node,
    Pod,
    PodSpec,
    Requirement,
    ResourceClaim,
    ResourceSlice,
    SelectorTerm,
)
from quorate.core.model.changes import Change, GangChanged, NodeChanged, ObjectChanged, PodChanged
from quorate.core.model.devices import (
    Attribute,
    ClaimSpec,
    Device,
    DeviceChoice,
    DeviceRequest,
    DeviceTraits,
    PodClaim,
)
from quorate.core.model.storage import (
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    Claim,
    StorageClass,
    Volume,
)

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_KINDS = ("a static volume of a zone each", "a device each, by ResourceClaim")
_SPEC = PodSpec(requests=(("cpu", 1000), ("memory", 2**30)))
_GPU = ClaimSpec((DeviceRequest("gpu", (DeviceChoice("gpu", "gpu"),)),))


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the cases; ``quick`` ones take seconds and mean little."""
    nodes, pods = (64, 20) if quick else (5_000, 1_000)
    return (
        Case(
            "claims",
            tuple(Row(f"gang of {pods:,} on {nodes:,} nodes, {kind}", "ms", 50) for kind in _KINDS),
            partial(_measured, nodes=nodes, pods=pods),
        ),
        Case(
            "claims-tenant",
            (
                Row("a neighbour's gang of 8 with a device each, alone (median)", "ms"),
                Row("beside a tenant's 200 slices of 128 devices, many selectors", "ms"),
                Row("the second in proportion to the first", "x", 2),
            ),
            partial(_beside_a_tenant, slices=4 if quick else 200),
            is_ordinary=False,  # a gang that first meets so many devices looks at each once
        ),
    )


def _beside_a_tenant(stopwatch: Stopwatch, *, slices: int) -> Iterator[float]:
    """Start gangs one by one, without and with a tenant whose claims take long to judge.

    The first few meet the tenant's gangs before these have had their first try: so it is medians.
    """
    gangs, size, took_ms = min(25, slices - 1), 8, []  # each node has devices for one
    for devices in (0, 128):
        core = stopwatch.core()
        core.observe(NodeChanged(_node(index)) for index in range(slices))
        core.observe(ObjectChanged(one) for one in _devices(slices, 0))
        core.observe([ObjectChanged(DeviceClass("gpu", ('device.driver == "gpu.example"',)))])
        core.observe(ObjectChanged(one) for one in _tenant(slices if devices else 0, devices))
        for number in range(32 if devices else 0):
            core.observe(_gang_with_claims(f"tenant-{number}", 4, _picky(number)))
        freeze()
        core.observe(_gang_with_claims("first", size, _GPU))
        core.place(size)  # the library of selectors is loaded
        each_s = []
        for number in range(gangs):
            core.observe(_gang_with_claims(f"gang-{number}", size, _GPU))
            each_s.append(core.place(size)[1])
        took_ms.append(1e3 * median(each_s))
    yield from (*took_ms, took_ms[1] / took_ms[0])


def _tenant(slices: int, devices: int) -> Iterable[DeviceClass | ResourceSlice]:
    """Yield slices of devices with 32 attributes each, of which no two are alike."""
    yield DeviceClass("net")
    for index in range(slices):
        found = tuple(
            Device(
                f"net-{number}",
                DeviceTraits(
                    "net.example",
                    tuple(Attribute(f"a{n}", "int", index * devices + number) for n in range(32)),
                ),
            )
            for number in range(devices)
        )
        yield ResourceSlice(
            f"net-{index}", "net.example", f"net-{index}", 1, 1, f"node-{index}", found
        )


def _picky(number: int) -> ClaimSpec:
    """Return a claim of 32 requests, each with a selector that no device matches."""
    requests = []
    for n in range(32):
        selector = f'device.attributes["net.example"].a{n} < -{number}'
        requests.append(DeviceRequest(f"r{n}", (DeviceChoice(f"r{n}", "net", (selector,)),)))
    return ClaimSpec(tuple(requests))


def _gang_with_claims(name: str, size: int, spec: ClaimSpec) -> Iterable[Change]:
    """Return a gang of pods with a claim each."""
    key = GangKey("default", "x-k8s", name)
    found: list[Change] = [GangChanged(GangSpec(key, size))]
    for index in range(size):
        pod, claim = f"{name}-{index}", f"{name}-{index}-claim"
        found.append(ObjectChanged(ResourceClaim("default", claim, claim, "1", spec, pod)))
        member = Pod(
            pod,
            "default",
            pod,
            "quorate",
            _SPEC,
            membership=Membership(key),
            device_claims=(PodClaim("gpu", claim, own=True),),
        )
        found.append(PodChanged(member))
    return found


def _measured(stopwatch: Stopwatch, *, nodes: int, pods: int) -> Iterator[float]:
    """Decide on a gang of which each pod has a claim of its own."""
    key = GangKey("default", "x-k8s", "gang")
    for kind in _KINDS:
        core = stopwatch.core()
        core.observe(NodeChanged(_node(index)) for index in range(nodes))
        found = _volumes(pods) if kind == _KINDS[0] else _devices(nodes, pods)
        core.observe(ObjectChanged(one) for one in found)
        core.observe([GangChanged(GangSpec(key, pods))])
        core.observe(PodChanged(_pod(kind, index, key)) for index in range(pods))
        freeze()
        yield 1e3 * core.place(pods)[1]


def _node(index: int) -> Node:
    return Node(
        f"node-{index}",
        allocatable=(("cpu", 32_000), ("memory", 2**37), ("pods", 110)),
        labels=((HOST, f"node-{index}"), (ZONE, f"z{index % 8}")),
    )


def _pod(kind: str, index: int, key: GangKey) -> Pod:
    name = f"pod-{index}"
    claims = (ClaimUse(f"claim-{index}"),) if kind == _KINDS[0] else ()
    device_claims = () if claims else (PodClaim("gpu", f"claim-{index}", own=True),)
    return Pod(
        name,
        "default",
        name,
        "quorate",
        _SPEC,
        membership=Membership(key),
        claims=claims,
        device_claims=device_claims,
    )


def _volumes(pods: int) -> Iterable[Claim | StorageClass | Volume]:
    yield StorageClass("local", NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER)
    modes = ("ReadWriteOnce",)
    for index in range(pods):
        at = SelectorTerm(expressions=(Requirement(ZONE, "In", (f"z{index % 8}",)),))
        yield Volume(
            f"pv-{index}",
            version="1",
            storage_class="local",
            capacity=2**30,
            access_modes=modes,
            phase="Available",
            affinity=(at,),
            driver="csi.example",
            handle=f"pv-{index}",
        )
        name = f"claim-{index}"
        yield Claim("default", name, name, storage_class="local", size=2**30, access_modes=modes)


def _devices(nodes: int, pods: int) -> Iterable[DeviceClass | ResourceClaim | ResourceSlice]:
    yield DeviceClass("gpu")
    eight = tuple(Device(f"gpu-{number}", DeviceTraits("gpu.example")) for number in range(8))
    for index in range(nodes):
        name = f"node-{index}"
        yield ResourceSlice(name, "gpu.example", name, 1, 1, name, eight)
    for index in range(pods):
        owner = f"pod-{index}"
        yield ResourceClaim("default", f"claim-{index}", f"uid-{index}", "1", _GPU, owner)
