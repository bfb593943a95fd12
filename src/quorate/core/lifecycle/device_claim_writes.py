"""What has to be written into ResourceClaims before pods are bound, and what is taken back.

In: placed members, and the devices that the room allocated to their claims. Out: ``Give`` for each
pod, and ``TakeBack`` for claims of waiting pods that hold devices. Called by ``turn.cycle`` and
``turn.planning``. Source: PreBind and PostFilter of kube-scheduler 1.36's DynamicResources.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.devices.requests import claims_of
from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model.plan import Give, TakeBack
from quorate.core.room.room import Room


def claim_writes(
    pod_class: PodClass,
    entries: Sequence[PodEntry],
    rows: Sequence[int],
    room: Room,
    cluster: Cluster,
) -> list[tuple[Give, ...]]:
    """Return for each pod, placed at ``rows``, what to write into its claims for its devices."""
    if pod_class.device_needs is None:
        return [()] * len(entries)
    devices = cluster.devices
    gives = []
    for entry, row in zip(entries, rows, strict=True):
        pod = entry.pod
        given = dict(room.device_room.pop_allocations(pod_class.id, row))
        mine = []
        for place, name in enumerate(claims_of(pod)):
            key = pod.namespace, name or ""
            claim = devices.claims[key]
            is_ready = key not in devices.taken_back
            if claim.allocation is not None and pod.uid in claim.reserved_for and is_ready:
                continue
            allocation = claim.allocation or given.get(place) or room.device_room.allocation(key)
            assert allocation is not None, "a claim of a placed pod has devices"
            mine.append(Give(claim.namespace, claim.name, claim.uid, allocation))
        gives.append(tuple(mine))
    return gives


def take_backs(gang: GangEntry, cluster: Cluster) -> list[TakeBack]:
    """Return the claims of waiting members whose devices are reserved for that member alone.

    A waiting gang must hold nothing, not even what a failed plan of it has written.
    """
    found: list[TakeBack] = []
    if not cluster.devices.users or gang.attempt is not None:
        return found
    for entry in gang.members.values():
        pod = entry.pod
        if not entry.ours or entry.where is not Where.WAITING:
            continue
        for name in claims_of(pod):
            claim = cluster.devices.claims.get((pod.namespace, name or ""))
            if claim is None or claim.allocation is None or claim.reserved_for != (pod.uid,):
                continue
            found.append(TakeBack(claim.namespace, claim.name, claim.uid, claim.version, pod.uid))
    return found
