"""References among storage objects: claims by volume and class, volumes by class and claim.

Owned and updated by ``cluster.storage.storage``.
"""

from __future__ import annotations

from typing import TypeVar

from quorate.core.model.storage import Claim, ClaimKey, Volume, VolumeAttachment

K = TypeVar("K")
V = TypeVar("V")


class Index:
    """Updated with each object as it was before and is after a change (None: it does not exist)."""

    def __init__(self) -> None:
        self.claims_on: dict[str, dict[ClaimKey, None]] = {}
        """Claims by the volume that they name."""
        self.claims_in: dict[str, dict[ClaimKey, None]] = {}
        """Claims by storage class."""
        self.volumes_in: dict[str, dict[str, None]] = {}
        """Volumes by storage class."""
        self.volumes_for: dict[ClaimKey, dict[str, None]] = {}
        """Volumes by the claim that they are kept for."""
        self.attachments_of: dict[str, dict[str, None]] = {}
        """Attachments by volume."""

    def claim_changed(self, key: ClaimKey, before: Claim | None, after: Claim | None) -> None:
        """Index a claim by its volume and class."""
        for one, change in ((before, _leave), (after, _join)):
            if one is not None:
                change(self.claims_on, one.volume, key)
                change(self.claims_in, one.storage_class, key)

    def volume_changed(self, before: Volume | None, after: Volume | None) -> None:
        """Index a volume by its class and the claim for which it is kept."""
        for one, change in ((before, _leave), (after, _join)):
            if one is not None:
                change(self.volumes_in, one.storage_class, one.name)
                if one.claim is not None:
                    key = ClaimKey(one.claim.namespace, one.claim.name)
                    if change is _join:
                        _join(self.volumes_for, key, one.name)
                    else:
                        _leave(self.volumes_for, key, one.name)

    def attachment_changed(
        self, name: str, before: VolumeAttachment | None, after: VolumeAttachment | None
    ) -> None:
        """Index an attachment by its volume."""
        if before is not None:
            _leave(self.attachments_of, before.volume, name)
        if after is not None:
            _join(self.attachments_of, after.volume, name)


def _join(groups: dict[K, dict[V, None]], group: K, member: V) -> None:
    groups.setdefault(group, {})[member] = None


def _leave(groups: dict[K, dict[V, None]], group: K, member: V) -> None:
    groups[group].pop(member, None)
    if not groups[group]:
        del groups[group]
