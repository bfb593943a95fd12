"""Report the outcomes of binds: metrics, Events, log. Called by ``loop``."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from quorate.core.model.changes import AnyChange, BindFailed, PodBound, PodChanged, PodGone
from quorate.core.scheduler import Scheduler
from quorate.shell.process.clock import SteadyClock
from quorate.shell.report.bind_times import BindTimes
from quorate.shell.report.metrics import Metrics
from quorate.shell.report.reporter import Reporter

log = structlog.get_logger(__name__)

_SAME_FOR_S = 10.0
_GANGS_MAX = 1000


class BindOutcomes:
    """Observes outcomes before the core does, which then forgets what it knew of the pods.

    If a thousand members of a gang fail for one cause, that is one log line, and a metric.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        metrics: Metrics,
        reporter: Reporter,
        times: BindTimes,
        clock: SteadyClock,
    ) -> None:
        self._scheduler = scheduler
        self._metrics = metrics
        self._reporter = reporter
        self._times = times
        self._clock = clock
        self._logged_at_s: dict[tuple[str, str], float] = {}
        """When such a failure of a gang was last logged (monotonic), oldest first."""

    def observe(self, changes: Sequence[AnyChange]) -> None:
        """Report the outcomes among these changes."""
        pods = self._scheduler.cluster.pods
        for change in changes:
            if isinstance(change, PodChanged):
                continue
            if isinstance(change, PodBound):
                self._metrics.binds.labels("bound").inc()
                self._times.bound(change.uid)
                entry = pods.get(change.uid)
                if entry is not None:
                    self._reporter.bound(entry.pod, change.node)
            elif isinstance(change, BindFailed):
                self._metrics.binds.labels(str(change.failure)).inc()
                self._times.over(change.uid)
                self._log(change)
            elif isinstance(change, PodGone):
                self._reporter.gone(change.uid)
                self._times.over(change.uid)

    def _log(self, failed: BindFailed) -> None:
        entry = self._scheduler.cluster.pods.get(failed.uid)
        name = entry.pod.name if entry is not None else failed.uid
        gang = str(entry.gang.key) if entry is not None and entry.gang is not None else ""
        what, now_s = (gang or failed.uid, str(failed.failure)), self._clock.monotonic_s()
        if now_s - self._logged_at_s.get(what, float("-inf")) < _SAME_FOR_S:
            return
        self._logged_at_s.pop(what, None)
        self._logged_at_s[what] = now_s
        if len(self._logged_at_s) > _GANGS_MAX:
            del self._logged_at_s[next(iter(self._logged_at_s))]
        log.warning(
            "bind failed",
            pod=name,
            gang=gang,
            node=failed.node,
            failure=str(failed.failure),
            problem=failed.message,
        )
