"""The known state of the cluster: nodes, pods and gangs, with all counts of them.

In: changes of nodes and pods, and our own tentative placements, through ``assume``. Out:
``Snapshot`` for planning, the gangs, and which gangs and nodes have changed. ``cluster`` maps each
kind of change to its handler; modules of this package handle the other kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from quorate.core.cluster.change_log import Log
from quorate.core.cluster.devices.devices import Devices
from quorate.core.cluster.devices.requests import DeviceNeedsTable
from quorate.core.cluster.devices.views import DeviceViews
from quorate.core.cluster.gangs.gangs import PLACED, GangEntry, PodEntry, Where, key_of, place_of
from quorate.core.cluster.gangs.owners import OwnerFacts, Owners
from quorate.core.cluster.gangs.pods import ON_NODES, SETTLED, UNDER_WAY
from quorate.core.cluster.gangs.reservation import placed
from quorate.core.cluster.gangs.reservations import Reservations
from quorate.core.cluster.labels.alike import AlikePods
from quorate.core.cluster.labels.neighbours import Neighbours
from quorate.core.cluster.nodes.encoding import PodClass, PodClasses, Resources
from quorate.core.cluster.nodes.nodes import NodeTable
from quorate.core.cluster.priorities.precedence import Precedence
from quorate.core.cluster.snapshot import Snapshot
from quorate.core.cluster.storage.storage import Storage
from quorate.core.model import GangKey, Pod, Queue, changes
from quorate.core.model.changes import KindProblem
from quorate.core.model.journal import Journal, entry_of, is_older
from quorate.core.model.profile import GANGS, Profile


class ClusterState:
    """Nodes, pods and gangs. Every pod is counted on at most one node, and is in one place."""

    def __init__(
        self, scheduler_names: Iterable[str], profiles: Mapping[str, Profile] | None = None
    ) -> None:
        self.scheduler_names = frozenset(scheduler_names)
        self.profiles = profiles or {}
        """Profiles by scheduler name; pods of other names are packed as gangs."""
        self.resources = Resources()
        self.classes = PodClasses(self.resources)
        self.nodes = NodeTable(self.resources)
        self.neighbours = Neighbours(self.nodes.capacity)
        self.storage = Storage(self.nodes.capacity)
        self.alike = AlikePods(self.neighbours)
        self.devices = Devices()
        self.device_views = DeviceViews(self.devices, self.nodes)
        self.device_needs = DeviceNeedsTable(self.devices)
        self.unreadable: dict[tuple[str, str, str], str] = {}
        """Why objects cannot be read, by their kind, namespace and name."""
        self.pods: dict[str, PodEntry] = {}
        self.gangs: dict[GangKey, GangEntry] = {}
        self.owners = Owners()
        self.queues: dict[str, Queue] = {}
        self.priority_classes: dict[str, int] = {}
        self.served: dict[str, bool] = {}
        self.unserved: dict[str, KindProblem] = {}
        self.reservations = Reservations(self.classes)
        self.precedence = Precedence(self.nodes, self.profiles.values())
        self.previous_journal: Journal | None = None
        """The journal of the previous leader."""
        self.touched: set[GangKey] = set()
        """Gangs that changed since ``take_news``."""
        self.grown: set[int] = set()
        """Rows that may take more, or other, pods than before."""
        self.nodes_differ = False
        self.waiting = 0
        """The number of our pods that could be placed now, in all gangs together."""
        self._on_node: dict[str, set[str]] = {}

    def snapshot(self) -> Snapshot:
        """Return a read-only view of the nodes as they are now."""
        of = self.nodes, self.neighbours, self.storage, self.devices, self.device_views
        return Snapshot.of(*of)

    def pods_on(self, node: str) -> list[PodEntry]:
        """Return the pods that are counted on ``node``, ours under way included."""
        return [self.pods[uid] for uid in self._on_node.get(node, ())]

    def take_news(self) -> tuple[set[GangKey], set[int], bool]:
        """Return touched gangs, grown rows, and whether the set of nodes changed; forget them."""
        affected = {*self.storage.take_affected_pods(), *self.devices.take_affected_pods()}
        entries = (self.pods.get(uid) for uid in affected)
        self.touched.update(e.gang.key for e in entries if e is not None and e.gang is not None)
        news = self.touched, self.grown | self.precedence.take_freed(), self.nodes_differ
        self.touched, self.grown, self.nodes_differ = set(), set(), False
        return news

    def assume(self, entries: Sequence[PodEntry], rows: Sequence[int]) -> None:
        """Count waiting pods of one gang and class on node rows, until their binds have outcomes.

        It works in bulk, one addition for all nodes, because this is a decision's longest step.
        """
        if not entries:
            return
        gang, pod_class = entries[0].gang, entries[0].pod_class
        assert gang is not None, "only pods of a gang are placed"
        gang.take_waiting(entries)
        self.waiting -= len(entries)
        nodes, uids = self.nodes.nodes, [entry.pod.uid for entry in entries]
        for entry, uid, row in zip(entries, uids, rows, strict=True):
            node = nodes[row]
            assert node is not None, f"row {row} holds no node"
            entry.where, entry.row, entry.node = Where.ASSUMED, row, node.name
            there = self._on_node.get(node.name)
            if there is None:
                there = self._on_node[node.name] = set()
            there.add(uid)
            if entry.nominated:
                self.precedence.waits_no_more(entry, node.name)
        self.alike.wait_no_more(uids)
        for row, uid in zip(rows, uids, strict=True) if self.storage.users else ():
            self.storage.take(row, uid)
        self.nodes.take_many(rows, pod_class)
        self.neighbours.take_many(rows, [entry.label_set for entry in entries], pod_class.spec)
        self.touched.add(gang.key)
        self.reservations.note_assumed(gang.key, uids, [e.node for e in entries], pod_class)

    # Nodes

    def node_changed(self, change: changes.NodeChanged) -> None:
        """Take a node's newest version."""
        name = change.node.name
        self.note_defect("Node", "", name)
        is_new = name not in self.nodes.rows
        row, differs = self.nodes.put(change.node)
        recount(self.nodes, self.classes, self.pods, self.precedence)
        if is_new:
            self.nodes_differ = True
            self.neighbours.grow(self.nodes.capacity)
            self.precedence.grow()
            self.storage.nodes.node_added(name, row, self.nodes.capacity)
            for uid in self._on_node.get(name, ()):
                self._take(self.pods[uid], row)
        if differs:
            self.grown.add(row)

    def node_gone(self, change: changes.NodeGone) -> None:
        """Forget a node; its pods keep their places until they are gone too."""
        self.note_defect("Node", "", change.name, change.defect)
        row = self.nodes.remove(change.name)
        if row is None:
            return
        self.nodes_differ = True
        self.grown.discard(row)
        self.reservations.node_gone(change.name)
        for uid in self._on_node.get(change.name, ()):
            entry = self.pods[uid]
            self.neighbours.release(
                row, entry.label_set, entry.pod.spec, terminating=entry.pod.terminating
            )
            self.precedence.released(entry)
            self.storage.remove_pod(uid)
            entry.row = -1
        self.storage.nodes.node_removed(change.name)
        recount(self.nodes, self.classes, self.pods, self.precedence)

    # Pods

    def pod_changed(self, change: changes.PodChanged) -> None:
        """Take a pod's newest version."""
        pod = change.pod
        entry = self.pods.get(pod.uid)
        if entry is None:
            entry = self._met(pod)
        elif replace(entry.pod, start_time=pod.start_time) == pod:
            entry.pod = pod  # no count depends on the start time
        else:
            self._take_version(entry, pod)
        if entry.gang is not None and entry.where is Where.BOUND:
            self.settle(entry.gang, pod.uid)

    def _met(self, pod: Pod) -> PodEntry:
        """Take in a new pod; return its entry."""
        ours = pod.scheduler in self.scheduler_names
        label_set = self.neighbours.acquire(pod.namespace, pod.labels, pod.spec)
        entry = PodEntry(pod, self._class_of(pod), label_set, ours=ours)
        self.pods[pod.uid] = entry
        self.devices.note_user(pod, None)
        self.storage.add_pod(pod)
        entry.gang = self._gang_for(pod)
        if entry.gang is not None:
            entry.adopted = bool(pod.bound_for) and pod.bound_for != entry_of(entry.gang.key)
        self._enter(entry, place_of(pod, None, self.scheduler_names), pod.node)
        self.reservations.note(None, entry)
        return entry

    def _take_version(self, entry: PodEntry, pod: Pod) -> None:
        """Take in a newer version of a pod."""
        where, node = place_of(pod, entry, self.scheduler_names), pod.node or entry.node
        if self._stays(entry, pod, where, node):
            return
        was, was_bound = placed(entry), entry.where in SETTLED
        was_refused, ran = entry.where is Where.REFUSED, entry.pod.phase == "Running"
        self._leave(entry)
        row_before, class_before, bound_for = entry.row, entry.pod_class, entry.pod.bound_for
        label_set = self.neighbours.acquire(pod.namespace, pod.labels, pod.spec)
        self.neighbours.drop(entry.label_set, entry.pod.spec)
        self.devices.note_user(pod, entry.pod)
        entry.note_version(pod)
        self.storage.replace(pod)
        gang_before, owner_before, adopted = entry.gang, entry.pod.owner, entry.adopted
        entry.pod, entry.label_set = pod, label_set
        entry.pod_class = self._class_of(pod)
        gang = self._gang_for(pod)
        is_moved, is_bound = gang is not gang_before, pod.bound_for != bound_for
        if is_moved and where is Where.PAST:
            where = Where.BOUND  # the past life belongs to its old gang
        if is_moved and where is Where.ASSUMED:
            where = Where.RELABELLED
        if gang is not None and (is_moved or is_bound):
            adopted = (was_bound or bool(pod.bound_for)) and not gang.knows_attempt_of(pod)
        entry.gang, entry.where, entry.adopted = gang, where, adopted  # at once: see ``rebuilding``
        self._enter(entry, where, node if where in ON_NODES else "")
        if where is Where.REFUSED and not was_refused and entry.gang is not None:
            entry.gang.note_refusal(entry, ran=ran)
            self.settle(entry.gang, pod.uid)
        if row_before >= 0 and (row_before, class_before) != (entry.row, entry.pod_class):
            self.grown.add(row_before)
        self.reservations.note(was, entry)
        self.classes.release(class_before)
        self.owners.note_member_gone(gang_before, owner_before)
        if gang_before is not None and gang_before is not entry.gang:
            self._after_loss(gang_before, pod.uid)

    def _stays(self, entry: PodEntry, pod: Pod, where: Where, node: str) -> bool:
        counted_in = self.precedence, self.nodes.log, self.reservations
        if not update_in_place(entry, pod, where, node, *counted_in):
            return False
        if entry.gang is not None:
            self.touched.add(entry.gang.key)
        return True

    def _class_of(self, pod: Pod) -> PodClass:
        return self.classes.take(pod.spec, self.profiles.get(pod.scheduler, GANGS))

    def pod_gone(self, change: changes.PodGone) -> None:
        """Forget a pod."""
        entry = self.pods.get(change.uid)
        if entry is None:
            return
        was = placed(entry)
        self._leave(entry)
        self.reservations.note(was, entry, gone=True)
        if entry.row >= 0:
            self.grown.add(entry.row)
        del self.pods[change.uid]
        self.classes.release(entry.pod_class)
        self.devices.note_user(None, entry.pod)
        self.neighbours.drop(entry.label_set, entry.pod.spec)
        self.storage.drop(change.uid)
        self.owners.note_member_gone(entry.gang, entry.pod.owner)
        if entry.gang is not None:
            self._after_loss(entry.gang, change.uid)

    def _after_loss(self, gang: GangEntry, uid: str) -> None:
        gang.after_loss()
        self.settle(gang, uid)
        self.drop_if_empty(gang)

    def end_past_life(self, gang: GangEntry) -> None:
        """Stop counting the members of a life that is over; the others form a new gang.

        It runs before each decision, after all news, so the order of news does not matter.
        """
        past = gang.past_members() or left_of_earlier_life(gang, self.previous_journal)
        for entry in past:
            self._leave(entry)
            self._enter(entry, Where.PAST, entry.node)
        if past:
            gang.lifecycle.end()
            self.reservations.after_life(gang)
            self.settle(gang, "")

    def _enter(self, entry: PodEntry, where: Where, node: str) -> None:
        """Count a pod at its place, and on its node unless it has finished there."""
        entry.where, entry.node, entry.row = where, node, -1
        if where not in UNDER_WAY:
            self.storage.forget(entry.pod.uid)
        if entry.gang is not None:
            entry.gang.attach(entry, where)
            self.owners.count(entry.gang, entry.pod.owner, 1)
            self.waiting += where is Where.WAITING
            self.touched.add(entry.gang.key)
            if where is Where.WAITING:
                self.precedence.waits(entry)
                self.alike.waits(entry)
        if not node or entry.pod.finished:
            return
        self._on_node.setdefault(node, set()).add(entry.pod.uid)
        row = self.nodes.rows.get(node)
        if row is not None:
            self._take(entry, row)

    def _take(self, entry: PodEntry, row: int) -> None:
        entry.row = row
        self.storage.take(row, entry.pod.uid)
        self.nodes.take(row, entry.pod_class)
        self.neighbours.take(
            row, entry.label_set, entry.pod.spec, terminating=entry.pod.terminating
        )
        self.precedence.took(entry)

    def _leave(self, entry: PodEntry) -> None:
        """Undo ``_enter``; the entry keeps its old row for the caller."""
        if entry.gang is not None:
            self.waiting -= entry.where is Where.WAITING
            entry.gang.detach(entry)
            self.owners.count(entry.gang, entry.pod.owner, -1)
            self.touched.add(entry.gang.key)
        if entry.nominated:
            self.precedence.waits_no_more(entry)
        self.alike.wait_no_more((entry.pod.uid,))
        self.storage.remove_pod(entry.pod.uid)
        if entry.row >= 0:
            self.precedence.released(entry)
            self.nodes.release(entry.row, entry.pod_class)
            self.neighbours.release(
                entry.row, entry.label_set, entry.pod.spec, terminating=entry.pod.terminating
            )
        on_node = self._on_node.get(entry.node)
        if on_node is not None and entry.pod.uid in on_node:
            on_node.discard(entry.pod.uid)
            if not on_node:
                del self._on_node[entry.node]

    def move(self, entry: PodEntry, where: Where, node: str) -> None:
        """Move a pod to another place and node."""
        if self._stays(entry, entry.pod, where, node):
            return
        row, was = entry.row, placed(entry)
        self._leave(entry)
        self._enter(entry, where, node)
        self.reservations.note(was, entry)
        self.grown.update((row,) if row >= 0 and entry.row != row else ())

    # Gangs

    def _gang_for(self, pod: Pod) -> GangEntry | None:
        """Return the pod's gang; None for a pod of another scheduler without a gang."""
        if pod.membership is None and pod.scheduler not in self.scheduler_names:
            return None
        return self.gang(key_of(pod))

    def gang(self, key: GangKey) -> GangEntry:
        """Return the gang with a key; a new key gets a new gang."""
        entry = self.gangs.get(key)
        if entry is None:
            entry = self.gangs[key] = GangEntry(key)
        return entry

    def drop_if_empty(self, gang: GangEntry) -> None:
        """Forget a gang without members and object."""
        if gang.is_empty:
            self.gangs.pop(gang.key, None)

    def owner_changed(self, change: changes.OwnerChanged) -> None:
        """Note how many pods an owner makes, what keeps it from more, and who made it."""
        owner = change.namespace, change.owner
        self.touched |= self.reservations.note_owner_replicas(*owner, change.replicas)
        for key in self.owners.note(*owner, OwnerFacts.of(change)):
            self.gangs[key].runs.note_first(change.owner, change.first)
            self.touched.update((key,) if self.gangs[key].has_undecided else ())

    def note_defect(self, kind: str, namespace: str, name: str, defect: str = "") -> None:
        """Note why an object cannot be read, or ("") that it can."""
        if defect:
            self.unreadable[kind, namespace, name] = defect
        elif self.unreadable:
            self.unreadable.pop((kind, namespace, name), None)

    # Outcomes

    def settle(self, gang: GangEntry, uid: str) -> None:
        """Note that a bind is settled; the last one closes the attempt if the gang has started.

        It also closes the attempt if no member is bound.
        """
        attempt = gang.lifecycle.attempt
        if attempt is None:
            return
        attempt.open.discard(uid)
        if not attempt.open and (gang.started or not gang.bound):
            gang.lifecycle.attempt = None
            self.precedence.note_settled(gang)


