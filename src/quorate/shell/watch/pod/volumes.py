"""What the volume rules read of a pod's ``spec.volumes``: claims, and disks without a claim.

Called by ``decoding`` for each version of each pod that has volumes.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from quorate.core.model import ClaimUse, Disk
from quorate.core.model.storage import ISCSI, RBD
from quorate.shell.watch.pod.wire import SpecError, Volume, decode_part, is_set
from quorate.shell.watch.storage import gce_handle, in_tree_handle


class _Source(Struct, gc=False):
    """The union of the fields of all these sources; each source uses a few."""

    pdName: str = ""  # noqa: N815 - the API's own names
    volumeID: str = ""  # noqa: N815
    diskURI: str = ""  # noqa: N815
    iqn: str = ""
    monitors: list[str] | None = None
    pool: str = "rbd"
    image: str = ""
    readOnly: bool | None = None  # noqa: N815


_SOURCE = msgspec.json.Decoder(_Source)


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


def disks(volumes: list[Volume]) -> tuple[Disk, ...]:
    """Return the disks that a pod names without a claim, sorted. Raises ``SpecError``."""
    found: set[Disk] = set()
    for volume in volumes:
        sources = (
            (volume.gce_persistent_disk, "kubernetes.io/gce-pd"),
            (volume.aws_elastic_block_store, "kubernetes.io/aws-ebs"),
            (volume.azure_disk, "kubernetes.io/azure-disk"),
            (volume.cinder, "kubernetes.io/cinder"),
            (volume.portworx_volume, "kubernetes.io/portworx-volume"),
            (volume.iscsi, ISCSI),
            (volume.rbd, RBD),
        )
        found.update(_disk(raw, plugin) for raw, plugin in sources if is_set(raw))
    return tuple(sorted(found))


def _disk(raw: Raw, plugin: str) -> Disk:
    source = decode_part(_SOURCE, raw, "spec.volumes")
    read_only = bool(source.readOnly)
    if plugin == RBD:
        monitors = tuple(sorted(source.monitors or ()))
        return Disk(plugin, f"{source.pool}/{source.image}", read_only, monitors)
    if plugin == ISCSI:
        return Disk(plugin, source.iqn, read_only)
    if plugin == "kubernetes.io/gce-pd":
        return Disk(plugin, gce_handle(source.pdName), read_only)
    return Disk(plugin, in_tree_handle(plugin, source.volumeID or source.diskURI), read_only)
