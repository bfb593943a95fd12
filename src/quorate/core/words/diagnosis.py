"""Why pods of a gang do not fit: per class, how many do, and how many nodes each rule excludes.

In: a waiting gang and the room. Out: a ``Diagnosis``. Called by ``explain`` when somebody asks,
never while planning: a waiting gang costs nothing until then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from msgspec import structs

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import Pod
from quorate.core.model import policy as bounds
from quorate.core.model.policy import Policy
from quorate.core.model.quantity import format_amount
from quorate.core.model.reasons import Blocker, available
from quorate.core.model.steps import Steps, costs
from quorate.core.place.gang import DoesNotFit, place_gang_within
from quorate.core.place.greedy import Demand, Placement, largest_first
from quorate.core.place.members import demand_of, members_of
from quorate.core.place.one_pod.nominated import judge_nodes, ruled_out
from quorate.core.place.packing.pack import pack
from quorate.core.place.tasks import task_minima_of
from quorate.core.room.promises import Promised, Promises
from quorate.core.room.room import Room
from quorate.core.rules.devices.dynamic_resources import is_broken
from quorate.core.rules.filtering import pod_slots
from quorate.core.rules.masks import mask_of
from quorate.core.rules.nodes import node_affinity, taint_toleration
from quorate.core.rules.pods import inter_pod_affinity
from quorate.core.rules.resources.node_resources_fit import free_of
from quorate.core.words.fixes import doubtful, hint, impossible_field
from quorate.core.words.member_rules import own_rule


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result: how many waiting members fit now, and what keeps the others from fitting."""

    fit: int
    """How many of the examined members fit now."""
    looked_at: int | None
    """The number of examined members if the gang has too many classes; None: all."""
    fits: bool
    exhausted: bool
    blockers: tuple[Blocker, ...]
    no_node_matches: Blocker | None
    """A class that no node would take even without pods, because of node attributes."""
    too_large: tuple[Blocker, str] | None
    """A class that asks for more than any matching node has, and the lack in words."""
    claim_problem: Blocker | None = None
    """A class that no node can take because of a claim (volume or devices)."""
    impossible: Blocker | None = None
    """A class with a field that excludes every possible node."""

    awaits_pods: Blocker | None = None
    """A class with affinity to pods that are neither placed nor in its gang."""

    @property
    def hint(self) -> str:
        """The object or field that a person has to create or fix; "" if none is known."""
        about = self.claim_problem or self.impossible or next(iter(self.blockers), None)
        return about.hint if about is not None else ""

    def of_pod(self, name: str) -> Diagnosis:
        """Return this diagnosis for another pod, equal to the one that was examined."""

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
    """Diagnoses of one instant. Equal pods of no gang are examined once."""

    def __init__(self, cluster: Cluster, policy: Policy) -> None:
        self._cluster, self._policy = cluster, policy
        self._shared: dict[tuple[int, int], tuple[Diagnosis, str]] = {}

    def of(self, gang: GangEntry, room: Room, whole: Room) -> tuple[Diagnosis, str]:
        """Return a waiting gang's diagnosis, and kube-scheduler's message for it.

        ``room`` is the part of the ``whole`` room that it may use. The message is "" where the
        profile is ours.
        """
        if not gang.key.is_single:
            return diagnose(gang, self._cluster, room, self._policy), ""
        ((pod_class, (entry,)),) = members_of(gang, self._cluster).items()
        alike = pod_class.id, gang.priority
        # A claim's problem and a nomination concern this pod alone.
        is_alone = bool(entry.nominated or entry.pod.claims or entry.pod.device_claims)
        found = self._shared.get(alike)
        if found is None or is_alone:
            seen = diagnose(gang, self._cluster, room, self._policy)
            found = seen, single_sentence(gang, self._cluster, whole)
            if not is_alone:
                self._shared[alike] = found
        diagnosis, message = found
        memory = gang.memory
        said = f" {memory.preemption_message}" if message and memory.preemption_message else ""
        return diagnosis.of_pod(entry.pod.name), message + said


