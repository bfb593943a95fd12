"""Report on gangs: conditions of pods, Events, and the status of gangs' objects.

In: touched gangs. Out: queued writes. Run by ``app``. The core decides what is reported when
(``core.telling``); here are the bodies, the requests, and the limits on time spent explaining.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast
from urllib.parse import quote

from quorate.core.cluster.gangs.gangs import GangEntry, key_of
from quorate.core.model import GangKey, Pod, PodSpec
from quorate.core.model.plan import Preemption, Victim
from quorate.core.model.policy import PATIENCE_S
from quorate.core.model.reasons import Explanation, Reason
from quorate.core.queue.gate import asked_owners
from quorate.core.scheduler import Scheduler
from quorate.core.telling.sayings import SayCondition, SayEvent, Saying, SayStatus
from quorate.core.telling.telling import Now, Telling
from quorate.core.words.explain import Explainer
from quorate.core.words.object_words import class_words
from quorate.core.words.pod_words import bound_by_another, own_name
from quorate.dialects import StatusPatch, by_name
from quorate.dialects.common.fields import format_micro_time
from quorate.shell.kube.errors import NotFound
from quorate.shell.kube.paths import pod_path, resource_path
from quorate.shell.kube.writer import Writer
from quorate.shell.process.clock import SteadyClock
from quorate.shell.process.contained import contained
from quorate.shell.report import bodies
from quorate.shell.report.metrics import Metrics
from quorate.shell.report.owners import OwnerLookup, Visits
from quorate.shell.report.reservations import ReservationEvents, object_of
from quorate.shell.report.starts import STARTED, Starts
from quorate.shell.report.write_queue import WriteQueue

_TICK_S = 0.1
_VISIT_S = 1.0
"""Between two visits to gangs that lack members, whichever: each costs a request or two."""
_GANGS_PER_TICK = 500
_REPORT_S_MAX = 0.02
"""Seconds of explaining gangs before other tasks run."""
_WARNINGS_MAX = 20
"""How many different warnings a gang gets: labels are anybody's to write."""

_EVENTS_PATH = "/apis/events.k8s.io/v1/namespaces/{}/events"


