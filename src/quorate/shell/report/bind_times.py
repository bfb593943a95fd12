"""How long binds take, and how many are under way. In: plans, and outcomes. Out: metrics.

Called by ``app`` and ``bind_outcomes``. The time of a bind runs from the plan to the API server's
answer: its wait for a connection, its tries and its devices are part of it.
"""

from __future__ import annotations

from quorate.core.model.plan import Plan
from quorate.shell.process.clock import SteadyClock
from quorate.shell.report.metrics import Metrics


class BindTimes:
    """Remembers when each bind under way was planned, by the pod's uid."""

    def __init__(self, metrics: Metrics, clock: SteadyClock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._planned_at_s: dict[str, float] = {}

    def planned(self, plan: Plan) -> None:
        """Note the binds that are sent now."""
        uids = (bind.uid for gang in plan.gangs for bind in gang.binds)
        self._planned_at_s.update(dict.fromkeys(uids, self._clock.monotonic_s()))
        self._metrics.binds_under_way.set(len(self._planned_at_s))

    def bound(self, uid: str) -> None:
        """Note that a bind was accepted."""
        planned_at_s = self._planned_at_s.get(uid)
        if planned_at_s is not None:
            self._metrics.bind_s.observe(max(0.0, self._clock.monotonic_s() - planned_at_s))
        self.over(uid)

    def over(self, uid: str) -> None:
        """Note that a bind failed, or that its pod is gone."""
        if self._planned_at_s.pop(uid, None) is not None:
            self._metrics.binds_under_way.set(len(self._planned_at_s))
