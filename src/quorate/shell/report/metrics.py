"""The numbers behind /metrics. In: what the loop did. Out: a Prometheus registry of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)

from quorate.core.invariants import Invariant
from quorate.core.model.reasons import GangState, Reason
from quorate.core.telling.counted_gangs import CountedGangs
from quorate.core.turn.defects import STAGES
from quorate.shell.kube.errors import STATUSES
from quorate.shell.lease.status import LeaseError

_WAITS = [one for one in Reason if one not in (Reason.NONE, Reason.STARTING)]
"""Reasons for which a gang waits."""


class Metrics:
    """All metrics of a scheduler. Names carry their units, as Prometheus' conventions ask."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._counted = CountedGangs()
        self._gpus_listed: set[str] = set()
        self.defects = self._counter(
            "contained_defects",
            "Defects of quorate's own that cost one gang or object its turn, by stage.",
            ["stage"],
        )
        self.reports_dropped = self._gauge("reports_dropped", "Events dropped: queue full.", [])
        self.reports_queued = self._gauge("reports_queued", "Writes that wait.", [])
        self.decide_s = Histogram(
            "quorate_decide_seconds",
            "Duration of one decision.",
            registry=self.registry,
            buckets=(0.0001, 0.0005, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0),
        )
        self.cycles = self._counter("cycles", "Decisions made.", [])
        self.recordings_failed = self._counter("recordings_failed", "Recordings that failed.", [])
        self.recorder_bytes = self._gauge("recorder_bytes", "Size of the recording in memory.", [])
        self._make_gang_metrics()
        self._make_bind_metrics()
        self._make_watch_metrics()
        self._make_process_metrics()
        self._begin_series()

    def _make_gang_metrics(self) -> None:
        self.gangs = self._gauge("gangs", "Gangs by state.", ["state"])
        self.waiting = self._gauge(
            "waiting_gangs", "Gangs that wait, by reason; single pods included.", ["reason"]
        )
        self.misconfigured = self._gauge(
            "misconfigured_gangs",
            "Gangs that cannot start until an object is changed, by reason.",
            ["reason"],
        )
        self.gang_wait_s = Histogram(
            "quorate_gang_wait_seconds",
            "Time from the creation of a gang's first pod to the last bind of its start.",
            registry=self.registry,
            buckets=(1, 2, 5, 15, 60, 300, 900, 3600, 14400, 43200, 86400, 259200),
        )
        self.oldest_waiting_s = self._gauge(
            "oldest_waiting_gang_seconds",
            "Age of the oldest pod that waits, or of a PodGroup without pods, by reason; "
            "single pods included; 0: none.",
            ["reason"],
        )
        self.gpus_free = self._gauge(
            "gpus_free", "GPUs that no pod requests, on nodes without a cordon.", ["resource"]
        )
        self.gpus_waiting = self._gauge(
            "gpus_waiting", "GPUs that waiting pods request.", ["resource"]
        )
        self.quarantined = self._gauge(
            "quarantined_objects",
            "Objects that cannot be read and are left out, by kind.",
            ["kind"],
        )
        self.held_slots = self._gauge(
            "held_slots", "Reservations for the replacements of lost members of gangs.", []
        )
        self.oldest_held_slot_s = self._gauge(
            "oldest_held_slot_seconds", "Age of the oldest of these reservations; 0: none.", []
        )

    def _make_bind_metrics(self) -> None:
        self.binds = self._counter("binds", "Outcomes of binds.", ["outcome"])
        self.evictions = self._counter("evictions", "Pods evicted to roll a gang back.", [])
        self.preempted = self._counter("preempted", "Pods deleted for others of more priority.", [])
        self.gangs_planned = self._counter("gangs_planned", "Gangs for which binds were sent.", [])
        self.unverified = self._counter(
            "unverified_plans", "Plans that failed verification and were not sent.", []
        )
        self.bind_s = Histogram(
            "quorate_bind_seconds",
            "Time of an accepted bind, from the plan to the API server's answer.",
            registry=self.registry,
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
        )
        self.binds_under_way = self._gauge(
            "binds_under_way", "Binds that were planned and have no outcome yet.", []
        )

    def _make_watch_metrics(self) -> None:
        self.relists = self._gauge(
            "watch_relists", "Full lists after a watch expired.", ["resource"]
        )
        self.reconnects = self._gauge(
            "watch_reconnects", "Watches resumed after they were cut.", ["resource"]
        )
        self.unreadable_events = self._gauge(
            "watch_unreadable_events", "Events of watches that could not be read.", ["resource"]
        )
        self.unavailable_kinds = self._gauge(
            "watch_lost", "1: unavailable, and all else goes on without it.", ["resource"]
        )
        self.watch_age_s = self._gauge(
            "watch_age_seconds",
            "Time since the API server last told of this kind; bookmarks come once a minute.",
            ["resource"],
        )
        self.api_errors = self._counter(
            "api_errors", "Requests that failed, by status, or class of it.", ["status"]
        )

    def _make_process_metrics(self) -> None:
        """Make the metrics of the lease, of the core's loop and of its own checks."""
        self.invariant_violations = self._counter(
            "invariant_violations",
            "Defects that the self-check found, by invariant.",
            ["invariant"],
        )
        self.invariant_checks = self._counter(
            "invariant_checks", "Nodes, gangs and pods that the self-check looked at.", []
        )
        self.is_leader = self._gauge("leader", "1 while this replica holds the lease.", [])
        self.lease_errors = self._counter(
            "lease_errors", "Tries to take or renew the lease that failed, by kind.", ["kind"]
        )
        self.loop_lag_s = Histogram(
            "quorate_loop_lag_seconds",
            "How late a timer of the core's loop was, asked ten times a second.",
            registry=self.registry,
            buckets=(0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
        )
        self.loop_lag_max_s = self._gauge(
            "loop_lag_max_seconds", "The largest lag of the core's loop in the last second.", []
        )
        self.core_size = self._gauge(
            "core_size", "How much the core keeps, by what: entries of a table, or columns.", ["of"]
        )

    def _begin_series(self) -> None:
        """Create the series of all known label values, so that each is there from the start."""
        for stage in STAGES:
            self.defects.labels(stage)
        for invariant in Invariant:
            self.invariant_violations.labels(str(invariant))
        for kind in LeaseError:
            self.lease_errors.labels(str(kind))
        for status in STATUSES:
            self.api_errors.labels(status)
        self.show_gangs(self._counted)
        self.show_waiting({}, 0.0)

    def show_gangs(self, counted: CountedGangs) -> None:
        """Set the gauges that count gangs."""
        self._counted = counted
        for state in GangState:
            self.gangs.labels(str(state)).set(counted.states[state])
        for reason in _WAITS:
            self.waiting.labels(str(reason)).set(counted.reasons[reason])
            if reason.is_misconfiguration:
                self.misconfigured.labels(str(reason)).set(counted.reasons[reason])

    def show_waiting(self, gpus_free: Mapping[str, int], now_s: float) -> None:
        """Set the gauges of how long gangs wait, and for how many GPUs; ``now_s`` is of the epoch.

        ``gpus_free`` is by resource, of those that nodes list. What else pods ask for is ``other``:
        tenants write its names.
        """
        for reason in _WAITS:
            oldest_s = self._counted.oldest_s(reason)
            age_s = 0.0 if oldest_s is None else max(0.0, now_s - oldest_s)
            self.oldest_waiting_s.labels(str(reason)).set(age_s)
        waiting = self._counted.gpus
        self._gpus_listed |= gpus_free.keys()
        for name in self._gpus_listed:
            self.gpus_free.labels(name).set(gpus_free.get(name, 0))
            self.gpus_waiting.labels(name).set(waiting[name])
        other = sum(n for name, n in waiting.items() if name not in self._gpus_listed)
        self.gpus_waiting.labels("other").set(other)

    def show_holds(self, since_s: Sequence[float], now_s: float) -> None:
        """Set the gauges of reservations, by the times at which each began."""
        self.held_slots.set(len(since_s))
        self.oldest_held_slot_s.set(max(0.0, now_s - min(since_s, default=now_s)))

    def _gauge(self, name: str, text: str, labels: list[str]) -> Gauge:
        return Gauge(f"quorate_{name}", text, labels, registry=self.registry)

    def _counter(self, name: str, text: str, labels: list[str]) -> Counter:
        return Counter(f"quorate_{name}", text, labels, registry=self.registry)
