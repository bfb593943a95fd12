"""What ``Storage`` counts by change is what a recount of everything finds."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.storage.volume_counts import UNLIMITED
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
    Claim,
    ClaimKey,
    CSINode,
    StorageClass,
    Volume,
)
from tests.property.seeds import drawn

NODES, VOLUMES, CLAIMS = ("n0", "n1"), ("v0", "v1"), ("c0", "c1")
DRIVERS = ("one.csi", "two.csi")
names = st.sampled_from


class Counts(RuleBasedStateMachine):
    """News of all kinds, in any order."""

    def __init__(self):
        super().__init__()
        self.cluster = Cluster(["quorate"])
        self.nodes, self.pods = set(), {}
        self.objects = {}
        for name, volume, claim in zip(NODES, VOLUMES, CLAIMS, strict=True):  # what mostly is
            self.node(name, True)
            self.volume(volume, DRIVERS[0], "a")
            self.claim(claim, volume, "")

    def tell(self, found):
        self.objects[type(found).__name__, found.name] = found
        self.cluster.apply(ObjectChanged(found))

    @rule(name=names(NODES), there=names((True, True, False)))
    def node(self, name, there):
        if there:
            self.nodes.add(name)
            self.cluster.apply(NodeChanged(Node(name, (("pods", 9),))))
        else:
            self.nodes.discard(name)
            self.cluster.apply(NodeGone(name))

    @rule(name=names(CLAIMS), volume=names((*VOLUMES, "")), of=names(("", "c")))
    def claim(self, name, volume, of):
        self.tell(Claim("team", name, volume=volume, bound=bool(volume), storage_class=of))

    @rule(
        name=names(VOLUMES),
        driver=names((*DRIVERS, DRIVERS[0], "")),
        handle=names("aab"),
    )
    def volume(self, name, driver, handle):
        self.tell(Volume(name, driver=driver, handle=handle))

    @rule(provisioner=names(DRIVERS))
    def storage_class(self, provisioner):
        self.tell(StorageClass("c", provisioner))

    @rule(name=names(NODES), driver=names(DRIVERS), count=st.integers(0, 3))
    def limits(self, name, driver, count):
        self.tell(CSINode(name, ((driver, count),)))

    @rule(data=st.data())
    def gone(self, data):
        if self.objects:
            kind, name = data.draw(names(sorted(self.objects)))
            found = self.objects.pop((kind, name))
            self.cluster.apply(ObjectGone(kind, getattr(found, "namespace", ""), name))

    @rule(
        uid=names("pqr"),
        node=names(NODES),
        claims=st.lists(names(CLAIMS), min_size=1, max_size=2, unique=True),
        phase=names(("Running", "Running", "Succeeded")),
    )
    def pod(self, uid, node, claims, phase):
        known = self.pods.get(uid)
        uses = known.claims if known else tuple(ClaimUse(one) for one in claims)
        where = known.node if known else node
        made = Pod(uid, "team", uid, "other", PodSpec(), node=where, claims=uses, phase=phase)
        self.pods[uid] = made
        self.cluster.apply(PodChanged(made))

    @rule(uid=names("pqr"))
    def pod_gone(self, uid):
        self.pods.pop(uid, None)
        self.cluster.apply(PodGone(uid))

    # The recount

    def volume_id(self, claim):
        volume = self.objects.get(("Volume", claim.volume))
        if claim.volume and volume is not None:
            return (volume.driver, volume.handle) if volume.driver else None
        found = self.objects.get(("StorageClass", claim.storage_class))
        return (found.provisioner, f"/team/{claim.name}") if found else None

    def ids_of(self, pod):
        claims = (self.objects.get(("Claim", use.name)) for use in pod.claims)
        return {self.volume_id(claim) for claim in claims if claim is not None} - {None}

    def on(self, node):
        return [p for p in self.pods.values() if p.node == node and p.phase == "Running"]

    @invariant()
    def counts_are_true(self):
        storage, counts = self.cluster.storage, self.cluster.storage.nodes
        for name in self.nodes:
            row = self.cluster.nodes.rows[name]
            there = set().union(*(self.ids_of(pod) for pod in self.on(name)))
            expected = Counter(driver for driver, _ in there)
            seen = {driver: int(column[row]) for driver, column in counts.counts.items()}
            assert {d: n for d, n in seen.items() if n} == dict(expected)
            limits = dict(self.objects.get(("CSINode", name), CSINode("")).limits)
            for driver, column in counts.limits.items():
                assert int(column[row]) == limits.get(driver, UNLIMITED)
        rows = [self.cluster.nodes.rows[name] for name in self.nodes]
        assert all(column[rows].any() for column in counts.counts.values())
        limited = (self.objects.get(("CSINode", name), CSINode("")) for name in self.nodes)
        assert counts.limits.keys() == {driver for node in limited for driver, _ in node.limits}
        running = [pod for name in self.nodes for pod in self.on(name)]
        uses = Counter(ClaimKey("team", use.name) for pod in running for use in pod.claims)
        assert storage.in_use == uses
        users = Counter(one for pod in self.pods.values() for one in self.ids_of(pod))
        assert {one: len(there) for one, there in storage.sharers.items()} == users


Counts.TestCase.settings = settings(drawn(150), stateful_step_count=50)
TestCounts = Counts.TestCase
