"""The running scheduler checks its own invariants, a little at a time.

In: the scheduler, changes before they are observed, the time. Out: counters, and one log line for
each violation. ``gauges`` calls ``look`` once a second while this replica leads. One look takes
about a millisecond, however large the cluster is; many looks go round all nodes, gangs and pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import structlog

from quorate.core.invariants import Invariant, Violation, check_gang, check_node, check_pod
from quorate.core.model import GangKey
from quorate.core.model.changes import AnyChange, NodeChanged, NodeGone, PodChanged
from quorate.core.scheduler import Scheduler
from quorate.shell.process.clock import Clock
from quorate.shell.report.metrics import Metrics

log = structlog.get_logger(__name__)

_LOOK_S_MAX = 0.001
_MEMBERS_RECOUNTED_MAX = 500
"""Larger gangs are not recounted: that would take longer than one look may."""
_STANDING_MAX = 1000
_OVERCOMMIT = (
    Invariant.NODE_WITHIN_ALLOCATABLE,
    Invariant.NODE_SHARED_WITHIN_ALLOCATABLE,
)

_Place = tuple[str, str]


class SelfCheck:
    """Checks the cluster in small steps, round after round."""

    def __init__(self, scheduler: Scheduler, metrics: Metrics, clock: Clock) -> None:
        self._scheduler = scheduler
        self._metrics = metrics
        self._clock = clock
        self._round: Iterator[tuple[_Place, Callable[[], Iterable[Violation]]]] | None = None
        self._standing: dict[_Place, dict[tuple[Invariant, str], float | None]] = {}
        """Violations by object: since when (monotonic seconds), None once reported."""
        self._unchecked: set[_Place] = set()
        """Objects whose check failed by a defect: each is reported once."""
        self._excused: set[str] = set()
        """Nodes that shrank, or on which a pod grew, after pods were bound to them."""

    def observe(self, changes: Sequence[AnyChange]) -> None:
        """Note changes that overcommit a node without a bind, before the core observes them."""
        cluster = self._scheduler.cluster
        for change in changes:
            if isinstance(change, PodChanged):
                pod = change.pod
                entry = cluster.pods.get(pod.uid) if pod.node else None
                if entry is not None and entry.node and entry.pod.spec != pod.spec:
                    self._excused.add(entry.node)
            elif isinstance(change, NodeChanged):
                row = cluster.nodes.rows.get(change.node.name)
                before = cluster.nodes.nodes[row] if row is not None else None
                if before is not None and before.allocatable != change.node.allocatable:
                    self._excused.add(change.node.name)
            elif isinstance(change, NodeGone):
                self._excused.discard(change.name)

    def look(self) -> None:
        """Check the next few objects. Call it between two calls of the core."""
        start_s = self._clock.monotonic_s()
        if self._round is None:
            self._round = self._objects()
        for place, check in self._round:
            self._metrics.invariant_checks.inc()
            found = self._found(place, check)
            if found or place in self._standing:
                self._note(place, found)
            if self._clock.monotonic_s() - start_s >= _LOOK_S_MAX:
                return
        self._round = None

    def _found(self, place: _Place, check: Callable[[], Iterable[Violation]]) -> list[Violation]:
        try:
            return list(check())
        except Exception as error:
            if place not in self._unchecked and len(self._unchecked) < _STANDING_MAX:
                self._unchecked.add(place)
                self._scheduler.note_defect("verify", " ".join(place), error)
            return []

    def _objects(self) -> Iterator[tuple[_Place, Callable[[], Iterable[Violation]]]]:
        """Yield a check for each object. Objects that come later are checked in the next round."""
        cluster = self._scheduler.cluster
        for name in list(cluster.nodes.rows):
            yield ("node", name), partial(self._check_node, name)
        for key in list(cluster.gangs):
            yield ("gang", f"{key.dialect} {key}"), partial(self._check_gang, key)
        for uid in list(cluster.pods):
            yield ("pod", uid), partial(self._check_pod, uid)

    def _check_gang(self, key: GangKey) -> Iterable[Violation]:
        gang = self._scheduler.cluster.gangs.get(key)
        if gang is None:
            return ()
        return check_gang(self._scheduler, gang, self._clock.now_s(), _MEMBERS_RECOUNTED_MAX)

    def _check_pod(self, uid: str) -> Iterable[Violation]:
        entry = self._scheduler.cluster.pods.get(uid)
        return check_pod(self._scheduler.cluster, entry) if entry is not None else ()

    def _check_node(self, name: str) -> list[Violation]:
        """Check a node. Its excuse counts for as long as the node is overcommitted."""
        if name not in self._scheduler.cluster.nodes.rows:
            return []
        found = list(check_node(self._scheduler.cluster, name))
        if name in self._excused:
            rest = [violation for violation in found if violation.invariant not in _OVERCOMMIT]
            if len(rest) == len(found):
                self._excused.discard(name)
            return rest
        return found

    def _note(self, place: _Place, found: list[Violation]) -> None:
        """Report violations that last for longer than tolerated; forget those that are over."""
        now_s = self._clock.monotonic_s()
        before = self._standing.pop(place, {})
        standing = {}
        for violation in found:
            name = violation.invariant, violation.object
            since_s = before.get(name, now_s)
            if since_s is not None and now_s - since_s >= violation.tolerated_s:
                self._report(violation)
                since_s = None
            standing[name] = since_s
        if standing and len(self._standing) < _STANDING_MAX:
            self._standing[place] = standing

    def _report(self, violation: Violation) -> None:
        self._metrics.invariant_violations.labels(str(violation.invariant)).inc()
        log.error(
            "an invariant does not hold",
            invariant=str(violation.invariant),
            object=violation.object,
            problem=violation.text,
        )
