"""What has to be written for volume claims of a placed pod before its bind. For ``turn.cycle``."""

from __future__ import annotations

from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.storage.storage import Storage
from quorate.core.cluster.storage.volume_needs import is_kept_for, unbound_claims
from quorate.core.model.plan import Prepare
from quorate.core.model.storage import ClaimKey
from quorate.core.room.room import Room


def prepares(
    entry: PodEntry,
    pod_class: PodClass,
    row: int,
    room: Room,
    prepared: set[ClaimKey],
    storage: Storage,
) -> tuple[Prepare, ...]:
    """Return the writes that bind the pod's claims to the chosen volumes, or provision new ones.

    The class must have unbound claims. ``prepared`` are the claims that members of the gang have
    prepared already; the pod's claims are added to it.
    """
    chosen = room.volumes.take_chosen(pod_class, row)
    node = room.snapshot.node(row).name
    found = []
    for claim, name in zip(unbound_claims(entry.pod, storage), chosen, strict=True):
        if claim.key in prepared:
            continue  # another member has it
        prepared.add(claim.key)
        volume = storage.volumes[name] if name else None
        found.append(
            Prepare(
                claim.namespace,
                claim.name,
                claim.uid,
                node,
                name,
                version=volume.version if volume else "",
                marks=volume is not None and volume.claim is None,
                written=is_kept_for(volume.claim, claim) if volume else claim.selected_node == node,
            )
        )
    return tuple(found)
