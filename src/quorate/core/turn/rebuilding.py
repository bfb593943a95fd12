"""Builds the cluster state again from the objects in memory, after a defect may have damaged it.

In: the objects, and the parts of the old state that no object holds: binds under way, claims just
written, attempts, reservations, promises. Out: a new ``Cluster``, with all counts made again.
Called by ``scheduler``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry, Where
from quorate.core.cluster.gangs.pods import SETTLED, UNDER_WAY
from quorate.core.cluster.objects import Objects
from quorate.core.model import GangKey, changes
from quorate.core.model import policy as bounds
from quorate.core.model.plan import GangBinds
from quorate.core.model.policy import Policy
from quorate.core.turn.defects import Defects


def rebuilt(
    old: Cluster,
    objects: Objects,
    defects: Defects,
    policy: Policy,
    preparing: Iterable[GangBinds],
) -> Cluster:
    """Return a new cluster with the same objects; an object that meets a defect is set aside.

    ``preparing`` are the plans whose claims are being bound.
    """
    for _ in range(bounds.REBUILDING_PASSES_MAX):
        new, is_sound = _told_anew(old, objects, defects, policy)
        if _are_carried(old, new, defects) and is_sound:
            break
    new.previous_journal = old.previous_journal
    steps: list[Callable[[], None]] = []
    for key, gang in old.gangs.items():
        if key in new.gangs:
            steps.append(partial(_carry_gang, gang, new.gangs[key]))
    steps += [partial(new.devices.put_written, claim) for claim in old.devices.written()]
    steps += [partial(_carry_reservations, old, new), partial(_carry_claims, old, new, preparing)]
    for step in steps:
        try:
            step()
        except Exception as error:  # the API server has it, or will: a later change brings it
            defects.note("rebuild", "what only we know", error)
    new.touched.update(new.gangs)
    new.nodes_differ = True
    return new


def _told_anew(
    old: Cluster, objects: Objects, defects: Defects, policy: Policy
) -> tuple[Cluster, bool]:
    """Return a new cluster with all objects, and whether none of them met a defect."""
    new = Cluster(policy.scheduler_names, dict(policy.profiles))
    stand_ins, is_sound = defects.stand_ins(), True
    newest = {what: change for what, change in objects.all(old) if what not in stand_ins}
    for what, change in newest.items():
        try:
            new.apply(change)
        except Exception as error:
            defects.set_aside(what, change, error)
            is_sound = False
    for what, simple in stand_ins.items():
        try:
            if simple is not None:
                new.apply(simple)
        except Exception as error:
            defects.weaken(what, error)
            is_sound = False
    return new, is_sound


def _are_carried(old: Cluster, new: Cluster, defects: Defects) -> bool:
    """Carry over what no object says of pods; return whether no pod met a defect.

    A pod that meets one is set aside. What stands in for a pod takes over its place too: a bind
    under way goes on, and its room must not be given again.
    """
    is_sound = True
    for uid, before in old.pods.items():
        entry, what = new.pods.get(uid), ("pod", uid)
        if entry is None:
            continue
        is_aside = defects.has(what)
        try:
            _carry_place(before, entry, new, is_aside=is_aside)
            _carry_decisions(before, entry, new, is_aside=is_aside)
        except Exception as error:
            if is_aside:
                defects.weaken(what, error, node=before.node)
            else:
                defects.set_aside(what, changes.PodChanged(entry.pod), error, bare=True)
            is_sound = False
    return is_sound


def _carry_place(before: PodEntry, entry: PodEntry, cluster: Cluster, *, is_aside: bool) -> None:
    """Carry over what the watch has not reported yet: the pod's place and node, by our bind.

    The change that met the defect may have moved the pod to another gang.
    """
    gang, is_moved = entry.gang, _key_of(entry) != _key_of(before)
    is_said = (is_aside or is_moved) and entry.pod.bound_for  # and counted when it was taken in
    if gang is not None and not is_said:
        gang.set_adopted(entry, before.where in SETTLED if is_moved else before.adopted)
    entry.elsewhere = before.elsewhere
    if before.where in UNDER_WAY and entry.where not in (Where.BOUND, Where.REFUSED):
        cluster.move(entry, Where.RELABELLED if is_moved else before.where, before.node)
    elif before.where is Where.BOUND and entry.where not in (Where.BOUND, Where.REFUSED):
        cluster.move(entry, Where.BOUND, before.node)
    elif before.where is Where.PAST and entry.where is not Where.REFUSED:
        where = Where.BOUND if is_moved else Where.PAST
        cluster.move(entry, where, entry.node or before.node)


def _carry_decisions(
    before: PodEntry, entry: PodEntry, cluster: Cluster, *, is_aside: bool
) -> None:
    """Carry over what we decided of a pod. What stands in for one has no promise of room."""
    entry.preempting = before.preempting
    if before.nominated != entry.nominated and not is_aside:
        cluster.precedence.nominate(entry, before.nominated)
    if before.evicting and entry.gang is not None:
        entry.gang.give_up([entry])


def _key_of(entry: PodEntry) -> GangKey | None:
    return entry.gang.key if entry.gang is not None else None


def _carry_gang(before: GangEntry, gang: GangEntry) -> None:
    evicting = gang.lifecycle.evicting
    gang.lifecycle, gang.memory = before.lifecycle, before.memory
    gang.lifecycle.evicting = evicting
    attempt = gang.lifecycle.attempt
    if attempt is not None:
        under_way = (uid for uid, one in gang.members.items() if one.where is Where.ASSUMED)
        attempt.open = set(under_way)
    own = bool(gang.own)
    if own and gang.stays and gang.quorum_is_known and gang.is_met:
        gang.lifecycle.become_quorate()  # the change that met the defect made it quorate


def _carry_reservations(old: Cluster, new: Cluster) -> None:
    """Carry over reservations; the class that each one names is a new object now."""
    new.reservations = old.reservations
    new.reservations.move_to(new.classes)
    new.touched.update(one.key for one in new.reservations)  # its gang may be gone


def _carry_claims(old: Cluster, new: Cluster, preparing: Iterable[GangBinds]) -> None:
    """Carry over the volumes, nodes and devices that plans under way give to claims, or take."""
    for plan in preparing:
        for bind in plan.binds:
            entry = new.pods.get(bind.uid)
            if entry is None or entry.where not in UNDER_WAY or entry.node != bind.node:
                continue
            if bind.prepare:
                prepared = [(one.key, one.volume, one.node) for one in bind.prepare]
                new.storage.assume(bind.uid, prepared)
    for key, uid, allocation in old.devices.assumed.all():
        new.devices.assume(key, allocation, uid)
    for key in old.devices.taken_back & new.devices.claims.keys():
        if new.devices.claims[key].version == old.devices.claims[key].version:
            new.devices.taken_back.add(key)
