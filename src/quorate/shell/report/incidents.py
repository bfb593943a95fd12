"""Report defects of ours that the core contained: in the log, a metric and a recording.

In: incidents of the core. Out: one log line for each, a counter, and the recording written to its
file, at most once a minute. Called by ``loop`` after each decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import structlog

from quorate.core.turn.defects import Incident
from quorate.shell.process.clock import Clock
from quorate.shell.report.metrics import Metrics

log = structlog.get_logger(__name__)

_RECORDING_EVERY_S = 60.0


class Incidents:
    """Reports each incident once. ``record`` writes the recording to its file."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._recorded_at_s = float("-inf")
        self.record: Callable[[], None] | None = None

    def report(self, incidents: Iterable[Incident]) -> None:
        """Log and count these, and write the recording unless that was done within a minute."""
        reported = False
        for one in incidents:
            reported = True
            self._metrics.defects.labels(one.stage).inc(one.times)
            log.error(
                "met a defect of our own and set aside what met it",
                id=one.id,
                times=one.times,
                stage=one.stage,
                about=one.about,
                error=one.error,
                trace=one.trace,
            )
        now_s = self._clock.monotonic_s()
        if (
            reported
            and self.record is not None
            and now_s - self._recorded_at_s >= _RECORDING_EVERY_S
        ):
            self._recorded_at_s = now_s
            self.record()
