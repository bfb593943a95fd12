"""Once a second: gauges copied from what other parts count, and incidents told. Run by ``app``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorate.core.model.quantity import counts_gpus
from quorate.core.scheduler import Scheduler
from quorate.shell.process.clock import SteadyClock
from quorate.shell.process.contained import contained
from quorate.shell.recording.recorder import Recorder
from quorate.shell.report.incidents import Incidents
from quorate.shell.report.metrics import Metrics
from quorate.shell.report.self_check import SelfCheck
from quorate.shell.watch.feed import Feed
from quorate.shell.watch.outage import Outage

_EVERY_S = 1.0


class Gauges:
    """Sets the gauges of watches, recordings, reservations and the core; logs failing watches."""

    def __init__(
        self,
        metrics: Metrics,
        feed: Feed,
        scheduler: Scheduler,
        recorder: Recorder,
        incidents: Incidents,
        self_check: SelfCheck,
        clock: SteadyClock,
        *,
        may_write: Callable[[], bool],
    ) -> None:
        self._metrics = metrics
        self._feed = feed
        self._scheduler = scheduler
        self._recorder = recorder
        self._incidents = incidents
        self._self_check = self_check
        self._clock = clock
        self._may_write = may_write
        self._outage = Outage()

    async def run(self) -> None:
        """Set the gauges once a second until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            with contained(self._scheduler.note_defect, "report", "gauges"):
                self._show()
            with contained(self._scheduler.note_defect, "report", "incidents"):
                self._incidents.report(self._scheduler.incidents())

    def _show(self) -> None:
        self._show_watches()
        self._show_core()
        self._metrics.recorder_bytes.set(self._recorder.size_bytes)
        since_s: list[float] = []
        gpus_free: dict[str, int] = {}
        if self._may_write():
            gpus_free = self._gpus_free()
            self._self_check.look()
            since_s = [
                reservation.since_s
                for reservation in self._scheduler.cluster.reservations
                if reservation.since_s
            ]
        self._metrics.show_holds(since_s, self._clock.now_s())
        self._metrics.show_waiting(gpus_free, self._clock.now_s())

    def _gpus_free(self) -> dict[str, int]:
        """Return how many GPUs no pod requests on nodes without a cordon, by resource."""
        nodes = self._scheduler.cluster.nodes
        free = nodes.free[nodes.alive & ~nodes.unschedulable]
        columns = {name: at for name, at in nodes.resources.columns.items() if counts_gpus(name)}
        return {name: int(free[:, at].clip(min=0).sum()) for name, at in columns.items()}

    def _show_watches(self) -> None:
        feed, metrics = self._feed, self._metrics
        troubles: dict[str, str] = {}
        for path, reflector in feed.reflectors.items():
            metrics.relists.labels(path).set(reflector.relists)
            metrics.reconnects.labels(path).set(reflector.reconnects)
            age_s = self._clock.monotonic_s() - reflector.heard_at_s
            metrics.watch_age_s.labels(path).set(age_s)
            metrics.unreadable_events.labels(path).set(reflector.garbled)
            metrics.unavailable_kinds.labels(path).set(
                path in feed.unavailable and not reflector.is_absent
            )
            if reflector.last_error is not None and not reflector.is_absent:
                troubles[path] = str(reflector.last_error)
        self._outage.look(troubles, len(feed.reflectors), self._clock.monotonic_s())
        kinds = [kind for kind, _ in feed.quarantined]
        for kind in {"Pod", "Node", "PodGroup", *kinds}:
            metrics.quarantined.labels(kind).set(kinds.count(kind))

    def _show_core(self) -> None:
        cluster, size = self._scheduler.cluster, self._metrics.core_size
        size.labels("nodes").set(len(cluster.nodes.rows))
        size.labels("pods").set(len(cluster.pods))
        size.labels("gangs").set(len(cluster.gangs))
        size.labels("pod_classes").set(len(cluster.classes.by_id))
        size.labels("resource_columns").set(len(cluster.resources.names))
        size.labels("label_columns").set(len(cluster.nodes.labels))
        size.labels("label_sets").set(len(cluster.neighbours.label_sets))
        size.labels("selectors").set(cluster.neighbours.selectors_in_use)
