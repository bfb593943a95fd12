"""Attempts: from a gang's plan until its binds are settled, or until it times out and is undone.

In: gangs, their plans, the time (epoch seconds). Out: evictions, and the journal for a successor.
Called by ``scheduler`` and ``advancing``. A gang that a dead leader left partly bound becomes an
attempt too, which is finished or undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

from quorate.core.cluster.gangs.gangs import Attempt, GangEntry, PodEntry, Where
from quorate.core.model import GangKey, policy
from quorate.core.model.journal import Journal, journal_of
from quorate.core.model.plan import Eviction, GangBinds, attempt_id
from quorate.core.model.policy import Policy

Gangs = Mapping[GangKey, GangEntry]


class Attempts:
    """The attempts that are open. ``identity`` makes their ids unique over restarts."""

    def __init__(self, policy: Policy, identity: str) -> None:
        self.policy = policy
        self.identity = identity
        self.made = 0
        """The number of the newest attempt."""
        self._due: list[tuple[float, int, GangKey, Attempt]] = []  # a heap; some have ended
        self._overdue: dict[GangKey, Attempt] = {}
        """Attempts that have timed out and are not ended yet: a bind may still lack an outcome."""
        self._undone: set[GangKey] = set()
        """Gangs whose members are being evicted."""
        self._before: Journal | None = None
        self._late_until_s: float | None = None
        self._may_arrive = False
        """Whether binds of the previous leader may still arrive."""

    def note_previous_leader(self, before: Journal | None, now_s: float) -> None:
        """Note the previous leader's journal, and for how long its binds may still arrive.

        None: there was no leader before.
        """
        if self._late_until_s is None or before is not self._before:
            self._before, self._late_until_s = before, now_s + policy.LATE_S
        self._may_arrive = now_s < self._late_until_s

    def begin(self, gang: GangEntry, plan: GangBinds, now_s: float) -> None:
        """Open the attempt of a plan, or add the plan to the attempt that is open."""
        attempt = gang.lifecycle.attempt
        if attempt is None:
            number = int(plan.attempt.rpartition("-")[2])
            attempt = self._open(gang, now_s + self._timeout_s(gang), number)
        assert attempt.id == plan.attempt, "a plan adds to the attempt that is open"
        attempt.open.update(bind.uid for bind in plan.binds)
        attempt.completing = {bind.uid for bind in plan.binds[plan.first :]}
        if gang.quorum_is_known:
            _take_minima(attempt, gang)

    def resume(self, gang: GangEntry, before: Journal | None, now_s: float) -> None:
        """Open an attempt for a gang that is bound below min, so that it is finished or undone.

        There are two causes. A leader died amid its binds: the pods carry its attempt, and none
        carries the mark of the binds that complete a gang. Or kubelets refused pods of a gang that
        had just become quorate. A gang without a mark may also have started and lost its marked
        members since: ``before``, the previous leader's journal, says so. Pods that were bound for
        another gang are left alone.
        """
        life = gang.lifecycle
        saw_started, life.saw_started = life.saw_started, False
        if life.attempt is not None or life.once_quorate or not gang.stays:
            return
        if not gang.ours:
            return  # another instance with other scheduler names may be binding it
        own = gang.own
        if not own or not self._is_partial(gang):
            return
        attempts = {entry.pod.attempt for entry in own if entry.pod.attempt}
        if life.reopened:
            life.reopened = False
            self._open(gang, now_s + self._timeout_s(gang))
        elif saw_started or any(entry.pod.started for entry in own):
            life.once_quorate = True
        elif not attempts:
            return  # another scheduler bound them
        elif self._had_started(gang, attempts, before):
            life.once_quorate = True
        else:
            self._reopen(gang, own, now_s)

    @staticmethod
    def _is_partial(gang: GangEntry) -> bool:
        """Whether members are bound, and min is unknown or not met."""
        return gang.stays > 0 and not (gang.quorum_is_known and gang.is_met)

    def _had_started(self, gang: GangEntry, attempts: set[str], before: Journal | None) -> bool:
        if before is None or any(id.rpartition("-")[0] == self.identity for id in attempts):
            return False
        return before.is_settled(gang.key, attempts)

    def _reopen(self, gang: GangEntry, bound: list[PodEntry], now_s: float) -> None:
        """Open the attempt of a dead leader again."""
        gang.give_up(entry for entry in bound if entry.pod.terminating)
        if gang.lifecycle.evicting:
            self._undone.add(gang.key)
        if self._is_partial(gang):
            # Terminating members show that the gang was being undone: undo the rest at once.
            wait_s = 0.0 if gang.lifecycle.evicting else self.policy.recovery_s
            attempt = self._open(gang, now_s + wait_s)
            if not gang.quorum_is_known:
                # Its object is missing. The attempt's size is at least the min of that time.
                attempt.min_count = max(entry.pod.attempt_size for entry in bound)

    def journal(self, gangs: Gangs) -> Journal:
        """Return the journal of open attempts: gangs below min whose pods we bind or evict.

        While binds of the previous leader may arrive, each waiting gang counts as open too.
        """
        found = {key for _, _, key, attempt in self._due if _is_open(key, attempt, gangs)}
        found |= {key for key, attempt in self._overdue.items() if _is_open(key, attempt, gangs)}
        found |= {key for key in self._undone if key in gangs and gangs[key].lifecycle.evicting}
        is_open = (key for key in found if not key.is_single and not gangs[key].started)
        waiting = (key for key, gang in gangs.items() if self._may_arrive and self._may_start(gang))
        return journal_of(self.identity, self.made, is_open, waiting)

    def _may_start(self, gang: GangEntry) -> bool:
        """Whether it is a gang of ours with members that has not started, as far as is known."""
        there = gang.waits or gang.bound
        if not there or gang.key.is_single or gang.started or not gang.ours:
            return False
        if gang.bound and (self._before is None or self._before.open is None):
            return False  # it has an open attempt already, or has to be left alone
        bound = (
            (e.pod for e in gang.members.values() if e.where is Where.BOUND) if gang.bound else ()
        )
        attempts = {pod.attempt for pod in bound if pod.attempt}
        return not (attempts and self._had_started(gang, attempts, self._before))

    def _timeout_s(self, gang: GangEntry) -> float:
        return self.policy.timeout_s(gang.spec.timeout_s if gang.spec else None)

    def _open(self, gang: GangEntry, deadline_s: float, number: int | None = None) -> Attempt:
        number = self.made + 1 if number is None else number
        self.made = max(self.made, number)
        attempt = Attempt(attempt_id(self.identity, number), deadline_s, gang.min_count)
        _take_minima(attempt, gang)
        gang.lifecycle.attempt = attempt
        heappush(self._due, (deadline_s, number, gang.key, attempt))
        return attempt

    def note_failures(self, gangs: Iterable[GangEntry], now_s: float) -> None:
        """Set the back-off of gangs whose binds failed: 0 s at first, then doubled each time.

        It is never 0 s if the check refused the plan.
        """
        for gang in gangs:
            memory = gang.memory
            if memory.failed:
                memory.failed = False
                if now_s < memory.not_before_s:
                    continue  # it belongs to a failure that was counted already
                doublings = min(memory.failures - 1, 30)
                wait_s = self.policy.backoff_s * 2**doublings if memory.failures else 0.0
                memory.not_before_s = now_s + min(wait_s, self.policy.backoff_s_max)
                memory.failures += 1
            elif gang.lifecycle.attempt is None and gang.started and not gang.waits:
                memory.failures = 0

    def due(self, gangs: Gangs, now_s: float) -> list[GangKey]:
        """Return the gangs whose attempts have timed out and whose binds all have outcomes."""
        self._undone = {
            key for key in self._undone if key in gangs and gangs[key].lifecycle.evicting
        }
        while self._due and self._due[0][0] <= now_s:
            _, _, key, attempt = heappop(self._due)
            if _is_open(key, attempt, gangs):
                self._overdue[key] = attempt
        for key, attempt in list(self._overdue.items()):
            if not _is_open(key, attempt, gangs):
                del self._overdue[key]
        return [key for key, attempt in self._overdue.items() if not attempt.open]

    def to_evict(self, gang: GangEntry) -> list[Eviction]:
        """Return the evictions with which a timed-out attempt ends; none if the gang started."""
        return [] if gang.started else _roll_back(gang, self._overdue[gang.key])

    def end(self, gang: GangEntry, evictions: Iterable[Eviction]) -> None:
        """End a timed-out attempt; ``evictions`` are those sent for a gang below min."""
        if not gang.started:
            gang.give_up(gang.members[one.uid] for one in evictions)
            gang.memory.failed = True
            self._undone.add(gang.key)
        gang.lifecycle.attempt = None
        del self._overdue[gang.key]

    def wake_at_s(self, gangs: Gangs) -> float | None:
        """Return when the next open attempt times out (epoch seconds); None: none is open."""
        while self._due and not _is_open(self._due[0][2], self._due[0][3], gangs):
            heappop(self._due)
        return self._due[0][0] if self._due else None


def _take_minima(attempt: Attempt, gang: GangEntry) -> None:
    """Record the minima in the attempt, in case the gang's object is edited or deleted later."""
    attempt.min_count = gang.min_count
    attempt.min_by_task = gang.spec.min_by_task if gang.spec is not None else ()


def _is_open(key: GangKey, attempt: Attempt, gangs: Gangs) -> bool:
    return key in gangs and gangs[key].lifecycle.attempt is attempt


def _roll_back(gang: GangEntry, attempt: Attempt) -> list[Eviction]:
    """Return evictions of the members that we bound for this gang; others are not ours to evict."""
    minimum = gang.min_count if gang.quorum_is_known else attempt.min_count
    message = (
        f"Gang {gang.key} did not come together in time: "
        f"{gang.stays} of {minimum} members were bound"
    )
    bound = [
        entry
        for entry in gang.members.values()
        if entry.where is Where.BOUND
        and not (entry.evicting or entry.adopted or entry.is_bound_by_others)
    ]
    return [
        Eviction(entry.pod.uid, entry.pod.namespace, entry.pod.name, gang.key, message)
        for entry in bound
    ]
