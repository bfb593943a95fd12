"""Why pods of a gang do not fit: per class, how many do, and how many nodes each rule excludes.

In: a waiting gang and the room. Out: a ``Diagnosis``. Called by ``explain`` when somebody asks,
never while planning: a waiting gang costs nothing until then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from quorate.core.cluster.arrays import Mask
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import policy as bounds
from quorate.core.model.life_cycle import LifeCycleLabels
from quorate.core.model.policy import Policy
from quorate.core.model.quantity import format_amount
from quorate.core.model.reasons import Blocker, ClosedNodes, RuledOut, available
from quorate.core.model.steps import Steps, costs
from quorate.core.place.gang import DoesNotFit, place_gang_within
from quorate.core.place.greedy import Demand, Placement, largest_first
from quorate.core.place.members import Members, demand_of, members_of
from quorate.core.place.one_pod.nominated import judge_nodes, ruled_out
from quorate.core.place.packing.pack import pack
from quorate.core.place.tasks import task_minima_of
from quorate.core.room.promises import Promised, Promises
from quorate.core.room.room import Room
from quorate.core.rules.devices.dynamic_resources import is_broken
from quorate.core.rules.filtering import pod_slots
from quorate.core.rules.pods import inter_pod_affinity
from quorate.core.words.capacity import Holdings, Lack, lack_of
from quorate.core.words.counting import counted
from quorate.core.words.fixes import doubtful, hint, impossible_field
from quorate.core.words.member_rules import own_rule
from quorate.core.words.remedies import (
    closed_to,
    nearest_miss,
    nodes_to_uncordon,
    rule_remedy,
    to_free,
    uncordon_words,
    unknown_key,
    usable_by,
)


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

    unknown_topology: Blocker | None = None
    """A class that needs a node with a label that no node has, by its topologies."""
    awaits_pods: Blocker | None = None
    """A class with affinity to pods that are neither placed nor in its gang."""
    missing: int = 1
    """How many members more have to fit so that the gang starts; 1 if it has."""
    lack: Lack | None = None
    """What the gang lacks in numbers, if that is what is in the way; None for a pod of no gang."""
    uncordon: tuple[str, ...] = ()
    """The fewest cordoned nodes with which the gang would start."""
    to_free: str = ""
    """The node where the least has to be freed for one member more, and what it lacks."""

    @property
    def hint(self) -> str:
        """The object or field that a person has to create or fix; "" if none is known."""
        about = self.claim_problem or self.impossible or next(iter(self.blockers), None)
        return about.hint if about is not None else ""

    @property
    def closed(self) -> tuple[ClosedNodes, ...]:
        """The nodes that would hold pods, and are not open to them, of the first such class."""
        return next((one.closed for one in self.blockers if one.closed), ())

    @property
    def room_words(self) -> tuple[str, str]:
        """What is in the way of a gang whose nodes have too little room, and the smallest remedy.

        Both are phrases; the first one is "" where nothing is known but kube-scheduler's message.
        """
        rule = next((one.own_rule for one in self.blockers if one.own_rule), "")
        words = rule or (self.lack.words if self.lack is not None else "")
        if self.uncordon:
            return words, uncordon_words(self.uncordon)
        if rule:
            return words, rule_remedy(rule)
        if self.lack is not None and self.lack.hint:
            return words, self.lack.hint
        if not self.to_free:
            return words, "free or add room"
        others = counted(self.missing - 1, "more member", "needs", "need")
        more = f", and {others} room too" if self.missing > 1 else ""
        return words, f"free or add room: {self.to_free}{more}"

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
            unknown_topology=of(self.unknown_topology),
            awaits_pods=of(self.awaits_pods),
        )


class Diagnoses:
    """Diagnoses of one instant. Equal pods of no gang are examined once."""

    def __init__(self, cluster: Cluster, policy: Policy) -> None:
        self._cluster, self._policy = cluster, policy
        self._holdings = Holdings(cluster)
        self._shared: dict[tuple[int, int], tuple[Diagnosis, str]] = {}

    def of(self, gang: GangEntry, room: Room, whole: Room) -> tuple[Diagnosis, str]:
        """Return a waiting gang's diagnosis, and kube-scheduler's message for it.

        ``room`` is the part of the ``whole`` room that it may use. The message is "" where the
        profile is ours.
        """
        if not gang.key.is_single:
            return diagnose(gang, self._cluster, room, self._policy, self._holdings), ""
        ((pod_class, (entry,)),) = members_of(gang, self._cluster).items()
        alike = pod_class.id, gang.priority
        # A claim's problem and a nomination concern this pod alone.
        is_alone = bool(entry.nominated or entry.pod.claims or entry.pod.device_claims)
        found = self._shared.get(alike)
        if found is None or is_alone:
            seen = diagnose(gang, self._cluster, room, self._policy, self._holdings)
            found = seen, single_sentence(gang, self._cluster, whole)
            if not is_alone:
                self._shared[alike] = found
        diagnosis, message = found
        memory = gang.memory
        said = f" {memory.preemption_message}" if message and memory.preemption_message else ""
        return diagnosis.of_pod(entry.pod.name), message + said


def diagnose(
    gang: GangEntry, cluster: Cluster, room: Room, policy: Policy, holdings: Holdings
) -> Diagnosis:
    """Try to place the gang, and explain for each class why it does not fit. Changes nothing."""
    members = members_of(gang, cluster)
    demand = demand_of(members, gang.need, task_minima_of(gang))
    classes = _to_look_at(demand, room)
    is_cut = len(classes) < len(demand.classes)
    found = None if is_cut else _placed(demand, room, policy)
    after, fit, causes = room.copy(), 0, _Causes(members, room, cluster, policy.life_cycle)
    for pod_class, count in classes:
        class_fit = int(pack(pod_class, count, after, policy.packing).sum())
        fit += class_fit
        if class_fit < count:
            needed = max(count - max(demand.pods - demand.need, 0), 1)
            causes.note(pod_class, (count, class_fit, needed), after, fit)
    if found is not None:
        fit = found.placed if isinstance(found, Placement) else found.fit
    diagnosis = Diagnosis(
        fit=fit,
        looked_at=sum(count for _, count in classes) if is_cut else None,
        fits=isinstance(found, Placement) and fit >= demand.wanted,
        exhausted=is_cut or (isinstance(found, DoesNotFit) and found.exhausted),
        blockers=tuple(causes.blockers.values()),
        no_node_matches=causes.no_node_matches,
        too_large=causes.too_large,
        claim_problem=causes.claim_problem,
        impossible=causes.impossible,
        unknown_topology=causes.unknown_topology,
        awaits_pods=causes.awaits_pods,
        missing=max(demand.need - fit, 1),
    )
    if is_cut or diagnosis.fits or not causes.are_of_room:
        return diagnosis
    usable = {pod_class: causes.usable_by(pod_class) for pod_class in members}
    first = next(iter(causes.blockers))
    is_single = gang.key.is_single  # it has kube-scheduler's message alone
    return replace(
        diagnosis,
        lack=None if is_single else lack_of(gang, members, demand, usable, room, holdings),
        uncordon=tuple(nodes_to_uncordon(demand, room, policy)),
        to_free=to_free(first, room, usable[first]),
    )


class _Causes:
    """The blockers by class, and the first one for each cause that is more than a lack of room."""

    __slots__ = (
        "_cluster",
        "_labels",
        "_members",
        "_room",
        "_usable",
        "awaits_pods",
        "blockers",
        "claim_problem",
        "impossible",
        "no_node_matches",
        "too_large",
        "unknown_topology",
    )

    def __init__(
        self, members: Members, room: Room, cluster: Cluster, labels: LifeCycleLabels
    ) -> None:
        self._labels = labels
        self._members, self._room, self._cluster = members, room, cluster
        self._usable: dict[PodClass, Mask] = {}
        self.blockers: dict[PodClass, Blocker] = {}
        self.no_node_matches: Blocker | None = None
        self.too_large: tuple[Blocker, str] | None = None
        self.claim_problem: Blocker | None = None
        self.impossible: Blocker | None = None
        self.unknown_topology: Blocker | None = None
        self.awaits_pods: Blocker | None = None

    @property
    def are_of_room(self) -> bool:
        """Whether something is in the way, and a lack of room is all that is."""
        others = self.claim_problem, self.impossible, self.unknown_topology, self.awaits_pods
        is_other = any((*others, self.no_node_matches, self.too_large))
        return bool(self.blockers) and not is_other

    def usable_by(self, pod_class: PodClass) -> Mask:
        """Return bool[n]: nodes that the class may use by their attributes, cordoned ones too."""
        if pod_class not in self._usable:
            self._usable[pod_class] = usable_by(pod_class, self._room, self._labels)
        return self._usable[pod_class]

    def note(
        self, pod_class: PodClass, counts: tuple[int, int, int], after: Room, placed: int
    ) -> None:
        """Note a class that does not fit; counts are of its pods, of those that fit, of needed.

        ``after`` is the room when so many members are placed in thought.
        """
        room, (count, fit, needed) = self._room, counts
        pod = min((entry.pod for entry in self._members[pod_class]), key=lambda pod: pod.name)
        found = _nodes_by_reason(pod_class, room, after, placed, self._cluster)
        messages = [one.message for one in found]
        fix, never = hint(pod, self._cluster), impossible_field(pod_class.spec)
        key, usable = unknown_key(pod_class, room), self.usable_by(pod_class)
        blocker = self.blockers[pod_class] = Blocker(
            pod=pod.name,
            pods=count,
            fit=fit,
            ruled_out=found,
            nearest_miss=nearest_miss(pod_class, room, usable),
            hint=fix or never or key or doubtful(pod, self._cluster, messages),
            closed=() if never else closed_to(pod_class, room, self._labels),
            own_rule="" if key else own_rule(pod_class, needed, room),
        )
        if fix or is_broken(messages):
            self.claim_problem = self.claim_problem or blocker
        elif never:
            self.impossible = self.impossible or blocker
        elif key:
            self.unknown_topology = self.unknown_topology or blocker
        else:
            self._note_nodes(pod_class, blocker, usable)

    def _note_nodes(self, pod_class: PodClass, blocker: Blocker, usable: Mask) -> None:
        if _awaits_pods(pod_class, self._members, self._room):
            self.awaits_pods = self.awaits_pods or blocker
        elif not usable.any():
            is_there = self._room.snapshot.nodes_alive
            self.no_node_matches = self.no_node_matches or (blocker if is_there else None)
        elif lack := _larger_than_any(pod_class, usable, self._room):
            self.too_large = self.too_large or (blocker, lack)


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


def _nodes_by_reason(
    pod_class: PodClass, room: Room, after: Room, placed: int, cluster: Cluster
) -> tuple[RuledOut, ...]:
    """Count the nodes by what rules them out: as they are, and then with the members that fit."""
    seen = judge_nodes(pod_class, room, cluster, {})
    found = ruled_out(seen, room)
    if not (placed and seen.feasible.any()):
        return found
    later = judge_nodes(pod_class, after, cluster, {})
    once = f"once {counted(placed, 'member', 'is', 'are')} placed"
    return found + tuple(
        RuledOut(f"{one.message} {once}", one.nodes)
        for one in ruled_out(later, after, among=seen.feasible)
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


def _larger_than_any(pod_class: PodClass, matching: Mask, room: Room) -> str:
    """Say which request exceeds the allocatable amount of every ``matching`` node."""
    asked = pod_class.asked
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
