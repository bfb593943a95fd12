"""Attempts: from a gang's plan until its binds are settled, or until time is over and it is undone.

In: gangs, their binds, the time. Out: ``GangBinds`` and evictions. Called by ``scheduler``. A gang
that a dead leader left bound in part is an attempt too: it is taken up, then finished or undone.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from quorate.core.model import GangKey
from quorate.core.plan.plan import Bind, Eviction, GangBinds
from quorate.core.policy import Policy
from quorate.core.state.gangs import Attempt, GangEntry, Where


class Attempts:
    """The attempts that are open. ``identity`` makes their ids unique over restarts."""

    def __init__(self, policy: Policy, identity: str) -> None:
        self._policy = policy
        self._identity = identity
        self._made = 0
        self._due: list[tuple[float, int, GangEntry, Attempt]] = []  # a heap; some have ended
        self._overdue: dict[GangKey, tuple[GangEntry, Attempt]] = {}
        """Attempts whose time is over while a bind of theirs has no outcome yet."""

    def begin(
        self, gang: GangEntry, binds: tuple[Bind, ...], first: int, now_s: float
    ) -> GangBinds:
        """Open an attempt, or add to the one that is open; ``first`` as in ``GangBinds``."""
        if gang.attempt is None:
            self._open(gang, now_s + self._timeout_s(gang))
        attempt = gang.attempt
        assert attempt is not None, "it was opened"
        attempt.open.update(bind.uid for bind in binds)
        return GangBinds(
            key=gang.key,
            attempt=attempt.id,
            size=gang.bound + gang.assumed,
            deadline_s=max(attempt.deadline_s, now_s + self._policy.backoff_s),
            binds=binds,
            first=first,
            started=gang.started,
        )

    def resume(self, gang: GangEntry, now_s: float) -> None:
        """Take up what is bound of a gang below min, so that it is finished or undone.

        Two ways lead here. A leader died in the middle of its binds: the pods bear its attempt, and
        none bears the mark that the last ones to be bound get. Or kubelets refused pods of a gang
        that had just become quorate.
        """
        if gang.attempt is not None or gang.once_quorate or not gang.quorum_is_known:
            return
        if not gang.ours:
            return  # another quorate, with other scheduler names, may be binding it
        if not 0 < gang.bound - gang.evicting < gang.min_count:
            return
        bound = [entry for entry in gang.members.values() if entry.where is Where.BOUND]
        if gang.reopened:
            gang.reopened = False
            self._open(gang, now_s + self._timeout_s(gang))
        elif any(entry.pod.started for entry in bound):
            gang.once_quorate = True
        elif any(entry.pod.attempt for entry in bound):  # else another scheduler bound them
            gang.give_up(entry for entry in bound if entry.pod.terminating)
            if 0 < gang.bound - gang.evicting < gang.min_count:
                # What terminates already was being undone: so is the rest, at once.
                wait_s = 0.0 if gang.evicting else self._policy.recovery_s
                self._open(gang, now_s + wait_s)

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
                gang.once_quorate |= _came_together(gang, attempt)
                if not gang.started:
                    gang.failed = True
                    evictions += _roll_back(gang)
        return ended, evictions

    def wake_at_s(self) -> float | None:
        """Return when the next attempt's time is over; None when none is open."""
        while self._due and self._due[0][2].attempt is not self._due[0][3]:
            heappop(self._due)
        return self._due[0][0] if self._due else None


def _came_together(gang: GangEntry, attempt: Attempt) -> bool:
    """Tell whether enough are bound of a gang whose object went while it was being bound."""
    return not gang.quorum_is_known and gang.bound - gang.evicting >= attempt.min_count


def _roll_back(gang: GangEntry) -> list[Eviction]:
    message = (
        f"Gang {gang.key} did not come together in time: "
        f"{gang.bound} of {gang.min_count} members were bound"
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
