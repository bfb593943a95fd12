"""Why pods of a gang do not fit: per class, how many do, and which rule rules out how many nodes.

In: a gang that waits and the room. Out: blockers. Called by ``explain`` when somebody looks, never
while planning: a gang that waits costs nothing until then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from msgspec import structs

from quorate.core.model import Pod
from quorate.core.plan.cycle import demand_of, members_of
from quorate.core.plan.filters import inter_pod_affinity, node_affinity, taint_toleration
from quorate.core.plan.gang import DoesNotFit, Placement, place_gang
from quorate.core.plan.impossible import impossible_field
from quorate.core.plan.nominated import Promised, look, promised_to_others, ruled_out
from quorate.core.plan.own_rules import own_rule
from quorate.core.plan.pack import pack
from quorate.core.plan.room import Room
from quorate.core.plan.to_mend import doubtful, is_broken, to_mend
from quorate.core.policy import Policy
from quorate.core.quantity import format_amount
from quorate.core.reasons import Blocker, available
from quorate.core.state.arrays import Ints, Mask
from quorate.core.state.cluster import Cluster
from quorate.core.state.encoding import PodClass
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
    """A class that no node can take because of a claim, of a volume or of devices."""
    impossible: Blocker | None = None
    """A class of which a field keeps it from every node that there could be."""

    awaits_pods: Blocker | None = None
    """A class that has to be near pods of which none is placed, nor in its gang."""

    @property
    def to_mend(self) -> str:
        """The object and the field that somebody has to make or to mend; "" if none is known."""
        about = self.claim_problem or self.impossible or next(iter(self.blockers), None)
        return about.to_mend if about is not None else ""

    def of_pod(self, name: str) -> Diagnosis:
        """Return the same of another pod, which is like the one that was looked at."""

        def renamed(blocker: Blocker) -> Blocker:
            return structs.replace(blocker, pod=name)

        def of(blocker: Blocker | None) -> Blocker | None:
            return renamed(blocker) if blocker is not None else None

        return replace(
            self,
            blockers=tuple(map(renamed, self.blockers)),
            no_node_matches=of(self.no_node_matches),
            too_large=(renamed(self.too_large[0]), self.too_large[1]) if self.too_large else None,
            claim_problem=of(self.claim_problem),
            impossible=of(self.impossible),
            awaits_pods=of(self.awaits_pods),
        )


class Diagnoses:
    """Diagnoses of one instant. Alike pods of no gang are looked at once."""

    def __init__(self, cluster: Cluster, policy: Policy) -> None:
        self._cluster, self._policy = cluster, policy
        self._shared: dict[tuple[int, int], tuple[Diagnosis, str]] = {}

    def of(self, gang: GangEntry, room: Room, whole: Room) -> tuple[Diagnosis, str]:
        """Return what is in the way of a gang that waits, and how kube-scheduler would say it.

        ``room`` is what it may use of the ``whole`` room. No words where the profile is ours.
        """
        if not gang.key.is_single:
            return diagnose(gang, self._cluster, room, self._policy), ""
        ((pod_class, (entry,)),) = members_of(gang, self._cluster).items()
        alike = pod_class.id, gang.priority
        # What a claim lacks, and a nomination, are of this pod alone.
        is_alone = bool(entry.nominated or entry.pod.claims or entry.pod.device_claims)
        found = self._shared.get(alike)
        if found is None or is_alone:
            seen = diagnose(gang, self._cluster, room, self._policy)
            found = seen, single_sentence(gang, self._cluster, whole)
            if not is_alone:
                self._shared[alike] = found
        diagnosis, sentence = found
        said = f" {gang.preemption_said}" if sentence and gang.preemption_said else ""
        return diagnosis.of_pod(entry.pod.name), sentence + said


def diagnose(gang: GangEntry, cluster: Cluster, room: Room, policy: Policy) -> Diagnosis:
    """Try to place the gang, and explain for each class what is in the way. Changes nothing."""
    members = members_of(gang, cluster)
    demand = demand_of(gang, members)
    found = place_gang(demand, room, policy.packing, policy.search_steps_max)
    fit = found.placed if isinstance(found, Placement) else found.fit
    after = room.copy()
    blockers = []
    no_node_matches = too_large = claim_problem = impossible = awaits_pods = None
    for pod_class, count in demand.classes:
        class_fit = int(pack(pod_class, count, after, policy.packing).sum())
        if class_fit >= count:
            continue
        named = min((entry.pod for entry in members[pod_class]), key=lambda pod: pod.name)
        needed = max(count - max(demand.pods - demand.need, 0), 1)
        blocker = _blocker(pod_class, named, (count, class_fit), after, cluster)
        mend, never = to_mend(named, cluster), impossible_field(pod_class.shape)
        blocker = msgspec.structs.replace(
            blocker,
            to_mend=mend or never or blocker.to_mend,
            own_rule=own_rule(pod_class, needed, room),
        )
        blockers.append(blocker)
        if mend or is_broken(one.message for one in blocker.ruled_out):
            claim_problem = claim_problem or blocker
            continue
        if never:
            impossible = impossible or blocker
            continue
        if _awaits_pods(pod_class, members, room):
            awaits_pods = awaits_pods or blocker
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
        impossible=impossible,
        awaits_pods=awaits_pods,
    )


def _awaits_pods(pod_class: PodClass, members: Iterable[PodClass], room: Room) -> bool:
    """Whether only pods that are not the gang's own could let the class go somewhere."""
    if not inter_pod_affinity.is_alone(pod_class, room):
        return False
    return not any(inter_pod_affinity.attracts(pod_class, other, room) for other in members)