def update_in_place(
    entry: PodEntry,
    pod: Pod,
    where: Where,
    node: str,
    precedence: Precedence,
    log: Log,
    reservations: Reservations,
) -> bool:
    """Take a pod's version if it is bound to its node and counted there as before.

    Return whether that is the case. It is not if the pod uses volumes or devices, because what is
    assumed for them ends with its bind.
    """
    if not _stays(entry, pod, where, node):
        return False
    gang, was, bound_for = entry.gang, placed(entry), entry.pod.bound_for
    may_yield = entry.where is not Where.BOUND and precedence.bound is not None
    has_been = entry.where is Where.BOUND or bool(pod.bound_for)
    if gang is not None:
        gang.detach(entry)
    if entry.row >= 0:
        precedence.released(entry)
    entry.note_version(pod)
    entry.pod, entry.where = pod, Where.BOUND
    if gang is not None:
        if pod.bound_for != bound_for:
            entry.adopted = has_been and not gang.knows_attempt_of(pod)
        gang.attach(entry, Where.BOUND)
    if entry.row >= 0:
        precedence.took(entry)
        if may_yield:  # the room for pods that preempt has changed on that row
            log.note(entry.row)
    reservations.note(was, entry)
    return True


def _stays(entry: PodEntry, pod: Pod, where: Where, node: str) -> bool:
    before = entry.pod
    if entry.where not in PLACED or where is not Where.BOUND or node != entry.node:
        return False
    if before.finished or pod.finished or before.terminating or pod.terminating:
        return False
    if before.claims or before.device_claims:
        return False
    return pod is before or _what_counts(pod) == _what_counts(before)


