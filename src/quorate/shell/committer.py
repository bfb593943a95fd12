"""Carry out a plan: hand each part to the module that writes it. Called by ``loop``."""

from __future__ import annotations

import structlog

from quorate.core.model.plan import Eviction, Plan
from quorate.core.scheduler import Scheduler
from quorate.shell.commit.device_claims import DeviceClaims
from quorate.shell.commit.evictor import Evictor
from quorate.shell.commit.preemptor import Preemptor
from quorate.shell.commit.volume_claims import VolumeClaims
from quorate.shell.report.metrics import Metrics
from quorate.shell.report.reporter import Reporter

log = structlog.get_logger(__name__)


class Committer:
    """Hands plans on and returns at once. Outcomes come back as changes."""

    def __init__(
        self,
        scheduler: Scheduler,
        metrics: Metrics,
        reporter: Reporter,
        *,
        device_claims: DeviceClaims,
        volume_claims: VolumeClaims,
        preemptor: Preemptor,
        evictor: Evictor,
    ) -> None:
        self._scheduler = scheduler
        self._metrics = metrics
        self._reporter = reporter
        self._device_claims = device_claims
        self._volume_claims = volume_claims
        self._preemptor = preemptor
        self._evictor = evictor

    def carry_out(self, plan: Plan) -> None:
        """Begin to write what was decided; returns at once."""
        self._volume_claims.carry_out(plan)
        for gang in plan.gangs:
            self._metrics.gangs_planned.inc()
            self._device_claims.submit(gang)
            say = log.debug if len(gang.binds) == 1 else log.info  # not a line for each pod
            say("binding", gang=str(gang.key), pods=len(gang.binds), attempt=gang.attempt)
        self._device_claims.take_back(plan.take_backs)
        self._preemptor.submit(plan.preemptions)
        self._evictor.submit(plan.evictions)
        for eviction in plan.evictions:
            self._report(eviction)

    def _report(self, eviction: Eviction) -> None:
        self._metrics.evictions.inc()
        log.warning("rolling back", pod=eviction.name, gang=str(eviction.key))
        entry = self._scheduler.cluster.pods.get(eviction.uid)
        if entry is not None:
            self._reporter.event(
                entry.pod,
                kind="Warning",
                reason="GangRolledBack",
                action="Evicting",
                note=eviction.message,
            )
