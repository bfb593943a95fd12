"""Tell of the outcomes of binds, in metrics, Events and the log. Called by ``shell.app``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import structlog

from quorate.core.changes import AnyChange, BindFailed, PodBound, PodChanged, PodGone
from quorate.core.state.gangs import PodEntry
from quorate.shell.report.bind_times import BindTimes
from quorate.shell.report.metrics import Metrics
from quorate.shell.report.reporter import Reporter

log = structlog.get_logger(__name__)


def tell(
    changes: Iterable[AnyChange],
    pods: Mapping[str, PodEntry],
    metrics: Metrics,
    reporter: Reporter,
    times: BindTimes,
) -> None:
    """Tell of outcomes, before the core observes them and forgets what it knew of the pods."""
    for change in changes:
        if isinstance(change, PodChanged):
            continue
        if isinstance(change, PodBound):
            metrics.binds.labels("bound").inc()
            times.bound(change.uid)
            entry = pods.get(change.uid)
            if entry is not None:
                reporter.bound(entry.pod, change.node)
        elif isinstance(change, BindFailed):
            metrics.binds.labels(str(change.failure)).inc()
            times.over(change.uid)
            log.warning(
                "bind failed",
                pod=pods[change.uid].pod.name if change.uid in pods else change.uid,
                node=change.node,
                failure=str(change.failure),
                problem=change.message,
            )
        elif isinstance(change, PodGone):
            reporter.gone(change.uid)
            times.over(change.uid)
