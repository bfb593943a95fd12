"""Plain accounts of what the scheduler was told, and what its plans must never do by them.

Dictionaries and sums, sharing nothing with the core. Of gangs two things are kept: those that have
``surely`` started (they must never be torn down), and those that ``maybe`` have (they may be bound
member by member). Between the two lie cases about which nothing is asserted.
"""

from __future__ import annotations

import math
from collections import Counter

from quorate.core.model import GangKey
from quorate.core.model.changes import (
    BindFailed,
    BindFailure,
    GangChanged,
    GangGone,
    NodeChanged,
    NodeGone,
    OwnerChanged,
    PodBound,
    PodChanged,
    PodGone,
)
from quorate.core.model.journal import entry_of
from tests.property.worlds.findings import expect
from tests.property.worlds.shapes import has_cron_job


def key_of(pod):
    """The gang of a pod; a pod of none is a gang of one."""
    if pod.membership is not None:
        return pod.membership.key
    return GangKey(pod.namespace, "pod", f"{pod.name}@{pod.uid}")


class Accounts:
    """What is known, by uid and by gang."""

    def __init__(self, ours):
        self.ours = frozenset(ours)
        """Scheduler names that are quorate's."""
        self.nodes, self.pods, self.specs = {}, {}, {}
        self.owners = {}
        """What is known of the owners of pods."""
        self._members = {}
        """Pods of each gang, by uid."""
        self.place = {}
        """The node of each pod that has one."""
        self.way = {}
        """Node by uid: planned, without an outcome."""
        self.made_for = {}
        """Of pods that we bound, the gang that they were bound for."""
        self.sealed = set()
        """Uids of pods that bear our mark."""
        self.evicting = set()
        """Uids of pods of which a plan said that they are evicted."""
        self.moved_into = set()
        """Gangs to which others' pods came with a node: who comes later cannot know that."""
        self.past = set()
        """Uids of members that had finished when nobody of their gang was alive."""
        self.surely, self.maybe = set(), set()
        self.prepared = set()
        """Attempts whose claims had to be bound first."""
        self.excused = set()
        """Nodes that may be over their allocatable by what others did."""

    def observe(self, change):
        match change:
            case NodeChanged():
                self._node_changed(change.node)
            case NodeGone():
                self.nodes.pop(change.name, None)
            case PodChanged():
                self._pod_changed(change.pod)
            case PodGone():
                self._forget(change.uid)
            case GangChanged() | GangGone():
                self._object_changed(change)
            case PodBound() if change.uid in self.pods:
                self.way.pop(change.uid, None)
                self.place.setdefault(change.uid, change.node)
                self._count(key_of(self.pods[change.uid]))
            case BindFailed():
                self._bind_failed(change)
            case OwnerChanged():
                self.owners[change.namespace, change.owner] = change
            case _:
                pass

    def _object_changed(self, change):
        if isinstance(change, GangGone):
            self.specs.pop(change.key, None)
            return
        self.specs[change.spec.key] = change.spec
        self._count(change.spec.key)

    def _node_changed(self, node):
        before = self.nodes.get(node.name)
        self.nodes[node.name] = node
        lost = before is None or any(
            amount > dict(node.allocatable).get(name, 0) for name, amount in before.allocatable
        )
        if lost:
            self.excused.add(node.name)

    def _pod_changed(self, pod):
        before = self.pods.get(pod.uid)
        self._put(pod)
        if pod.node:
            self.place[pod.uid] = pod.node
            self.way.pop(pod.uid, None)
            if not pod.attempt:
                self.made_for.pop(pod.uid, None)
            ours = pod.uid in self.made_for
            if not ours or before is None or before.spec.requests != pod.spec.requests:
                self.excused.add(pod.node)
        if pod.started:
            self.sealed.add(pod.uid)
        if before is not None and before.membership != pod.membership:
            self._count(key_of(before))
            if pod.uid in self.place and not pod.attempt:  # a failed bind may have told of it
                self.moved_into.add(key_of(pod))
        self._count(key_of(pod))
        refused = pod.refusal and not (before is not None and before.refusal)
        if refused and not self._is_whole(key_of(pod)):
            self.surely.discard(key_of(pod))  # whether kubelets undid its quorum is not asserted

    def _forget(self, uid):
        pod = self._take(uid)
        for known in (self.place, self.way, self.made_for):
            known.pop(uid, None)
        self.sealed.discard(uid)
        self.evicting.discard(uid)
        if pod is not None:
            self._count(key_of(pod))

    def _put(self, pod):
        self._take(pod.uid)
        self.pods[pod.uid] = pod
        self._members.setdefault(key_of(pod), {})[pod.uid] = pod

    def _take(self, uid):
        pod = self.pods.pop(uid, None)
        if pod is not None:
            del self._members[key_of(pod)][uid]
        return pod

    def _bind_failed(self, change):
        self.way.pop(change.uid, None)
        if change.failure is BindFailure.GONE:
            self._forget(change.uid)
            return
        if change.uid not in self.place:
            self.made_for.pop(change.uid, None)
        if change.uid in self.pods:
            if change.failure is BindFailure.ELSEWHERE:
                self.place[change.uid] = change.node
                self.excused.add(change.node)
            self._count(key_of(self.pods[change.uid]))

    # Gangs

    def members(self, key):
        return self._members.get(key, {}).values()

    def mins_of(self, key):
        """How many must start together, by those who ask for least and for most.

        Infinitely many where nobody says it: no gang can start then.
        """
        if key.is_single:
            return 1, 1
        if key in self.specs:
            return self.specs[key].min_count, self.specs[key].min_count
        said = [p.membership.min_count for p in self.members(key) if p.membership.min_count]
        return min(said, default=math.inf), max(said, default=math.inf)

    def runs(self, pod):
        return pod.uid in self.place and not pod.finished

    def _own(self, key):
        """Members that live and stay, which we bound for this gang."""
        return [
            pod
            for pod in self.members(key)
            if self.made_for.get(pod.uid) == key
            and self.runs(pod)
            and not (pod.terminating or pod.uid in self.evicting)
        ]

    def being_evicted(self):
        """Pods that a plan evicts and that are there still."""
        return [self.pods[uid] for uid in self.evicting if uid in self.pods]

    def _bound(self, key):
        """Members that have a node, whoever gave it to them; none if none runs, or is to run."""
        found = [p for p in self.members(key) if p.uid in self.place and not p.refusal]
        lives = any(map(self.runs, found)) or any(p.uid in self.way for p in self.members(key))
        return found if lives else []

    def _done(self, key):
        """Members that have succeeded, of owners that make others."""
        others = {p.run for p in self.members(key) if p.uid not in self.place}
        there = [p for p in self.members(key) if p.uid in self.place and p.run in others]
        return [p for p in there if p.phase == "Succeeded"]

    def _count(self, key):
        own, bound = self._own(key), self._bound(key)
        least, _ = self.mins_of(key)
        if self._goes_on_by_another(key):
            self.moved_into.add(key)
        if not bound:
            self.maybe.discard(key)
            self.past |= {p.uid for p in self.members(key) if p.uid in self.place}
        elif len(bound) >= least or any(p.uid in self.sealed for p in bound):
            self.maybe.add(key)
        if not own:
            self.surely.discard(key)
        elif self._is_whole(key):
            self.surely.add(key)

    def _goes_on_by_another(self, key):
        """Whether a pod that another bound runs beside members that finished in an earlier life."""
        there = [p for p in self.members(key) if p.uid in self.place]
        others = [p for p in there if p.uid not in self.past and not p.attempt]
        return any(map(self.runs, others)) and any(p.uid in self.past for p in there)

    def _is_whole(self, key):
        """Whether as many of ours run as anybody could ask for."""
        own = self._own(key)
        return len(own) >= self.mins_of(key)[1] and not self._lacks_tasks(key, own)

    def _lacks_tasks(self, key, pods):
        spec = self.specs.get(key)
        tasks = Counter(pod.membership.task for pod in pods if pod.membership is not None)
        return spec is not None and any(tasks[task] < least for task, least in spec.min_by_task)

    def restarted(self, nodes, pods, specs, is_told):
        """A successor leads, and is told these.

        ``is_told`` says that its journal is as new as it can be.
        """
        self.way.clear()
        for uid in [uid for uid in self.pods if uid not in pods]:
            self._forget(uid)
        for known, there in ((self.nodes, nodes), (self.specs, specs)):
            for name in [name for name in known if name not in there]:
                del known[name]
        if not is_told:
            there = [self.pods[uid] for uid in self.sealed if uid in self.pods]
            marked = {key_of(pod) for pod in there if not pod.refusal}
            self.surely = {
                key
                for key in self.surely
                if key in marked or len(self._own(key)) >= self.mins_of(key)[1]
            }

    # What plans must not do

    def check(self, plan):
        """Check a plan, and count it.

        Plans whose claims are being bound are counted when they are sent: that one was given up is
        not told.
        """
        for gang in plan.preparing:
            for bind in gang.binds:
                self._check_bind(bind)
        fresh = {bind.uid for gang in plan.gangs for bind in gang.binds}
        for gang in plan.gangs:
            there = len(self._bound(gang.key) or self._done(gang.key)) * (not gang.key.is_single)
            for bind in gang.binds:
                self._check_bind(bind, sent_late=gang.attempt in self.prepared)
            self._check_runs(gang)
            for bind in gang.binds:
                self.way[bind.uid], self.made_for[bind.uid] = bind.node, gang.key
            if not gang.key.is_single:
                self._check_whole(gang.key, there)
        self.prepared |= {gang.attempt for gang in plan.preparing}
        for name in {self.way[uid] for uid in fresh}:
            self.check_node(name, fresh)
        for eviction in plan.evictions:
            self._check_eviction(eviction)
            self.evicting.add(eviction.uid)
        for preemption in plan.preemptions:
            self._check_preemption(preemption)

    def _check_bind(self, bind, sent_late=False):
        pod = self.pods.get(bind.uid)
        expect(pod is not None, "a pod is bound that is not there", bind.name)
        expect(bind.uid not in self.place, "a pod is bound that has a node", bind.name)
        expect(bind.uid not in self.way, "a pod is bound that is under way", bind.name)
        held = pod.gates or pod.terminating or pod.defect or pod.finished
        expect(not held or sent_late, "a pod is bound that must not be", bind.name)
        expect(pod.scheduler in self.ours, "another scheduler's pod is bound", bind.name)
        expect(sent_late or not self._is_astray(pod), "a pod of a gang starts alone", bind.name)
        expect(bind.node in self.nodes, "a pod is bound to a node that is gone", bind.node)

    def _is_astray(self, pod):
        """Whether a pod of no gang is meant for one by its owner, or may be for all that is known.

        It may be where a gang of its namespace lacks members, until the owner was read.
        """
        if pod.membership is not None or pod.owner is None:
            return False
        said = self.owners.get((pod.namespace, pod.owner))
        if said is not None:
            return said.meant is not None
        return any(
            key.namespace == pod.namespace and len(self.members(key)) < spec.min_count > 1
            for key, spec in self.specs.items()
        )

    def _check_runs(self, gang):
        """Check that no run of a CronJob joins another one that goes on, or is planned with it."""
        if gang.key.is_single or not has_cron_job(gang.key):
            return
        pods = [*self._own(gang.key), *(self.pods[bind.uid] for bind in gang.binds)]
        runs = {pod.run for pod in pods if pod.run.rpartition("-")[0] == gang.key.name}
        expect(len(runs) < 2, "two runs of a CronJob are one gang", f"{gang.key}: {runs}")

    def _check_whole(self, key, there):
        """Check that enough start; ``there`` are those that counted before this plan."""
        minimum, _ = self.mins_of(key)
        if key in self.maybe:
            return
        starts = there + sum(self._is_on_its_way(p, key) for p in self.members(key))
        expect(starts >= minimum, "a gang starts in part", f"{key}: {starts} of {minimum}")
        those = [p for p in self.members(key) if p.uid in self.place or p.uid in self.way]
        expect(not self._lacks_tasks(key, those), "a gang starts without a task", str(key))

    def check_node(self, name, fresh):
        """The node is within its allocatable in what the fresh binds ask for."""
        there = [pod for pod in self.pods.values() if self.takes_room(pod, name)]
        has = dict(self.nodes[name].allocatable)
        ours = [pod for pod in there if pod.uid in fresh]
        expect(len(there) <= has.get("pods", 0), "a node is over in pods", name)
        for resource in {r for pod in ours for r, amount in pod.spec.requests if amount}:
            used = sum(dict(pod.spec.requests).get(resource, 0) for pod in there)
            expect(used <= has.get(resource, 0), "a node is over", f"{name} in {resource}")
        ports = [(pod.uid, port) for pod in there for port in pod.spec.host_ports]
        for uid, port in ports:
            clash = uid in fresh and any(port.conflicts(o) for u, o in ports if u != uid)
            expect(not clash, "two pods have one host port", name)

    def takes_room(self, pod, name):
        return not pod.finished and name in (self.place.get(pod.uid), self.way.get(pod.uid))

    def _is_on_its_way(self, pod, key):
        """Whether a bind for this gang is under way; one for another gang may yet fail."""
        return pod.uid in self.way and self.made_for.get(pod.uid, key) == key

    def _check_eviction(self, eviction):
        pod = self.pods.get(eviction.uid)
        expect(pod is not None, "a pod is evicted that is not there", eviction.name)
        expect(eviction.uid in self.place, "a pod is evicted that has no node", eviction.name)
        expect(not eviction.key.is_single, "a pod of no gang is evicted", eviction.name)
        made_for = self.made_for.get(eviction.uid)
        if made_for is None and pod.attempt and pod.bound_for == entry_of(eviction.key):
            made_for = eviction.key  # a bind of ours that arrived after it was said to have failed
        expect(made_for is not None, "a pod is evicted that others bound", eviction.name)
        same = made_for == eviction.key == key_of(pod)
        expect(same, "a relabelled pod is evicted", f"{eviction.name}, bound for {made_for}")
        expect(eviction.key not in self.surely, "a started gang is torn down", str(eviction.key))

    def _check_preemption(self, preemption):
        pod = self.pods.get(preemption.uid)
        expect(pod is not None, "room is made for a pod that is not there", preemption.name)
        expect(pod.uid not in self.place, "room is made for a pod that has a node", pod.name)
        expect(not (pod.never_preempts and preemption.victims), "a pod that may not preempts")
        for victim in preemption.victims:
            other = self.pods.get(victim.uid)
            expect(other is not None, "a victim is not there", victim.name)
            expect(self.place.get(other.uid) == preemption.node, "a victim is elsewhere")
            expect(other.priority < pod.priority, "a victim is no less important", victim.name)

    def check_rest(self):
        """At rest nothing is under way, and no gang is in part."""
        expect(not self.way, "a bind has no outcome at rest")
        for key in {key_of(pod) for pod in self.pods.values()}:
            own, (minimum, _) = self._own(key), self.mins_of(key)
            if key.is_single or minimum == math.inf or key in self.maybe or not own:
                continue
            text = f"{key}: {len(own)} of {minimum}"
            expect(len(own) >= minimum, "a gang is left in part", text)
