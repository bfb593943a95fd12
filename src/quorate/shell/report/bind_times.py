"""How long gangs wait and binds take, and how many are under way.

In: plans, and outcomes. Out: metrics.
Called by ``app`` and ``bind_outcomes``. The time of a bind runs from the plan to the API server's
answer: its wait for a connection, its tries and its devices are part of it. The wait of a gang runs
from the creation of the first of the pods that start together to the last of these answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.core.cluster.gangs.gangs import PodEntry
from quorate.core.model import GangKey
from quorate.core.model.plan import GangBinds, Plan
from quorate.shell.process.clock import SteadyClock
from quorate.shell.report.metrics import Metrics


class BindTimes:
    """Remembers when each bind under way was planned, by the pod's uid, and which gangs start."""

    def __init__(self, metrics: Metrics, clock: SteadyClock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._planned_at_s: dict[str, float] = {}
        self._starting: dict[str, GangKey] = {}
        """Gangs that start, by the uid of each pod whose bind has no outcome."""
        self._starts: dict[GangKey, tuple[int, float]] = {}
        """How many of these a gang has, and when its first pod was created (epoch seconds)."""

    def planned(self, plan: Plan, pods: Mapping[str, PodEntry]) -> None:
        """Note the binds that are sent now."""
        for gang in plan.gangs:
            if not (gang.started or gang.key.is_single):
                self._begin(gang, pods)
        uids = (bind.uid for gang in plan.gangs for bind in gang.binds)
        self._planned_at_s.update(dict.fromkeys(uids, self._clock.monotonic_s()))
        self._metrics.binds_under_way.set(len(self._planned_at_s))

    def bound(self, uid: str) -> None:
        """Note that a bind was accepted."""
        planned_at_s = self._planned_at_s.get(uid)
        if planned_at_s is not None:
            self._metrics.bind_s.observe(max(0.0, self._clock.monotonic_s() - planned_at_s))
        key = self._starting.pop(uid, None)
        if key is not None and key in self._starts:
            left, since_s = self._starts[key]
            self._starts[key] = left - 1, since_s
            if left == 1:
                del self._starts[key]
                self._metrics.gang_wait_s.observe(max(0.0, self._clock.wall_s() - since_s))
        self.over(uid)

    def over(self, uid: str) -> None:
        """Note that a bind failed, or that its pod is gone."""
        key = self._starting.pop(uid, None)
        if key is not None:
            self._starts.pop(key, None)
        if self._planned_at_s.pop(uid, None) is not None:
            self._metrics.binds_under_way.set(len(self._planned_at_s))

    def _begin(self, gang: GangBinds, pods: Mapping[str, PodEntry]) -> None:
        created_s = [pods[bind.uid].pod.created_s for bind in gang.binds if bind.uid in pods]
        if created_s:
            self._starting.update((bind.uid, gang.key) for bind in gang.binds)
            self._starts[gang.key] = len(gang.binds), min(created_s)