def would_fit(gang: GangEntry, cluster: Cluster, room: Room, policy: Policy) -> bool:
    """Return whether all waiting members of the gang have room. Changes nothing."""
    demand = demand_of(gang, members_of(gang, cluster))
    found = place_gang(demand, room, policy.packing, policy.search_steps_max)
    return isinstance(found, Placement) and found.placed >= demand.pods


def _blocker(
    pod_class: PodClass, pod: Pod, counts: tuple[int, int], room: Room, cluster: Cluster
) -> Blocker:
    pods, fit = counts
    found = ruled_out(look(pod_class, room, cluster, {}), room)
    return Blocker(
        pod=pod.name,
        pods=pods,
        fit=fit,
        ruled_out=found,
        nearest_miss=_nearest_miss(pod_class, room),
        to_mend=doubtful(pod, cluster, [one.message for one in found]),
    )


def nodes_ruled_out(
    pod_class: PodClass, room: Room, cluster: Cluster, promised: Promised | None = None
) -> str:
    """Return kube-scheduler's sentence for a pod that no node takes."""
    seen = look(pod_class, room, cluster, promised or {})
    return available(room.snapshot.nodes_alive, ruled_out(seen, room))


def single_sentence(gang: GangEntry, cluster: Cluster, room: Room) -> str:
    """Return what its filters say of a pod of no gang; "" where its profile is ours."""
    ((pod_class, _),) = members_of(gang, cluster).items()
    if pod_class.profile.packs_gangs:
        return ""
    promised = promised_to_others(gang.priority, cluster, gang)
    return nodes_ruled_out(pod_class, room, cluster, promised)


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
    backed = pod_class.ask.extended.backed if pod_class.ask and pod_class.ask.extended else ()
    names = room.snapshot.table.resources.names
    demands = [(c, a) for c, a in pod_class.demands if names[c] not in backed]
    if (np.all([matching[:, c] >= a for c, a in demands], axis=0)).any():
        return ""
    for column, amount in demands:
        largest = int(matching[:, column].max(initial=0))
        if largest < amount:
            name = names[column]
            has = format_amount(name, largest) if largest else "none"
            return f"{format_amount(name, amount)} {name}; the largest matching node has {has}"
    asked = " and ".join(f"{format_amount(names[c], a)} {names[c]}" for c, a in demands)
    return f"{asked} together; no matching node has all of it"
