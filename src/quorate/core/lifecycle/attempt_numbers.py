"""Numbers the attempts that a cycle opens, and makes their plans. Called by ``turn.cycle``."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.model.plan import Bind, GangBinds, attempt_id
from quorate.core.model.policy import Policy


@dataclass(slots=True)
class AttemptNumbers:
    """Numbers for the attempts that a cycle opens; ``made`` is the number of the newest one."""

    policy: Policy
    identity: str
    made: int

    def plan(self, gang: GangEntry, binds: tuple[Bind, ...], now_s: float) -> GangBinds:
        """Return the binds as a plan of the gang's open attempt, or of a new one.

        ``first`` is one bind less than makes the gang quorate: those go first; see ``GangBinds``.
        """
        attempt = gang.attempt
        if attempt is None:
            self.made += 1
            name = attempt_id(self.identity, self.made)
            asked_s = gang.spec.timeout_s if gang.spec else None
            deadline_s = now_s + self.policy.timeout_s(asked_s)
        else:
            name, deadline_s = attempt.id, attempt.deadline_s
        return GangBinds(
            key=gang.key,
            attempt=name,
            size=gang.bound + gang.assumed + len(binds),
            deadline_s=max(deadline_s, now_s + self.policy.backoff_s),
            binds=binds,
            first=max(0, gang.need - 1),
            started=gang.started,
        )