def diagnose(gang: GangEntry, cluster: Cluster, room: Room, policy: Policy) -> Diagnosis:
    """Try to place the gang, and explain for each class why it does not fit. Changes nothing."""
    members = members_of(gang, cluster)
    demand = demand_of(members, gang.need, task_minima_of(gang))
    classes = _to_look_at(demand, room)
    is_cut = len(classes) < len(demand.classes)
    found = None if is_cut else _placed(demand, room, policy)
    after, fit = room.copy(), 0
    blockers = []
    no_node_matches = too_large = claim_problem = impossible = awaits_pods = None
    for pod_class, count in classes:
        class_fit = int(pack(pod_class, count, after, policy.packing).sum())
        fit += class_fit
        if class_fit >= count:
            continue
        named = min((entry.pod for entry in members[pod_class]), key=lambda pod: pod.name)
        needed = max(count - max(demand.pods - demand.need, 0), 1)
        blocker = _blocker(pod_class, named, (count, class_fit), after, cluster)
        fix, never = hint(named, cluster), impossible_field(pod_class.spec)
        blocker = msgspec.structs.replace(
            blocker,
            hint=fix or never or blocker.hint,
            own_rule=own_rule(pod_class, needed, room),
        )
        blockers.append(blocker)
        if fix or is_broken(one.message for one in blocker.ruled_out):
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
        elif lack := _larger_than_any(pod_class, matching, room):
            too_large = too_large or (blocker, lack)
    if found is not None:
        fit = found.placed if isinstance(found, Placement) else found.fit
    return Diagnosis(
        fit=fit,
        looked_at=sum(count for _, count in classes) if is_cut else None,
        fits=isinstance(found, Placement) and fit >= demand.wanted,
        exhausted=is_cut or (isinstance(found, DoesNotFit) and found.exhausted),
        blockers=tuple(blockers),
        no_node_matches=no_node_matches,
        too_large=too_large,
        claim_problem=claim_problem,
        impossible=impossible,
        awaits_pods=awaits_pods,
    )


