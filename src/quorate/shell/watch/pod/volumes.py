"""What the volume rules read of a pod's ``spec.volumes``: its claims.

Called by ``decoding`` for each version of each pod that has volumes.
"""

from __future__ import annotations

from quorate.core.model import ClaimUse
from quorate.shell.watch.pod.wire import SpecError, Volume, is_set


def claims(pod: str, volumes: list[Volume]) -> tuple[ClaimUse, ...]:
    """Return the claims that a pod uses, in the order of its volumes. Raises ``SpecError``."""
    found = []
    for index, volume in enumerate(volumes):
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            if not name:
                path = f"spec.volumes[{index}].persistentVolumeClaim.claimName"
                raise SpecError(f"{path}: must not be empty")
            found.append(ClaimUse(name))
        elif is_set(volume.ephemeral):
            found.append(ClaimUse(f"{pod}-{volume.name}", ephemeral=True))
    return tuple(found)


def own_disk(volumes: list[Volume]) -> str:
    """Return the first volume that is a disk without a claim, and what to do; "" for none.

    Which nodes may mount such a disk is not looked at (docs/users/limits.md).
    """
    for index, volume in enumerate(volumes):
        disks = {
            "awsElasticBlockStore": volume.aws_elastic_block_store,
            "azureDisk": volume.azure_disk,
            "cinder": volume.cinder,
            "gcePersistentDisk": volume.gce_persistent_disk,
            "iscsi": volume.iscsi,
            "portworxVolume": volume.portworx_volume,
            "rbd": volume.rbd,
        }
        for field, written in disks.items():
            if is_set(written):
                path = f"spec.volumes[{index}].{field}"
                return f"{path}: is not supported, use a persistentVolumeClaim"
    return ""
