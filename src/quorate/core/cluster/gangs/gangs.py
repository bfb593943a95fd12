"""The gangs and their members, with counts of members by place. Owned by ``cluster.cluster``.

In: members that come, move and go, and gang objects. Out: counts, min, need, and whether the gang
is quorate. A gang exists here while it has an object or a member. Counting is incremental: each
member costs the same, however many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from quorate.core.cluster.gangs.lifecycle import Attempt, Lifecycle, QueueMemory
from quorate.core.cluster.gangs.pods import (
    EXISTING,
    PLACED,
    UNDECIDED,
    PodRecord,
    Where,
    key_of,
    place_of,
)
from quorate.core.cluster.gangs.runs import NO_RUNS, Runs
from quorate.core.cluster.gangs.tasks import lacking
from quorate.core.model import GangKey, GangSpec, Owner, Pod
from quorate.core.model.changes import PrepareFailed, Undone
from quorate.core.model.journal import entry_of

__all__ = ["EXISTING", "PLACED", "Attempt", "GangEntry", "PodEntry", "Where", "key_of", "place_of"]

_SharedFields = tuple[int, str, int | None]


class PodEntry(PodRecord["GangEntry"]):
    """A pod, where it is, and the gang in which it is counted."""

    __slots__ = ()


class GangEntry:
    """A gang: its object (if any), its members, its life-cycle and the queue's memory of it."""

    def __init__(self, key: GangKey) -> None:
        self.key = key
        self.spec: GangSpec | None = None
        self.members: dict[str, PodEntry] = {}
        self.waiting: dict[int, dict[str, PodEntry]] = {}
        """Waiting members, by class id, then by uid."""
        self.counts: list[int] = [0] * len(Where)
        self.ours = 0
        """The number of members with a scheduler name of ours; 0: it is not our gang."""
        self.class_priority: int | None = None
        """The value of the PriorityClass that its object names; None: no class is known for it."""
        self.priorities: Counter[int] = Counter()
        self.schedulers: Counter[str] = Counter()
        self.minima: Counter[int | None] = Counter()
        self._counted_fields: tuple[Counter[Any], ...]
        self._counted_fields = self.priorities, self.schedulers, self.minima
        self.min_by_pods: int | None = None
        """Min by the labels of the newest member; None if labels do not carry min. A member with a
        node counts only if all members have one."""
        self.first_created_s = float("inf")
        self.runs = NO_RUNS if key.is_single else Runs()
        self.alive = 0
        """Bound members that keep the gang's life going; see ``PodEntry.is_alive``."""
        self.leaving = 0
        """Bound members that are being deleted or evicted: they no longer count for min."""
        self.lifecycle = Lifecycle()
        self.memory = QueueMemory()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to remember."""
        return not self.members and self.spec is None

    @property
    def stated_min(self) -> int:
        """Min as the object or the pods' labels state it; 1 for a pod without a gang."""
        if self.spec is not None:
            return self.spec.min_count
        return 1 if self.min_by_pods is None else self.min_by_pods

    @property
    def min_count(self) -> int:
        """Min: how many members must be able to start, besides those that have done their work."""
        stated, done = self.stated_min, self.runs.done
        if self.runs.first is not None:
            stated -= self.runs.comes_last(stated)
        return max(min(1, stated), stated - done) if done else stated

    @property
    def created_s(self) -> float:
        """The creation time of the gang's object, else of its first member (epoch seconds)."""
        if self.spec is not None and self.spec.created_s:
            return self.spec.created_s
        return self.first_created_s

    @property
    def owners(self) -> Collection[Owner | None]:
        """Who makes its members; None stands for those whom nobody makes."""
        if self.key.is_single:
            return [entry.pod.owner for entry in self.members.values()]
        return self.runs.owners

    @property
    def priority(self) -> int:
        """That of the class which its object names, else the highest of its members' own."""
        highest = max(self.priorities, default=0)
        return highest if self.class_priority is None else self.class_priority

    @property
    def started(self) -> bool:
        """Whether it was once quorate and still has bound members of that life."""
        return self.lifecycle.once_quorate and self.bound > 0

    @property
    def attempt(self) -> Attempt | None:
        """The open attempt to start it, or None."""
        return self.lifecycle.attempt

    @property
    def own(self) -> list[PodEntry]:
        """The bound members that joined before they were bound. It takes O(members)."""
        return [e for e in self.members.values() if e.where is Where.BOUND and not e.adopted]

    @property
    def stays(self) -> int:
        """The number of bound members that are neither being deleted nor evicted."""
        return self.bound - self.leaving

    @property
    def bound(self) -> int:
        """The number of members in this life of the gang with a node, whatever their phase."""
        return self.counts[Where.BOUND]

    @property
    def assumed(self) -> int:
        """The number of members whose binds are under way."""
        return self.counts[Where.ASSUMED]

    @property
    def waits(self) -> int:
        """The number of members that could be placed now."""
        return self.counts[Where.WAITING]

    @property
    def exist(self) -> int:
        """The number of members that count toward min: bound, under way, or waiting."""
        return self.stays + self.assumed + self.waits

    @property
    def need(self) -> int:
        """How many waiting members must be placed at once; 0 if each may start on its own."""
        if self.started:
            return 0
        lacks = self.min_count - self.stays - self.assumed
        return max(0, lacks, sum(self.lacking(PLACED).values()))

    @property
    def is_met(self) -> bool:
        """Whether the bound members reach min, in all and for each task."""
        is_enough = self.stays >= self.min_count
        return is_enough and not self.lacking((Where.BOUND,))

    @property
    def has_undecided(self) -> bool:
        """Whether a member waits or is held back, so that there is something to report."""
        return any(self.counts[where] for where in UNDECIDED)

    @property
    def disagrees(self) -> bool:
        """Whether members without a node differ in scheduler name, min, or wrongly in priority."""
        mixed = len(self.priorities) > 1 and not (self.spec is not None and self.spec.mixed)
        return mixed or len(self.schedulers) > 1 or len(self.minima) > 1

    def lacking(self, places: Collection[int], but: Collection[str] = ()) -> dict[str, int]:
        """Return how many more members each task needs if those in ``places`` are all that count.

        Members that have done their work count too, those whose uids are in ``but`` do not.
        """
        return lacking(self.spec, self.members.values(), places, but, self.runs.done_by_task)

    def attach(self, entry: PodEntry, where: Where) -> None:
        """Count ``entry`` as being ``where``."""
        entry.where = where
        self.counts[where] += 1
        self.runs.count(entry, 1)
        self.ours += entry.ours
        self.alive += entry.is_alive
        self.leaving += entry.is_leaving
        self.lifecycle.evicting += entry.evicting and where is Where.BOUND
        pod = entry.pod
        self.members[pod.uid] = entry
        if where is Where.WAITING:
            self.waiting.setdefault(entry.pod_class.id, {})[pod.uid] = entry
        if where in UNDECIDED or (where is Where.FOREIGN and not pod.terminating):
            self._count_shared_fields(_shared_fields(pod), 1)
        self.first_created_s = min(self.first_created_s, pod.created_s)
        said = pod.membership.min_count if pod.membership is not None else None
        if said is not None and (where in UNDECIDED or not self.minima):
            self.min_by_pods = said
        is_own = where is Where.BOUND and not entry.adopted
        self.lifecycle.saw_started |= is_own and pod.started
        may_complete = is_own and not self.lifecycle.once_quorate
        if may_complete and self._is_quorate_with(pod):
            self.lifecycle.completed_by = pod.uid
            self.lifecycle.become_quorate()

    def detach(self, entry: PodEntry) -> None:
        """Stop counting ``entry``."""
        where, pod = entry.where, entry.pod
        self.counts[where] -= 1
        self.runs.count(entry, -1)
        self.ours -= entry.ours
        self.alive -= entry.is_alive
        self.leaving -= entry.is_leaving
        self.lifecycle.evicting -= entry.evicting and where is Where.BOUND
        del self.members[pod.uid]
        if where is Where.WAITING:
            alike = self.waiting[entry.pod_class.id]
            del alike[pod.uid]
            if not alike:
                del self.waiting[entry.pod_class.id]
        if where in UNDECIDED or (where is Where.FOREIGN and not pod.terminating):
            self._count_shared_fields(_shared_fields(pod), -1)
            self._take_agreed_min()

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
        self.runs.take_waiting(entries)
        for fields, times in Counter(_shared_fields(entry.pod) for entry in entries).items():
            self._count_shared_fields(fields, -times)
        self._take_agreed_min()

    def _take_agreed_min(self) -> None:
        """Take the min on which the members without a node agree; that of others is outdated."""
        if len(self.minima) == 1:
            self.min_by_pods = next(iter(self.minima)) or self.min_by_pods

    def give_up(self, entries: Iterable[PodEntry]) -> None:
        """Stop counting these bound members: they are being evicted."""
        for entry in entries:
            if not entry.evicting:
                self.alive -= entry.is_alive
                self.leaving -= entry.is_leaving
                entry.evicting = True
                self.leaving += entry.is_leaving
                self.lifecycle.evicting += entry.where is Where.BOUND

    def set_adopted(self, entry: PodEntry, is_adopted: bool) -> None:
        """Set whether a member was bound before it joined: then it keeps no gang alive."""
        self.alive -= entry.is_alive
        self.runs.count(entry, -1)
        entry.adopted = is_adopted
        self.runs.count(entry, 1)
        self.alive += entry.is_alive

    def note_refusal(self, entry: PodEntry, *, ran: bool) -> None:
        """Note that a kubelet refused a member; the gang may no longer be quorate.

        A member that ``ran`` before (its node was restarted) is a lost member like any other.
        """
        life = self.lifecycle
        self.memory.refused_by.append(entry.pod.node)
        if life.attempt is not None:  # whichever attempt bound it, min has to be reached again
            life.attempt.refused = True
        made_it_quorate = entry.pod.attempt in life.started_by or entry.pod.uid == life.completed_by
        if not ran and life.once_quorate and made_it_quorate and not self._stands(entry.pod):
            life.once_quorate, life.reopened = False, True

    def _stands(self, refused: Pod) -> bool:
        """Whether the gang is quorate without a refused member, by min now or at the last start.

        Min may have been raised since the start; that must not tear down a started gang.
        """
        attempt = self.lifecycle.last_start
        if self.is_met or attempt is None or refused.attempt != attempt.id:
            return self.is_met
        is_enough = self.stays >= attempt.min_count
        return is_enough and not lacking(
            attempt, self.members.values(), (Where.BOUND,), (), self.runs.done_by_task
        )

    def note_prepared(self, change: PrepareFailed | Undone) -> None:
        """Note that a write that precedes the binds was refused, or that an undo has finished."""
        attempt = self.lifecycle.attempt
        if isinstance(change, Undone):
            self.lifecycle.is_undoing = False
        elif attempt is not None and attempt.id == change.attempt:
            attempt.refusals.append((change.node, change.message))

    def after_loss(self) -> None:
        """End the gang's life if its last bound member is gone: it must become quorate again."""
        if self.bound == 0:
            self.lifecycle.end()

    def set_spec(self, spec: GangSpec | None) -> None:
        """Take the object's newest version; None: it is gone."""
        self.spec = spec
        is_met = spec is not None and self.stays > 0 and self.is_met
        if is_met and any(e.is_alive for e in self.members.values()):
            self.lifecycle.become_quorate()

    def take_marks(self) -> None:
        """Take a gang that runs for started, for one who reads of it and decides nothing.

        Our Binding marks a pod that makes its gang quorate. Where no pod waits, any pod that we
        have bound will do: an attempt that fails leaves none.
        """
        own = self.own
        is_ours = any(entry.pod.attempt for entry in own)
        if any(entry.pod.started for entry in own) or (is_ours and not self.waits):
            self.lifecycle.become_quorate()

    def past_members(self) -> list[PodEntry]:
        """Return the bound members of a life that is over, if members of a new life wait.

        A life is over when no bind is under way and no bound member is alive. Members that we evict
        count as alive here, because their eviction may fail.
        """
        lives = self.alive or self.assumed
        if not lives and self.lifecycle.evicting:
            lives = any(e.evicting and e.may_stay for e in self.members.values())
        if lives or not self.bound or not self.has_undecided or self.key.is_single:
            return []
        return [e for e in self.members.values() if e.where is Where.BOUND]

    def _is_quorate_with(self, pod: Pod) -> bool:
        """Whether the gang is quorate with ``pod`` bound.

        It is if bound members reach min now, or if the pod's bind was marked as completing the
        gang. A successor trusts that mark, so we do too, even if min, the object or another member
        was changed while the bind was under way. Only a kubelet's refusal, known to have come
        before, overrules it.
        """
        stays, attempt = self.stays, self.lifecycle.attempt
        if self.quorum_is_known and self.is_met:
            return True
        if attempt is None:
            return False
        is_completing = pod.uid in attempt.completing and pod.attempt == (
            attempt.id if pod.node else ""
        )
        if is_completing or (pod.started and pod.attempt == attempt.id):
            return stays >= attempt.min_count or not attempt.refused
        # A dead leader's bind with a mark, which arrived after we had opened an attempt.
        return pod.started and pod.attempt not in {attempt.id, *self.lifecycle.started_by}

    def may_complete(self, attempt_id: str, uid: str) -> bool:
        """Whether a bind that was planned to complete the gang would still complete it.

        If the attempt has a newer plan, other binds complete the gang.
        """
        if self.started:
            return True
        attempt = self.lifecycle.attempt
        if attempt is None or attempt.id != attempt_id or uid not in attempt.completing:
            return False
        minimum = self.min_count if self.quorum_is_known else attempt.min_count
        completing = attempt.completing & attempt.open
        others = self.stays + self.assumed - len(completing)
        lacks = self.lacking(PLACED, but=completing - {uid})
        return others >= minimum - 1 and not lacks

    def knows_attempt_of(self, pod: Pod) -> bool:
        """Whether a Binding for this gang bound the pod, by known attempts or the pod's mark."""
        attempt = self.lifecycle.attempt
        ids = self.lifecycle.started_by | ({attempt.id} if attempt is not None else set())
        return pod.attempt in ids or pod.bound_for == entry_of(self.key)

    @property
    def quorum_is_known(self) -> bool:
        """Whether min is known, from the object or from the pods' labels."""
        return self.spec is not None or self.min_by_pods is not None or self.key.is_single

    def _count_shared_fields(self, fields: _SharedFields, times: int) -> None:
        for counter, value in zip(self._counted_fields, fields, strict=True):
            counter[value] += times
            if not counter[value]:
                del counter[value]


def _shared_fields(pod: Pod) -> _SharedFields:
    """Return what members must agree on: priority, scheduler name, and min if labels carry it."""
    return pod.priority, pod.scheduler, pod.membership.min_count if pod.membership else None
