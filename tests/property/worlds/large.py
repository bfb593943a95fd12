"""Large worlds: each reaches a bound of the core at its real value, just below or just above it.

A builder fills a world and returns how many pods have to be bound at rest, or None where that
depends on what is searched for.
"""

from __future__ import annotations

import random

import msgspec

from quorate.core.model import ClaimUse, GangSpec, Membership, Node, Pod, PodSpec
from quorate.core.model import policy as core_policy
from quorate.core.model.devices import PodClaim
from quorate.core.model.storage import WAIT_FOR_FIRST_CONSUMER, Claim, StorageClass
from tests.property.worlds.findings import expect
from tests.property.worlds.moves.pods import REPLICAS
from tests.property.worlds.scripts import draw
from tests.property.worlds.world import World
from tests.unit.core import device_world as few_words
from tests.unit.core.terms import near, pods, spread
from tests.unit.core.world import TEAM, key

WEB, DB = (("app", "web"),), (("app", "db"),)
GANG = key("large")


def world_of(seed):
    """Return an empty world without faults."""
    setting, _ = draw(seed, "wide")
    policy = msgspec.structs.replace(
        setting.policy, search_steps_max=20_000, binds_per_plan_max=100_000, singles_per_plan_max=64
    )
    plain = {
        "faults": False,
        "lags": False,
        "twin": False,
        "bounds": {},
        "checks": 0.0,
        "rest_checks": 0.0,
    }
    return World(msgspec.structs.replace(setting, policy=policy, is_exact=True, **plain))


def play(name, seed):
    """Play a large world; return how many pods were bound."""
    chance = random.Random(seed)
    world = world_of(seed)
    wanted = BUILDERS[name](world, chance)
    world.play([("rest", seed)])
    bound = sum(1 for pod in world.server.pods.values() if pod.node)
    if wanted is not None:
        expect(bound == wanted, f"large {name}: not all is bound", f"{bound} of {wanted}")
    nudges = ["delete_bound", "relabel_node", "lose_node", "scale_node", "label", "cordon"]
    for move in chance.sample(nudges, 2):
        world.play([(move, chance.randrange(2**32)), ("rest", seed)])
    return bound


def around(bound, chance):
    """Return a number just below, at, or just above a bound."""
    return bound + chance.choice([-1, 0, 1])


def node(world, name, cpu, zone="a", **more):
    allocatable = {"cpu": cpu, "pods": 1000} | more
    sorts = (("host", name), ("zone", zone))
    world.server.put_node(Node(name, tuple(sorted(allocatable.items())), labels=sorts))


def pod(world, spec, gang=None, uid="", **fields):
    number = world.server.number()
    uid = uid or f"u{number}"
    fields.setdefault("scheduler", "quorate")
    member = Membership(gang) if gang else None
    world.server.put_pod(
        Pod(uid, TEAM, f"p{number}", spec=spec, created_s=number, membership=member, **fields)
    )
    return world.server.pods[uid]


def coupled_gang(world, chance):
    """A leader that wants to be beside its workers, who are smaller and come after it."""
    size = around(core_policy.SEARCHED_PODS_MAX, chance)
    for number in range(10):
        node(world, f"n{number}", cpu=size, zone="ab"[number % 2])
    terms = near(pods(app="web"))
    of_workers = spread(pods(app="web")) if chance.random() < 0.5 else {}
    world.server.put_spec(GangSpec(GANG, size))
    pod(world, PodSpec((("cpu", 4),), **terms), GANG, labels=DB)
    for _ in range(size - 1):
        pod(world, PodSpec((("cpu", 1),), **of_workers), GANG, labels=WEB)
    return size if size <= core_policy.SEARCHED_PODS_MAX else None


def many_replicas(world, chance):
    """Many waiting pods under kube-scheduler's profile, each alike to no other."""
    count = around(256, chance) + chance.choice([0, 45])
    for number in range(3):
        node(world, f"n{number}", cpu=20)
    for number in range(count):
        fields = {"scheduler": "default-scheduler", "labels": (("only", f"s{number}"),)}
        pod(world, PodSpec((("cpu", 1),)), owner=REPLICAS, **fields)
    return 60


