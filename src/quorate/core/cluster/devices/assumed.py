"""Devices that binds under way may yet write into claims. Owned by ``devices``.

What a bind may write is assumed until that bind has an outcome, whatever the watch says of its pod
or of the claim meanwhile. For another pod that shares the claim may let it be allocated and freed
again, and the late write then allocates it once more. Only a claim that is gone ends this earlier:
the write names the claim's uid, so it reaches no other one.
"""

from __future__ import annotations

from quorate.core.model import Allocation

ClaimKey = tuple[str, str]
"""A claim's namespace and name."""


class Assumed:
    """Allocations, by claim and by the uid of the pod whose bind writes them."""

    def __init__(self) -> None:
        self._of_claim: dict[ClaimKey, dict[str, Allocation]] = {}
        """By pod's uid, the first assumed first."""
        self._of_pod: dict[str, dict[ClaimKey, None]] = {}

    def add(self, key: ClaimKey, allocation: Allocation, uid: str) -> None:
        """Assume that the bind of a pod with this uid writes an allocation into a claim."""
        self._of_claim.setdefault(key, {})[uid] = allocation
        self._of_pod.setdefault(uid, {})[key] = None

    def remove(self, key: ClaimKey, uid: str) -> None:
        """Forget what a pod's bind writes into a claim. KeyError if nothing is assumed."""
        del self._of_pod[uid][key]
        if not self._of_pod[uid]:
            del self._of_pod[uid]
        del self._of_claim[key][uid]
        if not self._of_claim[key]:
            del self._of_claim[key]

    def of_claim(self, key: ClaimKey) -> dict[str, Allocation]:
        """Return what binds under way may write into a claim, by pod, the first assumed first."""
        return self._of_claim.get(key, {})

    def of_pod(self, uid: str) -> list[ClaimKey]:
        """Return the claims into which a pod's bind may write."""
        return list(self._of_pod.get(uid, ()))

    def all(self) -> list[tuple[ClaimKey, str, Allocation]]:
        """Return each claim, the uid of each pod whose bind writes into it, and what it writes."""
        return [
            (key, uid, allocation)
            for key, by_pod in self._of_claim.items()
            for uid, allocation in by_pod.items()
        ]

    def claim_gone(self, key: ClaimKey) -> None:
        """Forget what binds write into a claim that is gone, or whose name another claim has."""
        for uid in list(self._of_claim.get(key, ())):
            self.remove(key, uid)
