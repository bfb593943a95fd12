"""Moves of devices: claims that pods bring, slices, classes, and the controller of claims."""

from __future__ import annotations

import msgspec

from quorate.core.model.devices import PodClaim
from tests.property.worlds.behind import claims
from tests.property.worlds.shapes import BACKED
from tests.unit.core import device_world as few_words

replace = msgspec.structs.replace
SELECTORS = ((), (), ("true",), ('device.attributes["gpu.example.com"].kind == "big"',))


def begin(world, chance):
    """What is there before any pod comes."""
    world.server.put(few_words.gpu_class())
    world.server.put(few_words.gpu_class(*SELECTORS[-1], name="big"))
    for node in world.server.nodes:
        put_slice(world, chance, node)


def with_claims(world, chance, pod):
    """Return the pod with claims of devices, which are there already or come later."""
    entries = []
    for index in range(chance.choice([1, 1, 2])):
        kind = chance.choice(["own", "own", "own", "shared", "missing", "none"])
        name = f"dev-{chance.randrange(3)}" if kind == "shared" else f"{pod.name}-dev-{index}"
        is_there = world.server.get("ResourceClaim", name, pod.namespace) is not None
        if kind in ("own", "shared") and not is_there:
            put_claim(world, chance, pod, name, own=kind == "own")
        named = {"none": "", "missing": chance.choice([None, name])}.get(kind, name)
        entries.append(PodClaim(f"c{index}", named, own=kind != "shared"))
    return replace(pod, device_claims=tuple(entries))


def put_claim(world, chance, pod, name, own):
    number = world.server.number()
    spec = chance.choice(
        [
            few_words.spec(),
            few_words.spec(),
            few_words.spec(few_words.request(count=2)),
            few_words.spec(few_words.request(*SELECTORS[-1])),
            few_words.spec(few_words.first_of(few_words.choice(cls="none"), few_words.choice())),
            few_words.spec(few_words.request(cls="big"), few_words.request(name="any")),
            few_words.spec(few_words.request(count=None)),
        ]
    )
    found = few_words.claim(name, spec, owner=pod.uid if own else "", version=str(number))
    world.server.put(replace(found, namespace=pod.namespace, uid=f"claim{number}"))


def put_slice(world, chance, node):
    count = chance.choice([0, 1, 1, 2, 3])
    kinds = [{"kind": chance.choice(["big", "small"])} for _ in range(count)]
    found = [few_words.device(f"d{i}", attributes=kind) for i, kind in enumerate(kinds)]
    generation = world.server.number()
    world.server.put(few_words.on(node, *found, generation=generation))


def device_slice(world, chance):
    """A node has other devices, or none any more."""
    if not world.server.nodes:
        return
    node = chance.choice(sorted(world.server.nodes))
    if chance.random() < 0.25:
        world.server.remove("ResourceSlice", f"{node}-slice")
    else:
        put_slice(world, chance, node)


def device_class(world, chance):
    kind = chance.choice(["gone", "put", "put", "backs"])
    if kind == "gone":
        world.server.remove("DeviceClass", "gpu")
    else:
        extended = BACKED if kind == "backs" else ""
        selectors = chance.choice(SELECTORS)
        world.server.put(few_words.gpu_class(*selectors, extended=extended))


def device_claim(world, chance):
    """A claim that a pod waits for is made, or one goes."""
    server = world.server
    there = [one for one in server.of_kind("ResourceClaim") if not one.reserved_for]
    waiting = [
        pod
        for pod in server.pods.values()
        if any(
            entry.claim is None or server.get("ResourceClaim", entry.claim, pod.namespace) is None
            for entry in pod.device_claims
            if entry.claim != ""
        )
    ]
    if waiting and chance.random() < 0.8:
        make_claims_of(world, chance, chance.choice(waiting))
    elif there:
        found = chance.choice(there)
        server.remove("ResourceClaim", found.name, found.namespace)


def make_claims_of(world, chance, pod):
    entries = []
    for entry in pod.device_claims:
        name = f"{pod.name}-{entry.name}-made" if entry.claim is None else entry.claim
        if name and world.server.get("ResourceClaim", name, pod.namespace) is None:
            put_claim(world, chance, pod, name, entry.own)
        entries.append(entry._replace(claim=name))
    world.server.edit_pod(pod.uid, device_claims=tuple(entries))


def tidy_claims(world, chance):
    claims.tidy(world.server)


MOVES = {move.__name__: move for move in (device_slice, device_class, device_claim, tidy_claims)}