def many_classes(world, chance):
    """Pods of which no two are alike."""
    count = around(2000, chance) + chance.choice([0, 100])
    for number in range(40):
        node(world, f"n{number}", cpu=20, memory=10**9)
    for number in range(count):
        pod(world, PodSpec((("cpu", 1), ("memory", number + 1))), priority=number % 3)
    return 800


def many_devices(world, chance):
    """One pod with many claims of many devices, as many as a claim may have."""
    claims, each = chance.choice([1, 3, 10]), 32
    there = claims * each + chance.choice([-1, 0, 1])
    node(world, "n0", cpu=4)
    world.server.put(few_words.gpu_class())
    found = [few_words.device(f"d{number}") for number in range(there)]
    world.server.put(few_words.on("n0", *found))
    what = few_words.spec(few_words.request(count=each))
    for number in range(claims):
        world.server.put(few_words.claim(f"c{number}", what, owner="u0"))
    entries = tuple(PodClaim(f"c{n}", f"c{n}", own=True) for n in range(claims))
    pod(world, PodSpec((("cpu", 1),)), uid="u0", device_claims=entries)
    return 1 if there >= claims * each else 0


def gang_with_devices(world, chance):
    """A gang each of whose members has a device of its own."""
    size = around(256, chance)
    world.server.put(few_words.gpu_class())
    for number in range(8):
        node(world, f"n{number}", cpu=64)
        found = [few_words.device(f"d{index}") for index in range(40)]
        world.server.put(few_words.on(f"n{number}", *found))
    world.server.put_spec(GangSpec(GANG, size))
    for number in range(size):
        world.server.put(few_words.claim(f"c{number}", owner=f"g{number}"))
        entries = (PodClaim("c", f"c{number}", own=True),)
        pod(world, PodSpec((("cpu", 1),)), GANG, uid=f"g{number}", device_claims=entries)
    return size


def gang_with_volumes(world, chance):
    """A gang whose members share one volume and have one each besides."""
    size = around(200, chance)
    world.server.put(StorageClass("fast", "csi.example", WAIT_FOR_FIRST_CONSUMER))
    for number in range(8):
        node(world, f"n{number}", cpu=40)
    shared = Claim(TEAM, "shared", "shared", "fast", 1, ("ReadWriteMany",))
    world.server.put(shared)
    world.server.put_spec(GangSpec(GANG, size))
    for number in range(size):
        world.server.put(Claim(TEAM, f"c{number}", f"c{number}", "fast", 1, ("ReadWriteOnce",)))
        uses = (ClaimUse("shared"), ClaimUse(f"c{number}"))
        pod(world, PodSpec((("cpu", 1),)), GANG, claims=uses)
    return size


def many_gangs(world, chance):
    """Many gangs wait, and there is room for some of them."""
    count = around(300, chance)
    for number in range(40):
        node(world, f"n{number}", cpu=3, zone="abc"[number % 3])
    for number in range(count):
        which = key(f"g{number}")
        world.server.put_spec(GangSpec(which, 4, created_s=float(number)))
        for _ in range(4):
            pod(world, PodSpec((("cpu", 1),)), which)
    return 120


def many_selectors(world, chance):
    """Pods each of which stays away from pods of a label of its own."""
    count = around(1000, chance)
    for number in range(4):
        node(world, f"n{number}", cpu=100)
    for number in range(count):
        own = {"anti_affinity": near(pods(only=f"x{number}"), by="host")["affinity"]}
        only = (("only", f"x{number}"),)
        pod(world, PodSpec((("cpu", 1),), **own), labels=only)
    return 400


BUILDERS = {
    builder.__name__: builder
    for builder in (
        coupled_gang,
        many_replicas,
        many_classes,
        many_devices,
        gang_with_devices,
        gang_with_volumes,
        many_gangs,
        many_selectors,
    )
}