class Reporter:
    """Writes reports for one scheduler core."""

    def __init__(
        self,
        client: Writer,
        scheduler: Scheduler,
        objects: dict[GangKey, bytes],
        *,
        lookup: OwnerLookup,
        idle: Iterable[asyncio.Event],
        metrics: Metrics,
        instance: str,
        clock: SteadyClock,
    ) -> None:
        self._client = client
        self._scheduler = scheduler
        self._objects = objects
        self._lookup = lookup
        self._visits = Visits()
        self._metrics = metrics
        self._instance = instance
        self._clock = clock
        self.writes = WriteQueue(*idle, note=scheduler.note_defect)
        self._telling = Telling()
        self._touch_news = asyncio.Event()
        self._warned: dict[GangKey, set[str]] = {}
        self._reservations = ReservationEvents()
        self._starts = Starts()

    def touch(self, keys: Iterable[GangKey]) -> None:
        """Report these gangs once they have not changed for a moment."""
        now_s = self._clock.monotonic_s()
        cluster, gangs = self._scheduler.cluster, self._scheduler.cluster.gangs
        for key in keys:
            for owner in asked_owners(gangs.get(key), cluster):
                self._lookup.ask(key.namespace, owner, why=False)  # at once: its pods wait
            if key.is_single and key in gangs and not gangs[key].has_undecided:
                # A single pod with a node needs no report, and there are many.
                self._telling.settle(key)
                self._warn_of_others(gangs[key])
                continue
            self._telling.quiet_gangs.touch(key, now_s)
        self._touch_news.set()

    def bound(self, pod: Pod, node: str) -> None:
        """Report that a pod is bound to ``node``."""
        self._telling.has_node(pod)
        self._starts.bound(key_of(pod))
        self.writes.forget(("condition", pod.uid))
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        self.event(pod, kind="Normal", reason="Scheduled", action="Binding", note=note)
        if pod.warning:
            self._warn(key_of(pod), pod, pod.warning)

    def preempted(self, preemption: Preemption, victim: Victim) -> None:
        """Report that a pod is being deleted so that another one can be placed."""
        self._metrics.preempted.inc()
        note = f"Preempted by pod {preemption.uid} on node {preemption.node}"
        if victim.gang_hit:
            note = f"{note}; {victim.gang_hit}"
        by = preemption.scheduler
        pod = Pod(victim.uid, victim.namespace, victim.name, scheduler=by, spec=PodSpec())
        make = self._event(pod, kind="Normal", reason="Preempted", action="Preempting", note=note)
        send = partial(self._send_event, pod, lambda: bodies.caused_by(make(), preemption))
        self.writes.put(("Preempted", victim.uid), send, urgent=False)

    def gone(self, uid: str) -> None:
        """Forget a deleted pod."""
        self._telling.gone(uid)
        self.writes.forget(("condition", uid))

    def event(self, pod: Pod, *, kind: str, reason: str, action: str, note: str) -> None:
        """Queue an Event about a pod. Its body is made when it is sent, after the binds."""
        make = self._event(pod, kind=kind, reason=reason, action=action, note=note)
        self.writes.put((reason, pod.uid), partial(self._send_event, pod, make), urgent=False)

    def _event(self, pod: Pod, **words: str) -> Callable[[], dict[str, object]]:
        """Return a function that makes the Event later, with the time of now."""
        return partial(
            bodies.event,
            pod,
            instance=self._instance,
            now_s=self._clock.wall_s(),
            **words,
        )

    async def _send_event(self, pod: Pod, make: Callable[[], dict[str, object]]) -> None:
        await self._client.post(_EVENTS_PATH.format(pod.namespace), make())

    async def run(self) -> None:
        """Report until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.writes.run())
            group.create_task(self._run())
            group.create_task(self._visit())

    async def _visit(self) -> None:
        """Look at gangs that lack members again: no news tells that an owner was changed."""
        while True:
            await asyncio.sleep(_VISIT_S)
            with contained(self._scheduler.note_defect, "report", "gangs that lack members"):
                key = self._visits.due(self._clock.monotonic_s())
                if key is not None:
                    self.touch([key])

    async def _run(self) -> None:
        while True:
            if not (self._telling.quiet_gangs or self._telling):
                self._touch_news.clear()
                pace_s = PATIENCE_S if self._telling.quiet_gangs.has_told else None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pace_s):
                        await self._touch_news.wait()
            await asyncio.sleep(_TICK_S)
            with contained(self._scheduler.note_defect, "report", "all gangs"):
                self._tick()

    def _tick(self) -> None:
        gangs, now_s = self._scheduler.cluster.gangs, self._clock.monotonic_s()
        quiet = self._telling.quiet_gangs
        quiet.renew(gangs, self._scheduler.cluster.nodes.version, now_s)
        due = quiet.due(gangs, now_s, _GANGS_PER_TICK)
        if due:
            self._report(due)
        self._send(now_s)

    def _report(self, due: list[GangKey]) -> None:
        """Report as many of these gangs as there is time for; the others come next."""
        now_s, began_s = self._clock.now_s(), self._clock.monotonic_s()
        explainer = self._scheduler.explainer(now_s)
        for key in due:
            try:
                self._report_gang(explainer, key)
            except Exception as error:  # this gang alone goes without a report for some time
                self._telling.quiet_gangs.drop(key)
                self._scheduler.note_unexplained(key, error, now_s)
            if self._clock.monotonic_s() - began_s > _REPORT_S_MAX:
                break
        self._show_gangs()

    def _report_gang(self, explainer: Explainer, key: GangKey) -> None:
        gang = self._scheduler.cluster.gangs.get(key)
        if gang is None:
            self._forget(key)
            return
        if self._waits_for_owner(explainer, key):
            return
        now = Now(self._clock.monotonic_s(), self._clock.wall_s())
        self._telling.quiet_gangs.note_explained(key, now.s)
        lost_its_pods = not gang.members and key in self._telling
        # An object without pods is ours if its clients wait for its first status.
        if not (gang.ours or lost_its_pods or explainer.awaited_under(gang)):
            if not self._telling.tell_of_another(gang, self._scheduler.cluster, explainer, now):
                self._forget(key)
                self._telling.tell_first(gang, explainer)
            return
        explanation = explainer.explain(key)
        if explanation is not None:
            self._telling.tell(gang, explainer, explanation, now)
            self._warn_of(gang, explanation.missing_class)
            self._report_reservation(gang, explanation)
            self._report_start(gang)
        if not gang.members and not self._telling.is_before_pods(key):
            self._forget(key)  # nobody waits: it counts in no metric

    def _waits_for_owner(self, explainer: Explainer, key: GangKey) -> bool:
        """Look up the owners of missing members. Return whether the report has to wait for them.

        For a gang that has lost members, the answer must be newer than the loss.
        """
        owners, gang = explainer.owners(key), self._scheduler.cluster.gangs[key]
        if owners and not key.is_single:
            self._visits.plan(key, self._clock.monotonic_s())
        else:
            self._visits.forget(key)
        why = not (key.is_single or gang.started)  # else nothing is said of it
        waits = any([self._lookup.ask(key.namespace, owner, why=why) for owner in owners])
        return waits or bool(self._scheduler.cluster.reservations.owners_to_ask(key))

    def _forget(self, key: GangKey) -> None:
        self._visits.forget(key)
        self._telling.settle(key)
        self._warned.pop(key, None)
        self._reservations.forget(key)
        self._starts.forget(key)

    def _report_reservation(self, gang: GangEntry, explanation: Explanation) -> None:
        """Write an Event when the reservations of a gang have changed."""
        note = self._reservations.news(gang, explanation.held, self._scheduler.cluster.reservations)
        if note is None:
            return
        words = {"kind": "Normal", "reason": note.reason, "action": "Holding", "note": note.note}
        make = self._event(note.pod, **words)
        send = partial(
            self._send_event,
            note.pod,
            lambda: bodies.explaining(bodies.about(make(), note.regarding), explanation),
        )
        self.writes.put((note.reason, gang.key), send, urgent=False)

    def _report_start(self, gang: GangEntry) -> None:
        """Write an Event about the object of a gang that we have started."""
        start = self._starts.news(gang)
        if start is None:
            return
        words = {"kind": "Normal", "reason": STARTED, "action": "Binding", "note": start.note}
        make = self._event(start.pod, **words)
        send = partial(self._send_event, start.pod, lambda: bodies.about(make(), start.regarding))
        self.writes.put((STARTED, gang.key), send, urgent=False)

    def _warn_of(self, gang: GangEntry, missing_class: str) -> None:
        """Warn about the gang's pods."""
        of_class = class_words(missing_class) if missing_class else ""
        of_gang = {gang.spec.warning if gang.spec else "", of_class, ""}
        for entry in gang.members.values():
            for warning in (of_gang | {entry.pod.warning}) - {""}:
                self._warn(gang.key, entry.pod, warning)
        self._warn_of_others(gang)

    def _warn_of_others(self, gang: GangEntry) -> None:
        """Warn of members that another scheduler bound: it overfills nodes, or will."""
        for entry in gang.members.values():
            if words := bound_by_another(entry):
                self._warn(gang.key, entry.pod, words, "BoundByAnother")

    def _warn(self, key: GangKey, pod: Pod, warning: str, reason: str = "GangLabels") -> None:
        """Write a warning that blocks nothing, once for each gang."""
        warned = self._warned.setdefault(key, set())
        if warning not in warned and len(warned) < _WARNINGS_MAX:
            warned.add(warning)
            self.event(pod, kind="Warning", reason=reason, action="Scheduling", note=warning)

    # What the core says

    def _send(self, now_s: float) -> None:
        """Queue the reports that are due now."""
        for saying in self._telling.take(now_s):
            try:
                self._say(saying)
            except Exception as error:  # this gang alone goes without this report
                self._scheduler.note_unexplained(saying.key, error, self._clock.now_s())

    def _say(self, saying: Saying) -> None:
        match saying:
            case SayCondition():
                self._send_condition(saying)
            case SayEvent():
                self._send_waiting(saying)
            case SayStatus():
                self._send_status(saying)

    def _send_condition(self, saying: SayCondition) -> None:
        pod = saying.pod
        patch = bodies.not_scheduled(saying.reason, saying.message, self._clock.wall_s())
        path = pod_path(pod.namespace, pod.name, "status")
        send = partial(self._client.patch, path, patch, "strategic")
        lost = partial(self._condition_lost, saying)
        self.writes.put(saying.about, send, urgent=True, lost=lost)

    def _condition_lost(self, saying: SayCondition) -> None:
        self._telling.lost(saying.key, saying.pod.uid, self._clock.monotonic_s())
        self._touch_news.set()

    def _send_waiting(self, saying: SayEvent) -> None:
        """Queue the Event of a waiting pod or gang: a new one, or the next of a series."""
        is_of_another = saying.reason is Reason.OTHER_SCHEDULER  # it is not said in that one's name
        event = bodies.event(
            saying.pod,
            by=own_name(self._scheduler.cluster) if is_of_another else "",
            kind="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note=saying.message,
            instance=self._instance,
            now_s=saying.began_s,
        )
        gang = self._scheduler.cluster.gangs.get(saying.key)
        regarding = object_of(gang) if saying.of_gang and gang is not None else None
        if regarding is None and not saying.pod.uid:
            self._telling.unused()  # the object is gone, and there was no pod
            return
        event = bodies.about(event, regarding)
        if saying.explanation is not None:
            event = bodies.explaining(event, saying.explanation)
        send = partial(self._send_series, saying, event)
        is_urgent = saying.explanation is not None
        lost = partial(self._event_lost, saying.key) if is_urgent else None
        self.writes.put(saying.about, send, urgent=is_urgent, lost=lost)

    def _event_lost(self, key: GangKey) -> None:
        self._telling.event_lost(key, self._clock.monotonic_s())
        self._touch_news.set()

    async def _send_series(self, saying: SayEvent, event: dict[str, object]) -> None:
        path = _EVENTS_PATH.format(saying.pod.namespace)
        if saying.count > 1:
            now_s = self._clock.wall_s()
            meta = cast(dict[str, Any], event["metadata"])
            patch = bodies.series(saying.count, now_s)
            if saying.explanation is not None:
                patch["metadata"] = {"annotations": meta["annotations"]}
            try:
                await self._client.patch(f"{path}/{quote(meta['name'])}", patch, "merge")
            except NotFound:  # it has expired, or was never written
                event = {**event, "eventTime": format_micro_time(now_s)}
            else:
                return
        await self._client.post(path, event)

    def _send_status(self, saying: SayStatus) -> None:
        key = saying.key
        dialect, raw = by_name(key.dialect), self._objects.get(key)
        gang_object = dialect.object if dialect is not None else None
        if gang_object is None or raw is None:
            self._telling.unused()
            return
        patch = gang_object.status(saying.view, raw, self._clock.wall_s())
        if patch is None:
            self._telling.unused()
            return
        of = gang_object.resource
        path = resource_path(of.group, of.version, of.plural, key.namespace, key.name)
        send = partial(self._patch_status, path, patch)
        self.writes.put(saying.about, send, urgent=True, lost=partial(self._status_lost, key))

    def _status_lost(self, key: GangKey) -> None:
        self._telling.status_lost(key, self._clock.monotonic_s())
        self._touch_news.set()

    async def _patch_status(self, path: str, patch: StatusPatch) -> None:
        if patch.subresource:
            try:
                await self._client.patch(f"{path}/status", patch.body, "merge")
            except NotFound:
                if not patch.fallback_to_main:
                    raise
            else:
                return
        await self._client.patch(path, patch.body, "merge")

    def _show_gangs(self) -> None:
        self._metrics.show_gangs(self._telling.counted)
        self._metrics.reports_queued.set(len(self.writes) + len(self._telling))
        self._metrics.reports_dropped.set(self.writes.dropped)