def _to_look_at(demand: Demand, room: Room) -> tuple[tuple[PodClass, int], ...]:
    """Return the classes to examine one by one: all, or those most likely to be the blockers.

    Classes with too few slots even alone come first, as far as steps go; then the largest.
    """
    if len(demand.classes) <= bounds.EXPLAINED_CLASSES_MAX:
        return demand.classes
    steps, is_first = Steps(bounds.EXPLAIN_STEPS_MAX), dict[int, bool]()
    ordered = largest_first(demand.classes, room)
    for pod_class, count in ordered:
        if steps.are_over:
            break
        steps.take(1 + len(room.free) // costs.EXPLAINED_NODES_PER_STEP)
        is_first[pod_class.id] = int(pod_slots(pod_class, room).sum()) < count
    ordered = tuple(sorted(ordered, key=lambda one: not is_first.get(one[0].id)))
    return ordered[: bounds.EXPLAINED_CLASSES_MAX]


def _placed(demand: Demand, room: Room, policy: Policy) -> Placement | DoesNotFit:
    steps = Steps(min(policy.search_steps_max, bounds.EXPLAIN_STEPS_MAX))
    return place_gang_within(demand, room, policy.packing, steps)


def _awaits_pods(pod_class: PodClass, members: Iterable[PodClass], room: Room) -> bool:
    """Whether the class can be placed only after pods outside the gang are placed."""
    if not inter_pod_affinity.is_alone(pod_class, room):
        return False
    return not any(inter_pod_affinity.attracts(pod_class, other, room) for other in members)


def would_fit(gang: GangEntry, cluster: Cluster, room: Room, policy: Policy) -> bool:
    """Return whether all pods that a plan would place have room. Changes nothing.

    It is not computed for a gang with too many classes.
    """
    demand = demand_of(members_of(gang, cluster), gang.need, task_minima_of(gang))
    if len(demand.classes) > bounds.EXPLAINED_CLASSES_MAX:
        return False
    found = _placed(demand, room, policy)
    return isinstance(found, Placement) and found.placed >= demand.wanted


def _blocker(
    pod_class: PodClass, pod: Pod, counts: tuple[int, int], room: Room, cluster: Cluster
) -> Blocker:
    pods, fit = counts
    found = ruled_out(judge_nodes(pod_class, room, cluster, {}), room)
    return Blocker(
        pod=pod.name,
        pods=pods,
        fit=fit,
        ruled_out=found,
        nearest_miss=_nearest_miss(pod_class, room),
        hint=doubtful(pod, cluster, [one.message for one in found]),
    )


def nodes_ruled_out(
    pod_class: PodClass, room: Room, cluster: Cluster, promised: Promised | None = None
) -> str:
    """Return kube-scheduler's message for a pod that no node takes."""
    seen = judge_nodes(pod_class, room, cluster, promised or {})
    return available(room.snapshot.nodes_alive, ruled_out(seen, room))


def single_sentence(gang: GangEntry, cluster: Cluster, room: Room) -> str:
    """Return the filters' message for a pod of no gang; "" where its profile is ours."""
    ((pod_class, _),) = members_of(gang, cluster).items()
    if pod_class.profile.packs_gangs:
        return ""
    promised = Promises.of(cluster).to_others(gang.priority, gang)
    return nodes_ruled_out(pod_class, room, cluster, promised)


def _nearest_miss(pod_class: PodClass, room: Room) -> str:
    """Name the node that lacks the smallest part of the request, and what it lacks."""
    candidates = np.flatnonzero(mask_of(pod_class, room))
    if not len(candidates):
        return ""
    asked = [(name, n, free_of(name, room, candidates)) for name, n in pod_class.asked]
    missing = np.zeros(len(candidates))
    for _, amount, free in asked:
        missing += np.clip(amount - free, 0, None) / amount
    missing[missing == 0.0] = np.inf  # another rule refuses these nodes
    nearest = int(np.argmin(missing))
    if not np.isfinite(missing[nearest]):
        return ""
    lacks = [
        f"{format_amount(name, amount - int(free[nearest]))} {name}"
        for name, amount, free in asked
        if free[nearest] < amount
    ]
    node = room.snapshot.node(int(candidates[nearest])).name
    return f"node {node} lacks {' and '.join(lacks)}"


def _matching(pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: nodes that pass the rules of kind NODE if no node were cordoned."""
    snapshot, spec = room.snapshot, pod_class.spec
    tolerated = taint_toleration.passes(spec, snapshot) | snapshot.unschedulable
    return snapshot.alive & tolerated & node_affinity.passes(spec, snapshot)


def _larger_than_any(pod_class: PodClass, matching: Mask, room: Room) -> str:
    """Say which request exceeds the allocatable amount of every ``matching`` node."""
    backed = (
        pod_class.device_needs.extended.backed
        if pod_class.device_needs and pod_class.device_needs.extended
        else ()
    )
    asked = [(name, amount) for name, amount in pod_class.asked if name not in backed]
    sizes = [room.snapshot.sizes(name)[matching] for name, _ in asked]
    enough = [size >= amount for size, (_, amount) in zip(sizes, asked, strict=True)]
    if np.all(enough, axis=0).any():
        return ""
    for size, (name, amount) in zip(sizes, asked, strict=True):
        largest = int(size.max(initial=0))
        if largest < amount:
            has = format_amount(name, largest) if largest else "none"
            return f"{format_amount(name, amount)} {name}; the largest matching node has {has}"
    words = " and ".join(f"{format_amount(name, amount)} {name}" for name, amount in asked)
    return f"{words} together; no matching node has all of it"