def _what_counts(pod: Pod) -> tuple[object, ...]:
    """Return all that decides how a bound pod is counted on its node and in its gang."""
    return (
        pod.spec,
        pod.labels,
        pod.membership,
        pod.scheduler,
        pod.priority,
        pod.owner,
        pod.run,
        pod.claims,
        pod.device_claims,
    )


def left_of_earlier_life(gang: GangEntry, before: Journal | None) -> list[PodEntry]:
    """Return the members that count for nothing, because a dead leader was binding a new life.

    The binds of a started gang are all marked. So where no living member bears a mark, and their
    attempts had not ended, their life has not started: a mark of an older attempt belongs to
    another life. Where the order of attempts is not known, nothing is returned.
    """
    life = gang.lifecycle
    if life.is_looked_at or not gang.alive or gang.key.is_single:
        return []
    life.is_looked_at = True
    own = gang.own
    alive = [entry.pod for entry in own if entry.is_alive]
    attempts = {pod.attempt for pod in alive}
    if len(alive) == len(own) or "" in attempts or any(pod.started for pod in alive):
        return []
    if before is not None and before.is_settled(gang.key, attempts):
        return []
    older = [
        entry
        for entry in own
        if not entry.is_alive and all(is_older(entry.pod.attempt, id, before) for id in attempts)
    ]
    marked = [entry for entry in own if entry.pod.started]
    if not marked:
        # What finished may be of this life, except that failed members complete no gang.
        older = [entry for entry in older if entry.pod.phase == "Failed"]
    elif any(entry not in older for entry in marked):
        return []  # a mark of this life
    return [] if _is_met_without(gang, older) else older


def _is_met_without(gang: GangEntry, members: list[PodEntry]) -> bool:
    """Whether the other bound members reach min, in all and for each task."""
    but = {entry.pod.uid for entry in members}
    stays = gang.stays - sum(not entry.is_leaving for entry in members)
    lacks = gang.lacking((Where.BOUND,), but)
    return gang.quorum_is_known and stays >= gang.min_count and not lacks


def recount(
    nodes: NodeTable, classes: PodClasses, pods: Mapping[str, PodEntry], precedence: Precedence
) -> None:
    """Count what pods use in columns that have come, gone or moved since the last call."""
    news = nodes.take_relisted()
    if news is None:
        return
    added = {name for name in news.added if classes.is_asked_for(name)}
    if not (added or news.renumbered or any(map(classes.is_asked_for, news.removed))):
        return
    entries = [entry for entry in pods.values() if entry.row >= 0]
    for entry in entries if added else ():
        amounts = [one for one in entry.pod_class.asked if one[0] in added]
        nodes.add_used(entry.row, amounts)
    precedence.recount(entries)
