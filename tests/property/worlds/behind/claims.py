"""The writes that give devices to claims and take them back, and the controller of claims.

As ``quorate.shell.commit.device_claims`` does it; ``tidy`` is what kube-controller-manager does.
"""

from __future__ import annotations

import msgspec

from quorate.core.model.changes import BindFailed, BindFailure, ClaimWritten

replace = msgspec.structs.replace


class GiveAll:
    """Write all claims of a gang; then its binds are sent, or none of them."""

    def __init__(self, gang, world, submit):
        self.gang, self.world, self.submit = gang, world, submit

    def __call__(self, chance, faults):
        users = {}
        for bind in self.gang.binds:
            for give in bind.gives:
                users.setdefault((give.namespace, give.claim), (give, []))[1].append(bind)
        bad = set()
        for give, binds in users.values():
            refused = faults and chance.random() < 0.1
            if refused or not self._write(give, binds):
                bad.update(bind.uid for bind in binds)
        if not bad:
            self.submit(self.gang)
            return
        for bind in self.gang.binds:
            failure = BindFailure.REFUSED if bind.uid in bad else BindFailure.NOT_SENT
            self.world.hear(BindFailed(bind.uid, bind.node, failure, "claim"))

    def _write(self, give, binds):
        """Allocate and reserve one claim; return whether it could be done."""
        server, uids = self.world.server, [bind.uid for bind in binds]
        claim = server.get("ResourceClaim", give.claim, give.namespace)
        if claim is None or claim.uid != give.uid:
            return False
        if claim.terminating:
            return False
        allocation = claim.allocation or give.allocation
        if _devices(allocation) != _devices(give.allocation):
            return False
        reserved = tuple(dict.fromkeys((*claim.reserved_for, *uids)))
        version = str(server.number())
        claim = replace(claim, allocation=allocation, reserved_for=reserved, version=version)
        server.put(claim)
        self.world.hear(ClaimWritten(claim))
        return True


def _devices(allocation):
    return [one.device for one in allocation.devices]


class Release:
    """Take a claim's devices back, if it is as it was when that was decided."""

    def __init__(self, one, world):
        self.one, self.world = one, world

    def __call__(self, chance, faults):
        one, server = self.one, self.world.server
        claim = server.get("ResourceClaim", one.claim, one.namespace)
        if claim is None or (claim.uid, claim.version) != (one.uid, one.version):
            return
        free = {"allocation": None, "reserved_for": (), "version": str(server.number())}
        server.put(replace(claim, **free))


def tidy(server):
    """Free what pods reserved that are gone or finished; delete what was made for pods that are."""
    for claim in server.of_kind("ResourceClaim"):
        if claim.owner_uid and claim.owner_uid not in server.pods:
            server.remove("ResourceClaim", claim.name, claim.namespace)
            continue
        left = tuple(
            uid
            for uid in claim.reserved_for
            if uid in server.pods and not server.pods[uid].finished
        )
        if left != claim.reserved_for:
            allocation = claim.allocation if left else None
            version = str(server.number())
            server.put(replace(claim, reserved_for=left, allocation=allocation, version=version))


def check_devices(server, expect):
    """No device is given to two claims."""
    given = {}
    for claim in server.of_kind("ResourceClaim"):
        for one in claim.allocation.devices if claim.allocation is not None else ():
            if one.is_exclusive:
                other = given.setdefault(one.device, claim.name)
                expect(other == claim.name, "a device is given twice", str(one.device))
