"""Why pods of a gang do not fit: per class, how many do, and which rule rules out how many nodes.

In: a gang that waits and the room. Out: blockers. Called by ``explain`` when somebody looks, never
while planning: a gang that waits costs nothing until then.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from quorate.core.plan.cycle import demand_of, members_of
from quorate.core.plan.filters import node_affinity, taint_toleration
from quorate.core.plan.gang import DoesNotFit, Placement, place_gang
from quorate.core.plan.nominated import Promised, look, promised_to_others, ruled_out
from quorate.core.plan.own_rules import own_rule
from quorate.core.plan.pack import pack
from quorate.core.plan.room import Room
from quorate.core.policy import Policy
from quorate.core.quantity import format_amount
from quorate.core.reasons import Blocker, available
from quorate.core.state.cluster import Cluster
from quorate.core.state.encoding import Ints, Mask, PodClass
from quorate.core.state.gangs import GangEntry


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found: how many waiting members fit now, and what stands in the others' way."""

    fit: int
    fits: bool
    exhausted: bool
    blockers: tuple[Blocker, ...]
    no_node_matches: Blocker | None
    """A class that no node would take even if all were empty of pods, for what nodes are."""
    too_large: tuple[Blocker, str] | None
    """A class that asks for more than any matching node has, and that lack in words."""
    claim_problem: Blocker | None = None
    """A class whose claims cannot be looked at, whatever the nodes are."""
    volume_problem: tuple[Blocker, str] | None = None
    """A class that no node can take because of a claim, and the object and field to mend."""


def diagnose(gang: GangEntry, cluster: Cluster, room: Room, policy: Policy) -> Diagnosis:
    """Try to place the gang, and explain for each class what is in the way. Changes nothing."""
    members = members_of(gang, cluster)
    demand = demand_of(gang, members)
    found = place_gang(demand, room, policy.packing, policy.search_steps_max)
    fit = found.placed if isinstance(found, Placement) else found.fit
    after = room.copy()
    blockers = []
    no_node_matches = too_large = claim_problem = volume_problem = None
    for pod_class, count in demand.classes:
        class_fit = int(pack(pod_class, count, after, policy.packing).sum())
        if class_fit >= count:
            continue
        named = min(entry.pod.name for entry in members[pod_class])
        needed = max(count - max(demand.pods - demand.need, 0), 1)
        blocker = _blocker(pod_class, named, count, class_fit, after, cluster)
        blocker = msgspec.structs.replace(blocker, own_rule=own_rule(pod_class, needed, room))
        blockers.append(blocker)
        if pod_class.wants is not None and pod_class.wants.problems:
            volume_problem = volume_problem or (blocker, pod_class.wants.problems[0].detail)
            continue
        if pod_class.ask is not None and pod_class.ask.problem:
            claim_problem = claim_problem or blocker
            continue
        matching = _matching(pod_class, room)
        if not matching.any():
            no_node_matches = no_node_matches or (blocker if room.snapshot.nodes_alive else None)
        elif lack := _larger_than_any(pod_class, room.snapshot.allocatable[matching], room):
            too_large = too_large or (blocker, lack)
    return Diagnosis(
        fit=fit,
        fits=isinstance(found, Placement) and fit >= demand.pods,
        exhausted=isinstance(found, DoesNotFit) and found.exhausted,
        blockers=tuple(blockers),
        no_node_matches=no_node_matches,
        too_large=too_large,
        claim_problem=claim_problem,
        volume_problem=volume_problem,
    )


def would_fit(gang: GangEntry, cluster: Cluster, room: Room, policy: Policy) -> bool:
    """Return whether all waiting members of the gang have room. Changes nothing."""
    demand = demand_of(gang, members_of(gang, cluster))
    found = place_gang(demand, room, policy.packing, policy.search_steps_max)
    return isinstance(found, Placement) and found.placed >= demand.pods


def _blocker(
    pod_class: PodClass, pod: str, pods: int, fit: int, room: Room, cluster: Cluster
) -> Blocker:
    return Blocker(
        pod=pod,
        pods=pods,
        fit=fit,
        ruled_out=ruled_out(look(pod_class, room, cluster, {}), room),
        nearest_miss=_nearest_miss(pod_class, room),
    )


def nodes_ruled_out(
    pod_class: PodClass, room: Room, cluster: Cluster, promised: Promised | None = None
) -> str:
    """Return kube-scheduler's sentence for a pod that no node takes."""
    seen = look(pod_class, room, cluster, promised or {})
    return available(room.snapshot.nodes_alive, ruled_out(seen, room))


def single_sentence(gang: GangEntry, cluster: Cluster, room: Room) -> str:
    """Return what kube-scheduler would say of a pod of no gang; "" where its profile is ours."""
    if not (gang.key.is_single and gang.waits):
        return ""
    ((pod_class, _),) = members_of(gang, cluster).items()
    if pod_class.profile.packs_gangs:
        return ""
    promised = promised_to_others(gang.priority, cluster, gang)
    said = f" {gang.preemption_said}" if gang.preemption_said else ""
    return nodes_ruled_out(pod_class, room, cluster, promised) + said


def _nearest_miss(pod_class: PodClass, room: Room) -> str:
    """Name the node that lacks the smallest part of the request, and what it lacks."""
    candidates = np.flatnonzero(room.mask(pod_class))
    if not len(candidates):
        return ""
    free = room.free[candidates]
    missing = np.zeros(len(candidates))
    for column, amount in pod_class.demands:
        missing += np.clip(amount - free[:, column], 0, None) / amount
    missing[missing == 0.0] = np.inf  # these fail by another rule
    nearest = int(np.argmin(missing))
    if not np.isfinite(missing[nearest]):
        return ""
    names = room.snapshot.table.resources.names
    lacks = [
        f"{format_amount(names[column], amount - int(free[nearest, column]))} {names[column]}"
        for column, amount in pod_class.demands
        if free[nearest, column] < amount
    ]
    node = room.snapshot.node(int(candidates[nearest])).name
    return f"node {node} lacks {' and '.join(lacks)}"


def _matching(pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: nodes that would pass the attribute rules, were no node cordoned."""
    snapshot, shape = room.snapshot, pod_class.shape
    tolerated = taint_toleration.passes(shape, snapshot) | snapshot.unschedulable
    return snapshot.alive & tolerated & node_affinity.passes(shape, snapshot)


def _larger_than_any(pod_class: PodClass, matching: Ints, room: Room) -> str:
    """Say which request is larger than the largest matching node, were it empty.

    ``matching`` is int64[m, r]: what the matching nodes have.
    """
    if (np.all([matching[:, c] >= a for c, a in pod_class.demands], axis=0)).any():
        return ""
    names = room.snapshot.table.resources.names
    for column, amount in pod_class.demands:
        largest = int(matching[:, column].max(initial=0))
        if largest < amount:
            name = names[column]
            has = format_amount(name, largest) if largest else "none"
            return f"{format_amount(name, amount)} {name}; the largest matching node has {has}"
    asked = " and ".join(f"{format_amount(names[c], a)} {names[c]}" for c, a in pod_class.demands)
    return f"{asked} together; no matching node has all of it"
