"""Decide preemptions in one cycle: who gets room promised, and which pods are deleted for it.

In: a pod that fits nowhere and the room. Out: a ``Preemption``, already noted in the cluster, so
that later pods of the cycle see the promise. Called by ``plan.cycle``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from quorate.core.model import GangKey
from quorate.core.plan.nominated import promised_to_others
from quorate.core.plan.plan import Preemption, Victim
from quorate.core.plan.preemption import Candidate, Known, preempt
from quorate.core.plan.room import Room
from quorate.core.state.cluster import Cluster
from quorate.core.state.encoding import PodClass
from quorate.core.state.gangs import GangEntry, PodEntry


def preempts(gang: GangEntry) -> bool:
    """Whether room may be made for what waits: for pods of no gang, where kube-scheduler would."""
    if not (gang.key.is_single and gang.waits):
        return False
    return not _only_member(gang).pod_class.profile.packs_gangs


def _only_member(gang: GangEntry) -> PodEntry:
    return next(iter(gang.members.values()))


@dataclass(slots=True)
class Clearings:
    """What one cycle has tried: what failed for one pod fails for its likes."""

    cluster: Cluster
    start: int
    """With which nodes each pod begins: in one cycle the same, since of these most is known."""
    displaced: set[GangKey] = field(default_factory=set)
    """Pods whose promises were taken back for others: they have to look elsewhere."""
    _failed: dict[tuple[PodClass, int], tuple[str, int]] = field(default_factory=dict)
    """What could not be done, and until which place in the log of selectors that is known."""
    _known: dict[tuple[PodClass, int], tuple[Known, int]] = field(default_factory=dict)
    """What is known of rows, and since which place in the log of selectors."""

    def changed(self, rows: Iterable[int] | None) -> None:
        """Forget what is known of rows where room was taken or promised; None: of all."""
        if rows is None:
            self._known.clear()
        for row in rows or ():
            for known, _ in self._known.values():
                known.pop(row, None)

    def clear_for(
        self, gang: GangEntry, pod_class: PodClass, room: Room, avoided: Collection[int]
    ) -> Preemption | None:
        """Return what to do for the pod. What could not be done is noted on its gang.

        ``avoided`` are rows on which it must not go.
        """
        entry, cluster = _only_member(gang), self.cluster
        known = (pod_class, entry.pod.priority)
        said, until = self._failed.get(known, ("", -1))
        log = cluster.neighbours.log
        depends = pod_class.shape.affinity or pod_class.spread  # on pods placed meanwhile
        is_known = until >= 0 and (not depends or until == log.position)
        if is_known and not entry.nominated and not entry.pod.never_preempts:
            gang.preemption_said = said
            return None
        promised = promised_to_others(entry.pod.priority, cluster, entry)
        learnt = None if entry.nominated else self._learnt(pod_class, entry.pod.priority)
        found = preempt(entry, pod_class, room, cluster, promised, self.start, avoided, learnt)
        gang.preemption_said = found.said
        if found.chosen is not None:
            cluster.precedence.next_start = self.start + len(found.candidates)
            return self._clear(entry, gang.key, found.chosen, room)
        if not (entry.pod.never_preempts or avoided):
            self._failed[known] = found.said, log.position
        if not entry.nominated or found.keeps_nomination:
            return None
        self._note_promise(entry.nominated)
        cluster.precedence.nominate(entry, "")
        return _preemption(entry, gang.key, "")

    def _learnt(self, pod_class: PodClass, priority: int) -> Known:
        """Return what is known of rows, unless pods have come that the class looks at."""
        neighbours = self.cluster.neighbours
        learnt, since = self._known.get((pod_class, priority), ({}, neighbours.log.position))
        stirred = neighbours.log.since(since)
        if stirred is None or not neighbours.concerns(pod_class).isdisjoint(stirred):
            learnt = {}
        self._known[pod_class, priority] = learnt, neighbours.log.position
        return learnt

    def _clear(
        self, entry: PodEntry, key: GangKey, chosen: Candidate, room: Room
    ) -> Preemption | None:
        cluster, node = self.cluster, room.snapshot.node(chosen.row).name
        self._note_promise(entry.nominated)
        self._note_promise(node)
        displaced = [
            other
            for other in cluster.precedence.nominated.on(node)
            if other.pod.priority < entry.pod.priority
        ]
        for other in displaced:
            cluster.precedence.nominate(other, "")
            if other.gang is not None:
                self.displaced.add(other.gang.key)
        victims = [one for one in chosen.victims if not (one.pod.terminating or one.preempting)]
        hits = Counter(one.gang.key for one in victims if one.gang is not None)
        for one in victims:
            one.preempting = True
        is_promised = entry.nominated == node
        if not is_promised:
            cluster.precedence.nominate(entry, node)
        if is_promised and not victims and not displaced:
            return None
        return _preemption(
            entry,
            key,
            node,
            tuple(_victim(one, hits) for one in victims),
            tuple((other.pod.namespace, other.pod.name) for other in displaced),
        )

    def _note_promise(self, node: str) -> None:
        if node in self.cluster.nodes.rows:
            self.changed([self.cluster.nodes.rows[node]])


def _preemption(
    entry: PodEntry,
    key: GangKey,
    node: str,
    victims: tuple[Victim, ...] = (),
    displaced: tuple[tuple[str, str], ...] = (),
) -> Preemption:
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
    """Return the victim, and what its going does to its gang."""
    pod, gang = entry.pod, entry.gang
    hit = ""
    if gang is not None and not gang.key.is_single:
        left = gang.bound - gang.evicting - hits[gang.key]
        hit = f"gang {gang.key} keeps {left} of {gang.bound} bound members (min {gang.min_count})"
    return Victim(pod.uid, pod.namespace, pod.name, hit)
