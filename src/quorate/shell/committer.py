"""Carry out a plan: each part of it goes to who writes it. Called by ``loop``."""

from __future__ import annotations

import structlog

from quorate.core.model.plan import Eviction, Plan
from quorate.core.scheduler import Scheduler
from quorate.shell.commit.claims import Claims
from quorate.shell.commit.evictor import Evictor
from quorate.shell.commit.preemptor import Preemptor
from quorate.shell.commit.preparer import Preparer
from quorate.shell.report.metrics import Metrics
from quorate.shell.report.reporter import Reporter

log = structlog.get_logger(__name__)


class Committer:
    """Hands plans on. It waits for nothing: outcomes come back as changes."""

    def __init__(
        self,
        scheduler: Scheduler,
        metrics: Metrics,
        reporter: Reporter,
        *,
        claims: Claims,
        preparer: Preparer,
        preemptor: Preemptor,
        evictor: Evictor,
    ) -> None:
        self._scheduler = scheduler
        self._metrics = metrics
        self._reporter = reporter
        self._claims = claims
        self._preparer = preparer
        self._preemptor = preemptor
        self._evictor = evictor

    def carry_out(self, plan: Plan) -> None:
        """Begin to write what was decided; returns at once."""
        self._preparer.carry_out(plan)
        for gang in plan.gangs:
            self._metrics.gangs_planned.inc()
            self._claims.submit(gang)
            say = log.debug if len(gang.binds) == 1 else log.info  # not a line for each pod
            say("binding", gang=str(gang.key), pods=len(gang.binds), attempt=gang.attempt)
        self._claims.take_back(plan.take_backs)
        self._preemptor.submit(plan.preemptions)
        self._evictor.submit(plan.evictions)
        for eviction in plan.evictions:
            self._tell_of(eviction)

    def _tell_of(self, eviction: Eviction) -> None:
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
