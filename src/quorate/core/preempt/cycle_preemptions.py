"""Decide preemptions in one cycle: which pod is promised room, and which pods are deleted for it.

In: a pod that fits nowhere and the room. Out: a ``Preemption``, noted in the cycle's ``Promises``,
so that later pods of the cycle see it. Called by ``turn.cycle``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.core.cluster.gangs.gangs import GangEntry, PodEntry
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.priorities.precedence import Nominations
from quorate.core.cluster.unlisted_kinds import BUDGETS
from quorate.core.model import GangKey
from quorate.core.model.plan import Preemption, Victim
from quorate.core.model.steps import GoesOnError
from quorate.core.place.search.joint import OpenSearches
from quorate.core.preempt.preemption import Candidate, NodeResults, StateVersion, preempt
from quorate.core.preempt.victim_searches import Preemptor, VictimSearches
from quorate.core.room.promises import Promises
from quorate.core.room.room import Room


def preempts(gang: GangEntry) -> bool:
    """Whether preemption applies: to waiting pods of no gang, under a kube-scheduler profile."""
    if not (gang.key.is_single and gang.waits):
        return False
    return _only_member(gang).pod_class.profile.preempts


def _only_member(gang: GangEntry) -> PodEntry:
    return next(iter(gang.members.values()))


class PreemptionResult(NamedTuple):
    """The result for one pod: the preemption, if any, and why none or no better one was found."""

    preemption: Preemption | None = None
    message: str = ""
    begins_anew: bool = False
    """Whether a search over several turns found nothing, and room may have become free since."""


@dataclass(slots=True)
class CyclePreemptions:
    """What one cycle has tried; a failure holds for all pods of the class and priority."""

    promises: Promises
    joint_searches: OpenSearches
    victim_searches: VictimSearches
    """Results of searches that earlier turns could not finish."""
    start: int
    """The node at which each search of the cycle starts; one value, so that results are reused."""
    next_start: int
    """The node at which searches of the next cycle start."""
    displaced: set[GangKey] = field(default_factory=set)
    """Pods that lost their nomination to another pod, and need another node."""
    _failed: dict[tuple[PodClass, int], tuple[str, int]] = field(default_factory=dict)
    """By class and priority: why it failed, and the position in the log of selectors then."""
    _results: dict[Preemptor, tuple[NodeResults, int]] = field(default_factory=dict)
    """Results by row, and the count of changed selectors when they began."""

    def changed(self, rows: Iterable[int] | None) -> None:
        """Drop the results of rows where room was taken or promised; None drops all."""
        if rows is None:
            self._results.clear()
        for row in rows or ():
            for results, _ in self._results.values():
                results.forget(row)

    def preempt_for(
        self, gang: GangEntry, pod_class: PodClass, room: Room, avoided: Collection[int]
    ) -> PreemptionResult:
        """Return the preemption for the pod, or why there is none.

        ``avoided`` are rows where the pod must not go. Raises GoesOnError if the turn ends first.
        """
        entry, promises = _only_member(gang), self.promises
        budgets = promises.cluster.unserved.get(BUDGETS)
        if budgets is not None:
            return PreemptionResult(message=f"preemption waits: {budgets.problem}; {budgets.hint}")
        nominated = promises.nominated.node_of(entry.pod.uid)
        kind = (pod_class, entry.pod.priority)
        message, until = self._failed.get(kind, ("", -1))
        position = self._position(room)
        is_known = until >= 0 and (not _depends(pod_class) or until == position)
        if is_known and not nominated and not entry.pod.never_preempts:
            return PreemptionResult(message=message)
        promised = promises.to_others(entry.pod.priority, entry)
        who = pod_class, entry.pod.priority, entry.pod.uid if nominated else ""
        results = self._results_so_far(who, room)
        try:
            found = preempt(entry, pod_class, room, promises, promised, results, avoided)
        except GoesOnError:
            self._results.pop(who, None)
            results.valid_at = None
            self.victim_searches.keep(who, results)
            raise
        if found.chosen is not None:
            if room.steps is not None and room.steps.are_over and not nominated:
                # Pods of its class continue in the next turn.
                results.valid_at = StateVersion.now(room)
                self.victim_searches.keep(who, results)
            self.next_start = results.start + len(found.candidates)
            return PreemptionResult(
                self._make_preemption(entry, gang.key, found.chosen, room), found.message
            )
        if results.earlier and results.since != self._versions(pod_class, room):
            self._results.pop(who, None)
            return PreemptionResult(begins_anew=True)
        if not (entry.pod.never_preempts or avoided or nominated):
            self._failed[kind] = found.message, position
        if not nominated or found.keeps_nomination:
            return PreemptionResult(message=found.message)
        self._note_promise(nominated)
        promises.nominated.discard(entry)
        return PreemptionResult(promise(entry, gang.key, ""), found.message)

    @staticmethod
    def _position(room: Room) -> int:
        """Return a number that grows with each change of pod counts, in cluster or room."""
        return room.snapshot.neighbours.log.position + len(room.changed_selectors)

    def _versions(self, pod_class: PodClass, room: Room) -> tuple[int, int]:
        """Return numbers that grow whenever the class may fit where it did not before."""
        return self.joint_searches.news, self._position(room) if _depends(pod_class) else 0

    def _results_so_far(self, who: Preemptor, room: Room) -> NodeResults:
        """Return the results by row, or none if counts that the class's rules read have changed.

        Results of an earlier turn are used anyway: they are about the nodes as of then. Results
        for a nominated pod are not reused for other pods.
        """
        pod_class, _, nominated = who
        neighbours = room.snapshot.neighbours
        results, since = self._results.get(who, (None, 0))
        changed_selectors = {key.selector for key in room.changed_selectors[since:]}
        if changed_selectors and not neighbours.deciding_selectors(pod_class).isdisjoint(
            changed_selectors
        ):
            results = None
        if results is None:
            results = self.victim_searches.take(who)
        if results is None or not results.is_valid(pod_class, room):
            results = NodeResults(since=self._versions(pod_class, room), start=self.start)
        if not nominated:
            self._results[who] = results, len(room.changed_selectors)
        return results

    def _make_preemption(
        self, entry: PodEntry, key: GangKey, chosen: Candidate, room: Room
    ) -> Preemption | None:
        promises, node = self.promises, room.snapshot.node(chosen.row).name
        nominated = promises.nominated.node_of(entry.pod.uid)
        self._note_promise(nominated)
        self._note_promise(node)
        displaced = displaced_by(entry, node, promises.nominated)
        for other in displaced:
            promises.nominated.discard(other)
            if other.gang is not None:
                self.displaced.add(other.gang.key)
        victims = [one for one in chosen.victims if not _is_victim(one, promises)]
        hits = Counter(one.gang.key for one in victims if one.gang is not None)
        promises.victims.update(one.pod.uid for one in victims)
        promises.nominated.add(entry, node)
        if nominated == node and not victims and not displaced:
            return None
        return promise(
            entry,
            key,
            node,
            tuple(_victim(one, hits) for one in victims),
            tuple((other.pod.namespace, other.pod.name) for other in displaced),
        )

    def _note_promise(self, node: str) -> None:
        rows = self.promises.cluster.nodes.rows
        if node in rows:
            self.changed([rows[node]])


def displaced_by(entry: PodEntry, node: str, nominated: Nominations) -> list[PodEntry]:
    """Return the nominated pods of lower priority that lose their promise on the node."""
    return [other for other in nominated.on(node) if other.pod.priority < entry.pod.priority]


def _is_victim(entry: PodEntry, promises: Promises) -> bool:
    return entry.pod.terminating or promises.is_victim(entry)


def _depends(pod_class: PodClass) -> bool:
    """Whether placing other pods may let a pod of the class fit."""
    return bool(pod_class.spec.affinity or pod_class.spread)


def promise(
    entry: PodEntry,
    key: GangKey,
    node: str,
    victims: tuple[Victim, ...] = (),
    displaced: tuple[tuple[str, str], ...] = (),
) -> Preemption:
    """Return the nomination of a node for a pod; ``node`` "" withdraws an earlier one."""
    pod = entry.pod
    return Preemption(
        key=key,
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        scheduler=pod.scheduler,
        node=node,
        victims=victims,
        displaced=displaced,
    )


def _victim(entry: PodEntry, hits: Counter[GangKey]) -> Victim:
    """Return the victim, with what its deletion does to its gang."""
    pod, gang = entry.pod, entry.gang
    hit = ""
    if gang is not None and not gang.key.is_single:
        left = gang.stays - hits[gang.key]
        hit = f"gang {gang.key} keeps {left} of {gang.bound} bound members (min {gang.min_count})"
    return Victim(pod.uid, pod.namespace, pod.name, hit)
