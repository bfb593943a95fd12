"""Attempts: from a gang's plan until its binds are settled, or until time is over and it is undone.

In: gangs, their binds, the time. Out: ``GangBinds``, evictions, and the journal for a successor.
Called by ``scheduler``. A gang that a dead leader left bound in part is an attempt too: it is taken
up, then finished or undone.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from quorate.core.journal import Journal, journal_of
from quorate.core.model import GangKey
from quorate.core.plan.plan import Bind, Eviction, GangBinds
from quorate.core.policy import Policy
from quorate.core.state.gangs import Attempt, GangEntry, PodEntry, Where


class Attempts:
    """The attempts that are open. ``identity`` makes their ids unique over restarts."""

    def __init__(self, policy: Policy, identity: str) -> None:
        self._policy = policy
        self._identity = identity
        self._made = 0
        self._due: list[tuple[float, int, GangEntry, Attempt]] = []  # a heap; some have ended
        self._overdue: dict[GangKey, tuple[GangEntry, Attempt]] = {}
        """Attempts whose time is over while a bind of theirs has no outcome yet."""
        self._undone: dict[GangKey, GangEntry] = {}
        """Gangs whose members are being evicted."""

    def begin(
        self, gang: GangEntry, binds: tuple[Bind, ...], first: int, now_s: float
    ) -> GangBinds:
        """Open an attempt, or add to the one that is open; ``first`` as in ``GangBinds``."""
        if gang.attempt is None:
            self._open(gang, now_s + self._timeout_s(gang))
        attempt = gang.attempt
        assert attempt is not None, "it was opened"
        attempt.open.update(bind.uid for bind in binds)
        attempt.seals = {bind.uid for bind in binds[first:]}
        if gang.quorum_is_known:
            attempt.min_count = gang.min_count
        return GangBinds(
            key=gang.key,
            attempt=attempt.id,
            size=gang.bound + gang.assumed,
            deadline_s=max(attempt.deadline_s, now_s + self._policy.backoff_s),
            binds=binds,
            first=first,
            started=gang.started,
        )

    def resume(self, gang: GangEntry, before: Journal | None, now_s: float) -> None:
        """Take up what is bound of a gang below min, so that it is finished or undone.

        Two ways lead here. A leader died in the middle of its binds: the pods bear its attempt, and
        none bears the mark that the last ones to be bound get. Or kubelets refused pods of a gang
        that had just become quorate. A gang without a mark may also have started, and have lost its
        marked members since: ``before``, the journal of the leader before us, tells.
        """
        if gang.attempt is not None or gang.once_quorate:
            return
        if not gang.ours:
            return  # another quorate, with other scheduler names, may be binding it
        if not self._is_partial(gang):
            return
        bound = [entry for entry in gang.members.values() if entry.where is Where.BOUND]
        attempts = {entry.pod.attempt for entry in bound if entry.pod.attempt}
        if gang.reopened:
            gang.reopened = False
            self._open(gang, now_s + self._timeout_s(gang))
        elif any(entry.pod.started for entry in bound):
            gang.once_quorate = True
        elif not attempts:
            return  # another scheduler bound them
        elif self._had_started(gang, attempts, before):
            gang.once_quorate = True
        else:
            self._take_up(gang, bound, now_s)

    @staticmethod
    def _is_partial(gang: GangEntry) -> bool:
        """Whether some are bound, and fewer than min where min is known."""
        stays = gang.bound - gang.evicting
        return stays > 0 and not (gang.quorum_is_known and stays >= gang.min_count)

    def _had_started(self, gang: GangEntry, attempts: set[str], before: Journal | None) -> bool:
        if before is None or any(id.rpartition("-")[0] == self._identity for id in attempts):
            return False
        return before.is_settled(gang.key, attempts)

    def _take_up(self, gang: GangEntry, bound: list[PodEntry], now_s: float) -> None:
        """Open the attempt of a dead leader again."""
        gang.give_up(entry for entry in bound if entry.pod.terminating)
        if gang.evicting:
            self._undone[gang.key] = gang
        if self._is_partial(gang):
            # What terminates already was being undone: so is the rest, at once.
            wait_s = 0.0 if gang.evicting else self._policy.recovery_s
            self._open(gang, now_s + wait_s)
            if gang.attempt is not None and not gang.quorum_is_known:
                # Its object is missing. The attempt's size is no less than min was.
                gang.attempt.min_count = max(entry.pod.attempt_size for entry in bound)

    def journal(self) -> Journal:
        """Return which attempts are open: gangs below min whose pods we bind or evict."""
        found = [(gang, gang.attempt is attempt) for _, _, gang, attempt in self._due]
        found += [(gang, gang.attempt is attempt) for gang, attempt in self._overdue.values()]
        found += [(gang, gang.evicting > 0) for gang in self._undone.values()]
        is_open = {gang.key for gang, still in found if still and not gang.started}
        return journal_of(self._identity, self._made, (k for k in is_open if not k.is_single))

    def _timeout_s(self, gang: GangEntry) -> float:
        return self._policy.timeout_s(gang.spec.timeout_s if gang.spec else None)

    def _open(self, gang: GangEntry, deadline_s: float) -> None:
        self._made += 1
        gang.attempt = Attempt(f"{self._identity}-{self._made}", deadline_s, gang.min_count)
        heappush(self._due, (deadline_s, self._made, gang, gang.attempt))

    def note_failures(self, gangs: Iterable[GangEntry], now_s: float) -> None:
        """Back off from gangs whose binds failed: at once the first time, then ever longer."""
        for gang in gangs:
            if gang.failed:
                gang.failed = False
                if now_s < gang.not_before_s:
                    continue  # the rest of a try whose failure counts already
                doublings = min(gang.failures - 1, 30)
                wait_s = self._policy.backoff_s * 2**doublings if gang.failures else 0.0
                gang.not_before_s = now_s + min(wait_s, self._policy.backoff_s_max)
                gang.failures += 1
            elif gang.attempt is None and gang.started:
                gang.failures = 0

    def end_due(self, now_s: float) -> tuple[list[GangEntry], list[Eviction]]:
        """End the attempts whose time is over; evict what is bound of a gang below min."""
        for gone in [key for key, gang in self._undone.items() if not gang.evicting]:
            del self._undone[gone]
        while self._due and self._due[0][0] <= now_s:
            _, _, gang, attempt = heappop(self._due)
            if gang.attempt is attempt:
                self._overdue[gang.key] = (gang, attempt)
        ended: list[GangEntry] = []
        evictions: list[Eviction] = []
        for key, (gang, attempt) in list(self._overdue.items()):
            if gang.attempt is not attempt:
                del self._overdue[key]
            elif not attempt.open:
                del self._overdue[key]
                gang.attempt = None
                ended.append(gang)
                if not gang.started:
                    gang.failed = True
                    evictions += _roll_back(gang, attempt)
                    self._undone[key] = gang
        return ended, evictions

    def wake_at_s(self) -> float | None:
        """Return when the next attempt's time is over; None when none is open."""
        while self._due and self._due[0][2].attempt is not self._due[0][3]:
            heappop(self._due)
        return self._due[0][0] if self._due else None


def _roll_back(gang: GangEntry, attempt: Attempt) -> list[Eviction]:
    minimum = gang.min_count if gang.quorum_is_known else attempt.min_count
    message = (
        f"Gang {gang.key} did not come together in time: "
        f"{gang.bound} of {minimum} members were bound"
    )
    bound = [
        entry
        for entry in gang.members.values()
        if entry.where is Where.BOUND and not entry.evicting
    ]
    gang.give_up(bound)
    return [
        Eviction(entry.pod.uid, entry.pod.namespace, entry.pod.name, gang.key, message)
        for entry in bound
    ]
