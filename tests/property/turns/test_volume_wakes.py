"""Whoever may go somewhere where it could not before is woken; what is remembered is as new.

A node on which something ended is looked at anyway (``Cluster.grown``); all else is up to
``Storage.take_affected_pods``.
"""

import random

from hypothesis import given

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import Where
from quorate.core.cluster.storage.volume_needs import _volume_needs, problems_of, volume_needs_of
from quorate.core.model import ClaimUse, Node, Pod, PodSpec
from quorate.core.model.changes import (
    NodeChanged,
    NodeGone,
    ObjectChanged,
    ObjectGone,
    PodChanged,
    PodGone,
)
from quorate.core.model.storage import (
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    Claim,
    ClaimKey,
    ClaimRef,
    CSINode,
    StorageClass,
    Volume,
)
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import own_slots
from quorate.core.turn.cycle import members_of
from tests.property.seeds import drawn, seeds
from tests.unit.core.storage_world import on
from tests.unit.core.world import TEAM

HOST = "host"
NODES = ("n0", "n1", "n2")
CLAIMS = ("c0", "c1", "c2", "c3")
DRIVERS = ("one.csi", "two.csi")
CLASSES = ("local", "made", "other")
MODES = (("ReadWriteOnce",), ("ReadWriteMany",), ("ReadWriteOncePod",))


class Moves:
    """News of storage, pods and nodes, and what plans under way keep, at random."""

    def __init__(self, chance):
        self.chance = chance
        self.cluster = Cluster(("quorate",))
        self.objects, self.made, self.kept = {}, 0, []
        for name in NODES[:2]:
            self.cluster.apply(NodeChanged(Node(name, (("pods", 9),), ((HOST, name),))))
        for name, provisioner in zip(CLASSES, (NO_PROVISIONER, *DRIVERS), strict=True):
            self.put(StorageClass(name, provisioner, WAIT_FOR_FIRST_CONSUMER))
        for name in CLAIMS:
            self.claim(name)

    def put(self, found):
        self.objects[type(found).__name__, found.name] = found
        self.cluster.apply(ObjectChanged(found))

    def step(self):
        moves = ("claim", "claim", "volume", "volume", "limits", "storage_class")
        moves += ("gone", "pod", "pod", "pod", "running", "pod_gone", "node", "keep", "let_go")
        getattr(self, self.chance.choice(moves))()

    def claim(self, name=None):
        chance = self.chance
        name = name or chance.choice(CLAIMS)
        volume = chance.choice(["", "", "v0", "v1"])
        self.put(
            Claim(
                TEAM,
                name,
                f"u-{name}",
                chance.choice(CLASSES),
                chance.randint(1, 2),
                chance.choice(MODES),
                volume=volume,
                bound=bool(volume),
                selected_node=chance.choice([None, None, None, "n0"]),
            )
        )

    def volume(self):
        chance = self.chance
        name = f"v{chance.randrange(4)}"
        kept = chance.choice([None, None, None, ClaimRef(TEAM, chance.choice(CLAIMS))])
        where = chance.choice([None, on(HOST, "n0"), on(HOST, "n1")])
        self.put(
            Volume(
                name,
                str(chance.randrange(3)),
                chance.choice(CLASSES),
                chance.randint(1, 2),
                chance.choice(MODES),
                phase=chance.choice(["Available", "Available", "Bound"]),
                claim=kept,
                affinity=where,
                driver=chance.choice(DRIVERS),
                handle=chance.choice("hij"),
            )
        )

    def limits(self):
        drivers = self.chance.sample(DRIVERS, self.chance.randint(0, 2))
        found = tuple((driver, self.chance.randint(0, 2)) for driver in drivers)
        self.put(CSINode(self.chance.choice(NODES), found))

    def storage_class(self):
        chance = self.chance
        provisioner = chance.choice([NO_PROVISIONER, *DRIVERS])
        mode = chance.choice([WAIT_FOR_FIRST_CONSUMER, "Immediate"])
        self.put(StorageClass(chance.choice(CLASSES), provisioner, mode))

    def gone(self):
        kind, name = self.chance.choice(sorted(self.objects))
        found = self.objects.pop((kind, name))
        self.cluster.apply(ObjectGone(kind, getattr(found, "namespace", ""), name))

    def pod(self, node=""):
        chance = self.chance
        uid, self.made = f"p{self.made % 6}", self.made + 1
        claims = tuple(ClaimUse(one) for one in chance.sample(CLAIMS, chance.randint(1, 2)))
        who = "other" if node else "quorate"
        phase = "Running" if node else "Pending"
        self.cluster.apply(PodGone(uid))
        pod = Pod(uid, TEAM, uid, who, PodSpec(), node=node, phase=phase, claims=claims)
        self.cluster.apply(PodChanged(pod))

    def running(self):
        self.pod(self.chance.choice(NODES))

    def pod_gone(self):
        self.cluster.apply(PodGone(f"p{self.chance.randrange(6)}"))

    def node(self):
        name = self.chance.choice(NODES)
        if self.chance.random() < 0.3:
            self.cluster.apply(NodeGone(name))
        else:
            self.cluster.apply(NodeChanged(Node(name, (("pods", 9),), ((HOST, name),))))

    def keep(self):
        storage = self.cluster.storage
        free = [name for name in storage.volumes if name not in storage.reserved]
        claim = ClaimKey(TEAM, self.chance.choice(CLAIMS))
        if claim in storage.claims and claim not in [one for _, one in self.kept]:
            volume = self.chance.choice([*free, ""])
            uid = f"plan{len(self.kept)}-{self.made}"
            self.made += 1
            self.kept.append((uid, claim))
            storage.assume(uid, [(claim, volume, "n0")])

    def let_go(self):
        if self.kept:
            self.cluster.storage.forget(self.kept.pop()[0])

    def open_to(self):
        """Return for each waiting pod the names of the nodes that volume rules let it go to."""
        room = Room(self.cluster.snapshot(), RuleCache())
        found = {}
        for gang in self.cluster.gangs.values():
            for pod_class, entries in members_of(gang, self.cluster).items():
                slots = own_slots(pod_class, room)
                names = {node for node, row in self.cluster.nodes.rows.items() if slots[row] > 0}
                found.update((entry.pod.uid, names) for entry in entries)
        return found


@drawn(400)
@given(seeds)
def test_who_may_go_to_another_node_is_woken_and_what_is_remembered_is_as_new(seed):
    chance = random.Random(seed)
    moves = Moves(chance)
    for _ in range(chance.randint(5, 60)):
        before = moves.open_to()
        moves.cluster.take_news()
        moves.step()
        cluster = moves.cluster
        after = moves.open_to()
        touched, grown, _ = cluster.take_news()
        for uid, nodes in after.items():
            entry = cluster.pods[uid]
            assert entry.where is Where.WAITING
            fresh_ones = nodes - before.get(uid, set())
            fresh_ones -= {name for name in fresh_ones if cluster.nodes.rows[name] in grown}
            assert not fresh_ones or entry.gang.key in touched
            user = cluster.storage.users[uid]
            remembered = volume_needs_of(entry.pod, cluster.storage)
            if problems := problems_of(entry.pod, cluster.storage):
                assert remembered.problems == problems
            else:
                assert remembered == _volume_needs(entry.pod, user, cluster.storage)
