"""Moves of storage: claims that pods bring, volumes, classes, limits, and who binds them."""

from __future__ import annotations

import msgspec

from quorate.core.model import ClaimUse, Requirement, SelectorTerm
from quorate.core.model.storage import (
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    Claim,
    ClaimRef,
    CSINode,
    StorageClass,
    Volume,
)
from tests.property.worlds.behind import preparing

replace = msgspec.structs.replace
DRIVER = "csi.example"
MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")
CLASSES = (
    StorageClass("fast", DRIVER, WAIT_FOR_FIRST_CONSUMER),
    StorageClass("local", NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER),
    StorageClass("now", DRIVER, "Immediate"),
    StorageClass("zonal", DRIVER, WAIT_FOR_FIRST_CONSUMER, ((("zone", ("a",)),),)),
)


def begin(world, chance):
    """What is there before any pod comes."""
    for found in CLASSES:
        world.server.put(found)
    for node in world.server.nodes:
        world.server.put(CSINode(node, ((DRIVER, chance.choice([1, 2, 3])),)))
    for _ in range(chance.randint(0, 4)):
        volume(world, chance)


def with_claims(world, chance, pod):
    """Return the pod with claims, which are there already or come later."""
    uses = []
    for index in range(chance.choice([1, 1, 1, 2])):
        kind = chance.choice(["own", "own", "bound", "shared", "shared", "ephemeral", "missing"])
        name = f"{pod.name}-{index}" if kind != "shared" else f"shared-{chance.randrange(3)}"
        uses.append(ClaimUse(name, ephemeral=kind == "ephemeral"))
        known = world.server.get("Claim", name, pod.namespace)
        if kind != "missing" and known is None:
            put_claim(world, chance, pod.namespace, name, kind, pod.uid)
    return replace(pod, claims=tuple(dict.fromkeys(uses)))


def put_claim(world, chance, namespace, name, kind, uid=""):
    server, number = world.server, world.server.number()
    claim = Claim(
        namespace,
        name,
        uid=f"claim{number}",
        storage_class=chance.choice(["fast", "fast", "local", "now", "zonal"]),
        size=chance.choice([None, 1, 5]),
        access_modes=(chance.choice(MODES),),
        controller=uid if kind == "ephemeral" else "",
    )
    if kind == "bound" or (kind == "shared" and chance.random() < 0.6):
        ref = ClaimRef(namespace, name, claim.uid)
        volume = random_volume(world, chance, claim=ref, phase="Bound", capacity=5)
        server.put(volume)
        claim = replace(claim, volume=volume.name, bound=True)
    server.put(claim)


def random_volume(world, chance, **fields):
    number = world.server.number()
    where = chance.choice([None, Requirement("zone", "In", ("a",)), "host", "host"])
    if where == "host":
        where = Requirement("host", "In", (chance.choice([*world.server.nodes, "n0"]),))
    fields.setdefault("capacity", chance.choice([1, 5]))
    zone = chance.random() < 0.2
    return Volume(
        name=f"pv{number}",
        version=str(number),
        access_modes=("ReadWriteOnce", "ReadWriteMany"),
        affinity=None if where is None else (SelectorTerm((where,)),),
        labels=(("topology.kubernetes.io/zone", "a"),) if zone else (),
        driver=DRIVER,
        handle=f"pv{number}",
        **fields,
    )


def volume(world, chance):
    """An administrator adds a local volume."""
    world.server.put(random_volume(world, chance, storage_class="local", phase="Available"))


def lose_volume(world, chance):
    free = [one for one in world.server.of_kind("Volume") if one.claim is None]
    if free:
        world.server.remove("Volume", chance.choice(free).name)


def claim(world, chance):
    """A claim comes that a pod names already, or one is edited or deleted."""
    server = world.server
    named = [
        (pod, use)
        for pod in server.pods.values()
        for use in pod.claims
        if server.get("Claim", use.name, pod.namespace) is None
    ]
    there = server.of_kind("Claim")
    if named and chance.random() < 0.7:
        pod, use = chance.choice(named)
        kind = "ephemeral" if use.ephemeral else chance.choice(["own", "bound"])
        put_claim(world, chance, pod.namespace, use.name, kind, pod.uid)
    elif there:
        found = chance.choice(there)
        kind = chance.choice(["gone", "terminating", "lost", "modes"])
        if kind == "gone":
            server.remove("Claim", found.name, found.namespace)
        elif kind == "modes":
            server.put(replace(found, access_modes=(chance.choice(MODES),)))
        else:
            server.put(replace(found, **{kind: not getattr(found, kind)}))


def limit(world, chance):
    """A node's driver takes more or fewer volumes, or says so no more."""
    if world.server.nodes:
        node = chance.choice(sorted(world.server.nodes))
        limits = chance.choice([(), *[((DRIVER, n),) for n in (0, 1, 2, 4)]])
        world.server.put(CSINode(node, limits))


def storage_class(world, chance):
    found = chance.choice(CLASSES)
    if chance.random() < 0.3:
        world.server.remove("StorageClass", found.name)
    else:
        mode = chance.choice([WAIT_FOR_FIRST_CONSUMER, found.binding_mode, "Immediate"])
        world.server.put(StorageClass(found.name, found.provisioner, mode, found.topologies))


def bind_claims(world, chance):
    """A controller binds one of the claims that it can bind, or gives it up."""
    ready = preparing.work_of_controllers(world.server)
    if ready:
        preparing.bind_claim(chance.choice(ready), world.server, fails=chance.random() < 0.15)


MOVES = {
    move.__name__: move
    for move in (
        volume,
        lose_volume,
        claim,
        limit,
        storage_class,
        bind_claims,
    )
}
