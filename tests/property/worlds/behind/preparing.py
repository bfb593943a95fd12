"""The writes that come before binds of pods with unbound claims, and the controllers behind them.

As ``quorate.shell.commit.volume_claims`` does it; the volume binder and a provisioner answer later.
"""

from __future__ import annotations

import msgspec

from quorate.core.model import Requirement, SelectorTerm
from quorate.core.model.changes import PrepareFailed, Undone
from quorate.core.model.storage import NO_PROVISIONER, ClaimRef, Volume

replace = msgspec.structs.replace


def tasks_of(plan, world):
    """Return a plan's writes; all of one gang have one key, so that they go out in order."""
    undo = [Undo(one, world) for one in plan.undo]
    return undo + [Write(gang, world) for gang in plan.preparing]


class Write:
    """Have all claims of one gang bound."""

    def __init__(self, gang, world):
        self.gang, self.world, self.key = gang, world, gang.key

    def __call__(self, chance, faults):
        for bind in self.gang.binds:
            for one in bind.prepare:
                if not one.written:
                    self._write(one, refused=faults and chance.random() < 0.1)

    def _write(self, one, refused):
        server = self.world.server
        claim = server.get("Claim", one.claim, one.namespace)
        volume = server.get("Volume", one.volume)
        if one.volume:
            done = not refused and volume is not None and volume.version == one.version
            if done:
                ref = ClaimRef(one.namespace, one.claim, one.uid)
                server.put(replace(volume, claim=ref, version=str(server.number())))
        else:
            done = not refused and claim is not None and claim.uid == one.uid
            if done:
                server.put(replace(claim, selected_node=one.node))
        if not done:
            self.world.hear(PrepareFailed(self.gang.key, self.gang.attempt, one.node, "refused"))


class Undo:
    """Take back what was written, as far as claims are not bound by it."""

    def __init__(self, undo, world):
        self.undo, self.world, self.key = undo, world, undo.key

    def __call__(self, chance, faults):
        server = self.world.server
        for one in self.undo.prepared:
            claim = server.get("Claim", one.claim, one.namespace)
            volume = server.get("Volume", one.volume)
            if not one.volume:
                mine = claim is not None and (claim.uid, claim.selected_node) == (one.uid, one.node)
                if mine:
                    server.put(replace(claim, selected_node=None))
            elif _is_kept_by(volume, one.uid):
                ref = None if one.marks else volume.claim._replace(uid="")
                server.put(replace(volume, claim=ref, version=str(server.number())))
        self.world.hear(Undone(self.undo.key))


def _is_kept_by(volume, uid):
    """Whether a volume is kept for the claim of this uid, and is not bound to it yet."""
    if volume is None or volume.claim is None:
        return False
    return volume.phase == "Available" and volume.claim.uid == uid


def work_of_controllers(server):
    """Return the claims that a controller could bind now."""
    kept = {v.claim: v for v in server.of_kind("Volume") if v.claim is not None and v.claim.uid}
    found = []
    for claim in server.of_kind("Claim"):
        if claim.is_bound or claim.terminating or claim.lost:
            continue
        storage_class = server.get("StorageClass", claim.storage_class)
        is_kept = ClaimRef(claim.namespace, claim.name, claim.uid) in kept
        makes = storage_class is not None and storage_class.provisioner != NO_PROVISIONER
        waits = storage_class is not None and storage_class.binding_mode != "Immediate"
        if is_kept or (makes and (claim.selected_node is not None or not waits)):
            found.append(claim)
    return found


def bind_claim(claim, server, fails=False):
    """The volume binder binds a claim to its volume, which a provisioner may have to make first.

    ``fails``: no volume can be made on that node; another one may be chosen.
    """
    ref = ClaimRef(claim.namespace, claim.name, claim.uid)
    volume = next((v for v in server.of_kind("Volume") if v.claim == ref), None)
    if volume is None and fails:
        server.put(replace(claim, selected_node=None))
        return
    version = str(server.number())
    if volume is None:
        node = server.nodes.get(claim.selected_node or "")
        host = dict(node.labels).get("host") if node is not None else None
        is_near = host and "ReadWriteMany" not in claim.access_modes
        near = (SelectorTerm((Requirement("host", "In", (host,)),)),) if is_near else None
        driver = server.get("StorageClass", claim.storage_class).provisioner
        name = f"pv-{claim.name}-{version}"
        volume = Volume(
            name=name,
            storage_class=claim.storage_class,
            capacity=claim.size or 0,
            access_modes=claim.access_modes,
            affinity=near,
            driver=driver,
            handle=name,
        )
    server.put(replace(volume, claim=ref, phase="Bound", version=version))
    server.put(replace(claim, volume=volume.name, bound=True))
