"""The gangs and their members, counted by change. Owned by ``state.cluster``.

A gang exists here while it has an object or a member. Counting is incremental: a thousandth member
costs what the first one cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any

from quorate.core.changes import PrepareFailed, Undone
from quorate.core.model import GangKey, GangSpec, Membership, Pod
from quorate.core.state.encoding import PodClass
from quorate.core.state.neighbours import LabelSet


class Where(IntEnum):
    """The one place in which a pod is."""

    WAITING = 0
    """Ours, could be placed."""
    ASSUMED = 1
    """Ours, has a node in our plan; its Binding is under way."""
    BOUND = 2
    """Has a node, whatever its phase."""
    GATED = 3
    TERMINATING = 4
    """Being deleted before it ever had a node."""
    INVALID = 5
    """Ours, but must not be placed as it is (``pod.defect`` says why)."""
    ENDED = 6
    """Finished without ever having had a node."""
    FOREIGN = 7
    """Another scheduler's, without a node; the guard may have let it through to one."""
    REFUSED = 8
    """Its node's kubelet refused it: it never ran and never will, so it counts for nothing."""


_Opinion = tuple[int, str, int | None]

_UNDECIDED = frozenset({Where.WAITING, Where.GATED, Where.INVALID})


class PodEntry:
    """A pod and where it is. ``row`` is its node's row, or -1 while that node is not known."""

    __slots__ = (
        "evicting",
        "gang",
        "label_set",
        "node",
        "nominated",
        "ours",
        "pod",
        "pod_class",
        "preempting",
        "row",
        "where",
    )

    def __init__(self, pod: Pod, pod_class: PodClass, label_set: LabelSet, *, ours: bool) -> None:
        self.ours = ours
        self.pod = pod
        self.pod_class = pod_class
        self.label_set = label_set
        self.gang: GangEntry | None = None
        self.where = Where.FOREIGN
        self.node = ""
        self.row = -1
        self.evicting = False
        self.nominated = pod.nominated
        """The node on which it is promised room: as the API says it, or as we decided since."""
        self.preempting = False
        """Whether we are deleting it to make room for another pod."""

    def note_nomination(self, pod: Pod) -> None:
        """Take what a newer version says of its node, unless it says what the last one said."""
        if pod.nominated != self.pod.nominated:
            self.nominated = pod.nominated


class Attempt:
    """One try to start a gang: from its plan until all its binds are settled or time is over."""

    __slots__ = ("deadline_s", "id", "min_count", "open", "refusals", "refused", "seals")

    def __init__(self, attempt_id: str, deadline_s: float, min_count: int) -> None:
        self.id = attempt_id
        self.deadline_s = deadline_s
        self.min_count = min_count
        """Min of its newest plan: what counts if the object is edited or deleted meanwhile."""
        self.open: set[str] = set()
        """Uids whose bind has no outcome yet."""
        self.refusals: list[tuple[str, str]] = []
        """Nodes for which a write that comes before the binds was refused, and the message."""
        self.refused = False
        """Whether a kubelet refused a member that it had bound, which may be gone by now."""
        self.seals: set[str] = set()
        """Uids of the newest plan whose binds make the gang quorate, and mark their pods."""


