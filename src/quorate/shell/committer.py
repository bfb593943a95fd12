"""Carry out a plan: hand each part to the module that writes it. Called by ``loop``."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from quorate.core.model.changes import BindFailed, BindFailure
from quorate.core.model.plan import Eviction, GangBinds, Plan
from quorate.core.scheduler import Scheduler
from quorate.shell.commit.device_claims import DeviceClaims
from quorate.shell.commit.evictor import Evictor
from quorate.shell.commit.preemptor import Preemptor
from quorate.shell.commit.volume_claims import VolumeClaims
from quorate.shell.process.contained import contained, words_of
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
        on_change: Callable[[BindFailed], None],
    ) -> None:
        self._scheduler = scheduler
        self._metrics = metrics
        self._reporter = reporter
        self._device_claims = device_claims
        self._volume_claims = volume_claims
        self._preemptor = preemptor
        self._evictor = evictor
        self._on_change = on_change

    def carry_out(self, plan: Plan) -> None:
        """Begin to write what was decided; returns at once."""
        note = self._scheduler.note_defect
        with contained(note, "commit", "volume claims"):
            self._volume_claims.carry_out(plan)
        for gang in plan.gangs:
            self._bind(gang)
        with contained(note, "commit", "device claims"):
            self._device_claims.take_back(plan.take_backs)
        with contained(note, "commit", "preemptions"):
            self._preemptor.submit(plan.preemptions)
        with contained(note, "commit", "evictions"):
            self._evictor.submit(plan.evictions)
            for eviction in plan.evictions:
                self._report(eviction)

    def _bind(self, gang: GangBinds) -> None:
        """Begin to bind a gang. Of binds that meet a defect of ours the core has an outcome."""
        try:
            self._metrics.gangs_planned.inc()
            self._device_claims.submit(gang)
            say = log.debug if len(gang.binds) == 1 else log.info  # not a line for each pod
            say("binding", gang=str(gang.key), pods=len(gang.binds), attempt=gang.attempt)
        except Exception as error:
            self._scheduler.note_defect("commit", f"gang {gang.key}", error)
            for bind in gang.binds:
                failure = BindFailure.REFUSED
                self._on_change(BindFailed(bind.uid, bind.node, failure, words_of(error)))

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
