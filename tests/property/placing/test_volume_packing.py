"""Packing pods with volumes: as one by one, each accepted, and no volume given away twice."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.storage.volume_counts import UNLIMITED
from quorate.core.model import ClaimUse, Node, Pod, PodSpec
from quorate.core.model.changes import NodeChanged, ObjectChanged, PodChanged
from quorate.core.model.storage import (
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    Claim,
    ClaimRef,
    CSINode,
    StorageClass,
    Volume,
)
from quorate.core.place.packing.fill import fill
from quorate.core.place.packing.pack import pack
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import pod_slots
from quorate.core.rules.rule import RuleKind
from quorate.core.rules.table import FILTERS
from quorate.core.turn.cycle import members_of
from tests.property.seeds import drawn, seeds
from tests.unit.core.storage_world import on
from tests.unit.core.world import TEAM

packings = st.sampled_from(["most-allocated", "least-allocated"])
HOST, ZONE = "host", "zone"
DRIVERS = ("one.csi", "two.csi")
MANY = ("ReadWriteMany",)
ONE = ("ReadWriteOnce",)


class Storage:
    """A cluster in the making."""

    def __init__(self, chance):
        self.chance = chance
        self.cluster = Cluster(("quorate",))
        self.nodes = [f"n{number}" for number in range(chance.randint(1, 7))]
        self.zone = {name: chance.choice("ab") for name in self.nodes}
        for name in self.nodes:
            size = (("cpu", chance.randint(0, 8)), ("pods", chance.randint(1, 8)))
            labels = ((HOST, name), (ZONE, self.zone[name]))
            self.cluster.apply(NodeChanged(Node(name, size, labels)))

    def put(self, found):
        self.cluster.apply(ObjectChanged(found))

    def bound(self, name, driver, *, modes=MANY):
        ref = ClaimRef(TEAM, name, f"u-{name}")
        self.put(Volume(f"pv-{name}", "1", "c", claim=ref, driver=driver, handle=name))
        self.put(
            Claim(TEAM, name, f"u-{name}", "c", volume=f"pv-{name}", bound=True, access_modes=modes)
        )

    def pod(self, name, claims, *, node="", cpu=1):
        uses = tuple(ClaimUse(one) for one in claims)
        spec = PodSpec((("cpu", cpu),))
        who, phase = ("other", "Running") if node else ("quorate", "Pending")
        pod = Pod(f"u-{name}", TEAM, name, who, spec, node=node, phase=phase, claims=uses)
        self.cluster.apply(PodChanged(pod))

    def classes(self):
        """Return the waiting pods of no gang by class, and a room."""
        members = {}
        for gang in list(self.cluster.gangs.values()):
            for pod_class, entries in members_of(gang, self.cluster).items():
                members.setdefault(pod_class, []).extend(entries)
        return members, Room(self.cluster.snapshot(), RuleCache())


def limited(chance):
    """Pods that share some volumes of limited drivers, and bring others along."""
    made = Storage(chance)
    for name in made.nodes:
        limits = [(driver, chance.randint(0, 5)) for driver in DRIVERS if chance.random() < 0.7]
        if limits and chance.random() < 0.9:
            made.put(CSINode(name, tuple(limits)))
    shared = [f"s{number}" for number in range(chance.randint(1, 3))]
    for name in shared:
        made.bound(name, chance.choice(DRIVERS))
    for number in range(chance.randint(0, 5)):  # what runs
        claims = chance.sample(shared, chance.randint(0, len(shared)))
        if chance.random() < 0.4:
            made.bound(f"r{number}", chance.choice(DRIVERS))
            claims.append(f"r{number}")
        made.pod(f"r{number}", claims, node=chance.choice(made.nodes))
    own = chance.sample(
        [(driver,) for driver in DRIVERS] + [(DRIVERS[0],) * 2], chance.randint(0, 1)
    )
    for number in range(chance.randint(2, 12)):
        claims = list(shared)
        for index, driver in enumerate(own[0] if own else ()):
            made.bound(f"o{number}-{index}", driver)
            claims.append(f"o{number}-{index}")
        made.pod(f"p{number}", claims, cpu=1)
    members, room = made.classes()
    [(pod_class, entries)] = members.items()
    return room, pod_class, len(entries)


def one_by_one(pod_class, count, room, packing):
    """Place pods as the rules let each in, with slots for no more than the next one."""
    pods = np.zeros(len(room.free), np.int64)
    for _ in range(count):
        one = fill(pod_class, 1, pod_slots(pod_class, room).clip(max=1), room, packing)
        if not one.any():
            break
        room.take(pod_class, one)
        pods += one
    return pods


def most_at(pod_class, row, room):
    """Return how many pods the rules let onto one node, each after the one before is counted."""
    left, taken = room.copy(), 0
    one = np.zeros(len(room.free), np.int64)
    one[row] = 1
    while taken < 20 and pod_slots(pod_class, left)[row]:
        left.take(pod_class, one)
        taken += 1
    return taken


@drawn(300)
@given(seeds, packings)
def test_with_shared_volumes_and_limits_as_many_as_one_by_one(seed, packing):
    room, pod_class, count = limited(random.Random(seed))
    assert not room.volumes.constrains(pod_class)
    alone, slots = room.copy(), pod_slots(pod_class, room)
    assert slots.tolist() == [most_at(pod_class, row, room) for row in range(len(slots))]
    found = pack(pod_class, count, room, packing)
    expected = one_by_one(pod_class, count, alone, packing)
    assert found.sum() == expected.sum() == min(count, slots.sum())
    assert (found <= slots).all()
    n = len(slots)
    for driver in DRIVERS:
        limits, attached = room.volumes.limits(driver), room.volumes.attached(driver)
        if limits is not None:
            grew = attached > room.snapshot.storage.nodes.column(driver)[:n]
            assert (attached <= limits)[grew].all()


def choosing(chance):
    """Pods with unbound claims, and volumes of one node, of a zone, or of all nodes."""
    made = Storage(chance)
    for name, provisioner in (("local", NO_PROVISIONER), ("made", chance.choice(DRIVERS))):
        made.put(StorageClass(name, provisioner, WAIT_FOR_FIRST_CONSUMER))
    reaches = chance.choice([["host"], ["zone"], ["all"], ["host", "zone", "all"]])
    for number in range(chance.randint(0, 12)):
        node = chance.choice(made.nodes)
        affinity = {"host": on(HOST, node), "zone": on(ZONE, made.zone[node]), "all": None}
        made.put(
            Volume(
                f"v{number}",
                "1",
                chance.choice(["local", "local", "made"]),
                chance.randint(1, 3),
                (*MANY, *ONE),
                phase="Available",
                affinity=affinity[chance.choice(reaches)],
            )
        )
    classes = chance.choice([["local"], ["local"], ["made"], ["local", "made"], ["made", "made"]])
    kinds = [(storage_class, chance.randint(1, 3)) for storage_class in classes]
    shared = chance.choice([None, None, None, MANY, ONE])
    if shared:
        shared_class = "made" if "local" in classes else chance.choice(["local", "made"])
        made.put(Claim(TEAM, "s", "u-s", shared_class, 1, shared))
    for number in range(chance.randint(2, 10)):
        claims = ["s"] if shared else []
        for index, (storage_class, size) in enumerate(kinds):
            name = f"c{number}-{index}"
            made.put(Claim(TEAM, name, f"u-{name}", storage_class, size, ONE))
            claims.append(name)
        made.pod(f"p{number}", claims)
    members, room = made.classes()
    [(pod_class, entries)] = members.items()
    return made, room, pod_class, entries, reaches


def check_choices(made, room, pod_class, entries, placed):
    """Check the chosen volumes by plain values: each does, is reached, and is given once."""
    given, decided = [], {}
    rows = np.repeat(np.arange(len(placed)), placed).tolist()
    storage = made.cluster.storage
    for entry, row in zip(entries, rows, strict=False):
        names = room.volumes.take_chosen(pod_class, row)
        node = room.snapshot.node(row)
        claims = sorted(
            (storage.claims[use_key] for use_key in storage.users[entry.pod.uid].volume_set.keys),
            key=lambda claim: claim.size or 0,
        )
        for claim, name in zip(claims, names, strict=True):
            if claim.name == "s":
                assert decided.setdefault("s", name) == name or name == ""
                if name in given:
                    continue
            if not name:
                is_settled = claim.name == "s" and "s" in decided
                assert is_settled or claim.storage_class == "made"
                continue
            assert name not in given
            given.append(name)
            volume = storage.volumes[name]
            assert volume.storage_class == claim.storage_class
            assert volume.capacity >= claim.size
            terms = volume.affinity
            assert terms is None or any(one.matches(node.name, dict(node.labels)) for one in terms)


@drawn(400)
@given(seeds, packings)
def test_each_claim_gets_a_volume_of_its_own_that_its_node_reaches(seed, packing):
    made, room, pod_class, entries, _ = choosing(random.Random(seed))
    placed = pack(pod_class, len(entries), room, packing)
    assert placed.sum() <= len(entries)
    check_choices(made, room, pod_class, entries, placed)


@drawn(300)
@given(seeds, packings)
def test_as_many_are_placed_as_one_by_one_where_volumes_are_alike(seed, packing):
    chance = random.Random(seed)
    while True:
        _made, room, pod_class, entries, reaches = choosing(chance)
        wants = set(pod_class.volume_needs.unbound)
        if len(reaches) == 1 and len(wants) == 1 and all(want.claim is None for want in wants):
            break
    alone = room.copy()
    placed = pack(pod_class, len(entries), room, packing)
    assert placed.sum() >= one_by_one(pod_class, len(entries), alone, packing).sum()


def volume_slots(pod_class, room):
    """Return int64[n]: slots by what the rules of volumes count, whether or not a pod may come."""
    count = np.full(len(room.free), UNLIMITED, np.int64)
    for rule in FILTERS:
        if rule.kind is RuleKind.VOLUMES and rule.cap:
            rule.cap(pod_class, room, count, False)
    return count


@drawn(300)
@given(seeds)
def test_what_one_node_is_given_is_what_the_rule_says_of_it(seed):
    _made, room, pod_class, entries, _ = choosing(random.Random(seed))
    for _entry in entries:
        codes = room.volumes.judge_unbound(pod_class.volume_needs)
        slots = volume_slots(pod_class, room)
        for row in range(len(codes)):
            one = np.zeros(len(codes), np.int64)
            one[row] = 1
            served = room.volumes.served(pod_class, one)[row]
            assert served == (codes[row] == 0)
            assert served <= slots[row]
        may = np.flatnonzero(pod_slots(pod_class, room))
        if not len(may):
            break
        one = np.zeros(len(codes), np.int64)
        one[random.Random(seed).choice(may.tolist())] = 1
        room.take(pod_class, one)


@drawn(200)
@given(seeds)
def test_slots_are_how_many_pods_a_node_takes_where_none_is_in_another_ones_way(seed):
    chance = random.Random(seed)
    _made, room, pod_class, _entries, _ = choosing(chance)
    if room.volumes.constrains(pod_class):
        return
    slots = pod_slots(pod_class, room)
    for row in range(len(slots)):
        assert most_at(pod_class, row, room) == min(slots[row], 20)