class GangEntry:
    """A gang: its object (if any), its members, and how far it has come."""

    def __init__(self, key: GangKey) -> None:
        self.key = key
        self.spec: GangSpec | None = None
        self.members: dict[str, PodEntry] = {}
        self.waiting: dict[int, dict[str, PodEntry]] = {}
        """Members that wait, by class id."""
        self.counts: list[int] = [0] * len(Where)
        self.ours = 0
        """Members whose scheduler name is ours; a gang without any is another scheduler's."""
        self.priorities: Counter[int] = Counter()
        self.schedulers: Counter[str] = Counter()
        self.minima: Counter[int | None] = Counter()
        self._opinions: tuple[Counter[Any], ...] = self.priorities, self.schedulers, self.minima
        self.label_min = 1
        """Min as the newest member's labels say it, in the dialect without objects; members that
        have a node are asked only when no other is there."""
        self.first_created_s = float("inf")
        self.once_quorate = False
        self.attempt: Attempt | None = None
        self.founders: set[str] = set()
        """Ids of the attempts that made it quorate, while we remember them; several, when kubelets
        refused members one after the other."""
        self._completed_by = ""
        """Uid of the member whose bind made it quorate, whoever sent it."""
        self.reopened = False
        """Whether kubelets undid the quorum of its founders: the gang has to meet anew."""
        self.refused_by: list[str] = []
        """Nodes that refused a member since the last decision."""
        self.avoid: dict[str, float] = {}
        """Nodes that refused a member, and until when (epoch seconds) no other one goes there."""
        self.evicting = 0
        """Bound members that are being evicted: they count no more."""
        self.failed = False
        """Whether a bind failed since the last decision."""
        self.failures = 0
        """Decisions in a row that met failed binds."""
        self.not_before_s = 0.0
        self.is_short = False
        """Whether minResources held it back when it was last tried."""
        self.last_failure = ""
        self.preemption_said = ""
        """What preemption could not do when it was last tried, in kube-scheduler's words."""
        self.shun: frozenset[str] = frozenset()
        """Nodes for which claims could not be bound: the next attempt goes elsewhere, if it can."""
        self.is_undoing = False
        """Whether what was prepared for its claims is being taken back."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to remember."""
        return not self.members and self.spec is None

    @property
    def min_count(self) -> int:
        """How many members must be able to start; 1 for a pod of no gang."""
        if self.spec is not None:
            return self.spec.min_count
        return self.label_min

    @property
    def created_s(self) -> float:
        """The gang's age: its object's, or its first member's, creation (epoch seconds)."""
        if self.spec is not None and self.spec.created_s:
            return self.spec.created_s
        return self.first_created_s

    @property
    def priority(self) -> int:
        """The members' priority; the highest where they disagree."""
        return max(self.priorities, default=0)

    @property
    def started(self) -> bool:
        """Whether the gang was once quorate and still runs: it needs no new quorum."""
        return self.once_quorate and self.bound > 0

    @property
    def bound(self) -> int:
        """Members that have a node, whatever their phase."""
        return self.counts[Where.BOUND]

    @property
    def assumed(self) -> int:
        """Members whose binds are under way."""
        return self.counts[Where.ASSUMED]

    @property
    def waits(self) -> int:
        """Members that could be placed now."""
        return self.counts[Where.WAITING]

    @property
    def exist(self) -> int:
        """Members that count towards quorum: bound, under way, or waiting."""
        return self.bound - self.evicting + self.assumed + self.waits

    @property
    def need(self) -> int:
        """How many waiting members must be placed at once; 0 when each may start by itself."""
        if self.started:
            return 0
        return max(0, self.min_count - (self.bound - self.evicting) - self.assumed)

    @property
    def has_undecided(self) -> bool:
        """Whether a member waits or is held back: there is something to tell."""
        return any(self.counts[where] for where in _UNDECIDED)

    @property
    def disagrees(self) -> bool:
        """Whether two members that have no node yet differ in priority, min or scheduler name."""
        return len(self.priorities) > 1 or len(self.schedulers) > 1 or len(self.minima) > 1

    def attach(self, entry: PodEntry, where: Where) -> None:
        """Count ``entry`` as being ``where``."""
        entry.where = where
        self.counts[where] += 1
        self.ours += entry.ours
        self.evicting += entry.evicting
        pod = entry.pod
        self.members[pod.uid] = entry
        if where is Where.WAITING:
            self.waiting.setdefault(entry.pod_class.id, {})[pod.uid] = entry
        if where in _UNDECIDED or (where is Where.FOREIGN and not pod.terminating):
            self._count_opinion(_opinion(pod), 1)
        self.first_created_s = min(self.first_created_s, pod.created_s)
        said = pod.membership.min_count if pod.membership is not None else None
        if said is not None and (where in _UNDECIDED or not self.minima):
            self.label_min = said
        if where is Where.BOUND and not self.once_quorate and self._is_quorate_with(pod):
            self._completed_by = pod.uid
            self._become_quorate()

    def detach(self, entry: PodEntry) -> None:
        """Stop counting ``entry``."""
        where, pod = entry.where, entry.pod
        self.counts[where] -= 1
        self.ours -= entry.ours
        self.evicting -= entry.evicting
        del self.members[pod.uid]
        if where is Where.WAITING:
            alike = self.waiting[entry.pod_class.id]
            del alike[pod.uid]
            if not alike:
                del self.waiting[entry.pod_class.id]
        if where in _UNDECIDED or (where is Where.FOREIGN and not pod.terminating):
            self._count_opinion(_opinion(pod), -1)
            if len(self.minima) == 1:  # the others agree: what this one said does not count
                self.label_min = next(iter(self.minima)) or self.label_min

    def take_waiting(self, entries: Sequence[PodEntry]) -> None:
        """Move waiting members of one class to ``ASSUMED``, all at once."""
        alike = self.waiting[entries[0].pod_class.id]
        if len(alike) == len(entries):
            del self.waiting[entries[0].pod_class.id]
        else:
            for entry in entries:
                del alike[entry.pod.uid]
        self.counts[Where.WAITING] -= len(entries)
        self.counts[Where.ASSUMED] += len(entries)
        for opinion, times in Counter(_opinion(entry.pod) for entry in entries).items():
            self._count_opinion(opinion, -times)

    def give_up(self, entries: Iterable[PodEntry]) -> None:
        """Count these bound members no more: they are being evicted."""
        for entry in entries:
            if not entry.evicting:
                entry.evicting = True
                self.evicting += 1

    def note_refusal(self, entry: PodEntry, *, ran: bool) -> None:
        """A kubelet refused a member; its gang may not be quorate any more.

        One that ``ran`` before (its node was restarted) is a lost member like any other.
        """
        self.refused_by.append(entry.pod.node)
        if self.attempt is not None and entry.pod.attempt in ("", self.attempt.id):
            self.attempt.refused = True
        lacks = self.bound - self.evicting < self.min_count
        founded = entry.pod.attempt in self.founders or entry.pod.uid == self._completed_by
        if lacks and not ran and self.once_quorate and founded:
            self.once_quorate, self.reopened = False, True

    def note_prepared(self, change: PrepareFailed | Undone) -> None:
        """Writes that come before the binds were refused, or have been taken back."""
        if isinstance(change, Undone):
            self.is_undoing = False
        elif self.attempt is not None and self.attempt.id == change.attempt:
            self.attempt.refusals.append((change.node, change.message))

    def after_loss(self) -> None:
        """A gang that has lost its last bound member has to become quorate afresh."""
        if self.bound == 0:
            self.once_quorate, self.reopened = False, False
            self.founders.clear()

    def set_spec(self, spec: GangSpec | None) -> None:
        """Take the object's newest version; None when it is gone."""
        self.spec = spec
        if spec is not None and 0 < spec.min_count <= self.bound - self.evicting:
            self._become_quorate()

    def _is_quorate_with(self, pod: Pod) -> bool:
        """Whether the gang is quorate with ``pod`` bound.

        By min as it is now, or because its bind came last and was marked: a successor believes that
        mark, so we do, although somebody edited min, or deleted the object or another member, while
        the bind was on its way. Only a kubelet's refusal is known to have come before.
        """
        stays, attempt = self.bound - self.evicting, self.attempt
        if self.quorum_is_known and stays >= self.min_count:
            return True
        if attempt is None:
            return False
        is_seal = pod.uid in attempt.seals and pod.attempt == (attempt.id if pod.node else "")
        if is_seal or (pod.started and pod.attempt == attempt.id):
            return stays >= attempt.min_count or not attempt.refused
        # The mark of a dead leader's bind, which arrived after we had taken its gang up.
        return pod.started and pod.attempt not in {attempt.id, *self.founders}

    def may_be_sealed(self, attempt_id: str, uid: str) -> bool:
        """Tell whether the bind of a member that was planned to make it quorate would do so still.

        If the attempt was planned anew since, other binds seal it.
        """
        if self.started:
            return True
        attempt = self.attempt
        if attempt is None or attempt.id != attempt_id or uid not in attempt.seals:
            return False
        minimum = self.min_count if self.quorum_is_known else attempt.min_count
        others = self.assumed - len(attempt.seals & attempt.open)
        return self.bound - self.evicting + others >= minimum - 1

    def _become_quorate(self) -> None:
        if not self.once_quorate:
            self.once_quorate = True
            if self.attempt is not None:
                self.founders.add(self.attempt.id)

    @property
    def quorum_is_known(self) -> bool:
        """Whether min is known: by the object, or by the pods themselves."""
        return self.spec is not None or self.key.dialect in ("labels", "pod")

    def _count_opinion(self, opinion: _Opinion, times: int) -> None:
        for counter, value in zip(self._opinions, opinion, strict=True):
            counter[value] += times
            if not counter[value]:
                del counter[value]


def _opinion(pod: Pod) -> _Opinion:
    """Return what members must agree in: priority, scheduler name, min where labels carry it."""
    return pod.priority, pod.scheduler, pod.membership.min_count if pod.membership else None


def key_of(pod: Pod) -> GangKey:
    """Return the gang that ``pod`` belongs to; a pod of none is a gang of one."""
    membership: Membership | None = pod.membership
    return membership.key if membership else GangKey(pod.namespace, "pod", f"{pod.name}@{pod.uid}")


def place_of(pod: Pod, entry: PodEntry | None, ours: frozenset[str]) -> Where:
    """Decide where a pod is. A pod that has a node never loses it again.

    ``entry`` is what is known of it, if anything; ``ours`` are our scheduler names.
    """
    if pod.refusal:
        return Where.REFUSED
    if pod.node or (entry is not None and entry.where is Where.BOUND):
        return Where.BOUND
    if pod.finished:
        return Where.ENDED
    if pod.scheduler not in ours:
        return Where.FOREIGN
    if entry is not None and entry.where is Where.ASSUMED:
        return Where.ASSUMED
    if pod.terminating:
        return Where.TERMINATING
    if pod.gates:
        return Where.GATED
    return Where.INVALID if pod.defect else Where.WAITING
