"""What has to be written into ResourceClaims before pods are bound, and what is taken back.

In: placed members, and the devices that the room allocated to their claims. Out: ``Give`` for each
pod, and ``TakeBack`` for claims of waiting pods that hold devices. Called by ``turn.cycle`` and
``turn.planning``. Source: PreBind and PostFilter of kube-scheduler 1.36's DynamicResources.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.devices.requests import DeviceNeeds
from quorate.core.cluster.devices.special_claims import claim_name, requests_of
from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import Allocation, Pod
from quorate.core.model.plan import Give, SpecialClaim, TakeBack
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
        needed = [one.claim for one in pod.device_claims if one.claim]
        for place, name in enumerate(needed):
            key = pod.namespace, name
            claim = devices.claims[key]
            is_ready = key not in devices.taken_back and not claim.binding_pending
            if claim.allocation is not None and pod.uid in claim.reserved_for and is_ready:
                continue
            allocation = claim.allocation or given.get(place) or room.device_room.allocation(key)
            assert allocation is not None, "a claim of a placed pod has devices"
            mine.append(Give(claim.namespace, claim.name, claim.uid, allocation))
        if len(needed) in given:
            mine.append(_special(pod, pod_class.device_needs, row, given[len(needed)], room))
        gives.append(tuple(mine))
    return gives


def _special(pod: Pod, ask: DeviceNeeds, row: int, allocation: Allocation, room: Room) -> Give:
    """Return the claim to create for the extended resources that the node does not list itself."""
    assert ask.extended is not None, "only they are given a claim that does not exist"
    lacked = frozenset(n for n in ask.extended.backed if not room.snapshot.sizes(n)[row])
    wanted, mappings = requests_of(ask.extended.containers, lacked)
    class_of = dict(zip(ask.extended.backed, ask.extended.classes, strict=True))
    return Give(
        namespace=pod.namespace,
        claim=claim_name(pod),
        uid="",
        allocation=allocation,
        special=SpecialClaim(
            tuple((one.name, class_of[one.resource].name, one.devices) for one in wanted), mappings
        ),
    )


def take_backs(gang: GangEntry, cluster: Cluster) -> list[TakeBack]:
    """Return the claims of waiting members whose devices are reserved for that member alone.

    A waiting gang must hold nothing, not even what a failed plan of it has written.
    """
    found: list[TakeBack] = []
    if cluster.devices.has_no_users or gang.attempt is not None:
        return found
    for entry in gang.members.values():
        pod = entry.pod
        if not entry.ours or entry.where is not Where.WAITING:
            continue
        if left := cluster.devices.special.get(pod.uid):
            unused = cluster.devices.claims[left]
            of = unused.namespace, unused.name, unused.uid, unused.version, pod.uid
            found.append(TakeBack(*of, special=True))
        for one in pod.device_claims:
            claim = cluster.devices.claims.get((pod.namespace, one.claim or ""))
            if claim is None or claim.allocation is None or claim.reserved_for != (pod.uid,):
                continue
            found.append(TakeBack(claim.namespace, claim.name, claim.uid, claim.version, pod.uid))
    return found
