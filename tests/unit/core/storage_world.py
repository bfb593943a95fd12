"""Storage for the tiny world: claims, volumes and classes in one line each."""

import msgspec

from quorate.core.model import ClaimUse, Requirement, SelectorTerm
from quorate.core.model.changes import ObjectChanged, ObjectGone, PrepareFailed, Undone
from quorate.core.model.storage import (
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    Claim,
    ClaimRef,
    CSINode,
    StorageClass,
    Volume,
)
from tests.unit.core.world import TEAM, World

GI = 2**30
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
DRIVER = "csi.example"


def on(key, *values):
    """Return the node affinity of a volume: this label must have one of the values."""
    return (SelectorTerm(expressions=(Requirement(key, "In", values),)),)


class StorageWorld(World):
    """A world whose API server obeys ``prepare`` and ``undo`` when told to."""

    def __init__(self, **policy):
        super().__init__(**policy)
        self.claims, self.volumes = {}, {}
        self.put(StorageClass("fast", DRIVER, WAIT_FOR_FIRST_CONSUMER))
        self.put(StorageClass("local", NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER))

    def put(self, found):
        self.observe(ObjectChanged(found))
        if isinstance(found, Claim):
            self.claims[found.name] = found
        if isinstance(found, Volume):
            self.volumes[found.name] = found

    def gone(self, kind, name, namespace=TEAM):
        self.observe(ObjectGone(kind, namespace if kind == "Claim" else "", name))

    def labelled_node(self, name, zone="a", **more):
        self.node(name, labels={HOSTNAME: name, ZONE: zone}, **more)

    def claim(self, name, **fields):
        fields.setdefault("storage_class", "fast")
        fields.setdefault("size", GI)
        fields.setdefault("access_modes", ("ReadWriteOnce",))
        self.put(Claim(TEAM, name, uid=f"uid-{name}", **fields))

    def volume(self, name, **fields):
        fields.setdefault("storage_class", "local")
        fields.setdefault("capacity", GI)
        fields.setdefault("access_modes", ("ReadWriteMany", "ReadWriteOnce"))
        fields.setdefault("phase", "Available")
        self.put(Volume(name, version="1", driver=DRIVER, handle=name, **fields))

    def edit_claim(self, name, **fields):
        self.put(msgspec.structs.replace(self.claims[name], **fields))

    def limit(self, node, count):
        self.put(CSINode(node, ((DRIVER, count),)))

    def claiming(self, name, min_count, *, pods=None, storage_class="fast", size=GI, **more):
        """Add a gang whose pods have one claim each, as a StatefulSet's have."""
        which = self.object(name, min_count)
        for index in range(min_count if pods is None else pods):
            self.claim(f"data-{name}-{index}", storage_class=storage_class, size=size)
            uses = (ClaimUse(f"data-{name}-{index}"),)
            self.pod(f"{name}-{index}", which, claims=uses, **more)
        return which

    # What the API server and the provisioner do

    def written(self, plan):
        """The watch delivers what the plan's writes did."""
        for one in prepared(plan):
            if one.volume:
                ref = ClaimRef(one.namespace, one.claim, one.uid)
                self.put(msgspec.structs.replace(self.volumes[one.volume], claim=ref))
            else:
                self.edit_claim(one.claim, selected_node=one.node)

    def bound(self, plan, *, affinity=None):
        """The controllers bind all that was prepared."""
        for one in prepared(plan):
            name = one.volume or f"pv-{one.claim}"
            if not one.volume:
                ref = ClaimRef(one.namespace, one.claim, one.uid)
                at = affinity or on(HOSTNAME, one.node)
                self.volume(name, storage_class="fast", claim=ref, phase="Bound", affinity=at)
            self.edit_claim(one.claim, volume=name, bound=True)

    def give_up(self, claim):
        """The provisioner takes the node away again: it could not make the volume."""
        self.edit_claim(claim, selected_node=None)

    def undone(self, plan):
        for undo in plan.undo:
            for one in undo.prepared:
                if not one.volume:
                    self.edit_claim(one.claim, selected_node=None)
                else:
                    self.put(msgspec.structs.replace(self.volumes[one.volume], claim=None))
            self.observe(Undone(undo.key))

    def refused(self, plan, text="no"):
        [gang] = plan.preparing
        node = gang.binds[0].node
        self.observe(PrepareFailed(gang.key, gang.attempt, node, text))


def prepared(plan):
    return [one for gang in plan.preparing for bind in gang.binds for one in bind.prepare]


def nodes_of(plan):
    return {bind.name: bind.node for gang in plan.gangs for bind in gang.binds}


def planned(plan):
    return {bind.name: bind.node for gang in plan.preparing for bind in gang.binds}
