"""Devices that binds under way may yet write into claims. Owned by ``devices``.

What a bind may write is assumed until that bind has an outcome, whatever the watch says of its pod
or of the claim meanwhile. For another pod that shares the claim may let it be allocated and freed
again, and the late write then allocates it once more. Only a claim that is gone ends this earlier:
the write names the claim's uid, so it reaches no other one. But a special claim is made again by
its write.
"""

from __future__ import annotations

from quorate.core.cluster.devices.counts import ClaimKey
from quorate.core.model import Allocation, ResourceClaim


class Assumed:
    """Allocations, by claim and by the uid of the pod whose bind writes them."""

    def __init__(self) -> None:
        self._of_claim: dict[ClaimKey, list[tuple[Allocation, dict[str, None]]]] = {}
        """Unequal ones with the uids, the first assumed first. Pods that share a claim have one."""
        self._of_pod: dict[str, dict[ClaimKey, None]] = {}
        self.gone: dict[ClaimKey, str] = {}
        """Uids of special claims that are gone, while the binds that may have made them last."""

    def add(self, key: ClaimKey, allocation: Allocation, uid: str) -> None:
        """Assume that the bind of a pod with this uid writes an allocation into a claim."""
        found = self._of_claim.setdefault(key, [])
        alike = next((uids for known, uids in found if known == allocation), None)
        if alike is None:
            found.append((allocation, {uid: None}))
        else:
            alike[uid] = None
        self._of_pod.setdefault(uid, {})[key] = None

    def remove(self, key: ClaimKey, uid: str) -> None:
        """Forget what a pod's bind writes into a claim. KeyError if nothing is assumed."""
        del self._of_pod[uid][key]
        if not self._of_pod[uid]:
            del self._of_pod[uid]
        found = self._of_claim[key]
        for place, (_, uids) in enumerate(found):
            if uid in uids:
                del uids[uid]
                if not uids:
                    del found[place]
                break
        if not found:
            del self._of_claim[key]
            self.gone.pop(key, None)

    def of_claim(self, key: ClaimKey) -> list[Allocation]:
        """Return what binds under way may write into a claim, the first assumed first."""
        return [allocation for allocation, _ in self._of_claim.get(key, ())]

    def of_pod(self, uid: str) -> list[ClaimKey]:
        """Return the claims into which a pod's bind may write."""
        return list(self._of_pod.get(uid, ()))

    def all(self) -> list[tuple[ClaimKey, str, Allocation]]:
        """Return each claim, the uid of each pod whose bind writes into it, and what it writes."""
        return [
            (key, uid, allocation)
            for key, found in self._of_claim.items()
            for allocation, uids in found
            for uid in uids
        ]

    def claim_gone(self, claim: ResourceClaim) -> None:
        """Note that a claim is gone, or that another has its name."""
        key = claim.namespace, claim.name
        if not claim.special:
            for uid in [uid for _, uids in self._of_claim.get(key, ()) for uid in uids]:
                self.remove(key, uid)
        elif key in self._of_claim:
            self.gone[key] = claim.uid

    def may_have_made(self, claim: ResourceClaim) -> bool:
        """Whether a bind under way may have made this claim, and it is not known to be gone."""
        key = claim.namespace, claim.name
        return claim.special and key in self._of_claim and self.gone.get(key) != claim.uid
