"""Say why gangs stand where they stand, once they stand still. In: touched gangs. Out: writes.

Run by ``shell.app``. A gang is reported when nothing has happened to it for a moment, so that one
that starts at once costs no write but its binds; the sentence is computed then, not while planning.
Each pod gets its condition and Event only when its sentence has changed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from quorate.core.explain import Explainer
from quorate.core.model import GangKey, Pod, PodShape
from quorate.core.plan.plan import Preemption, Victim
from quorate.core.pod_words import priority_words
from quorate.core.reasons import Explanation, GangState, Reason
from quorate.core.scheduler import Scheduler
from quorate.core.state.gangs import GangEntry, Where, key_of
from quorate.dialects import StatusPatch, by_name
from quorate.shell.clock import SteadyClock
from quorate.shell.kube.errors import NotFound
from quorate.shell.kube.paths import pod_path, resource_path
from quorate.shell.kube.writer import Writer
from quorate.shell.report import bodies
from quorate.shell.report.held import HeldNotes
from quorate.shell.report.metrics import Metrics
from quorate.shell.report.owners import OwnerLookup
from quorate.shell.report.writes import Writes

_QUIET_S = 0.2
_PATIENCE_S = 1.0
_PODS_PER_S = 200
_TICK_S = 0.1
_GANGS_PER_TICK = 500
_REPORT_S_MAX = 0.05
"""So long it may take to explain gangs before others have their turn in the loop."""
_WARNINGS_MAX = 20
"""How many different ones a gang gets: pods come and go, with labels as anybody writes them."""

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
        self._metrics = metrics
        self._instance = instance
        self._clock = clock
        self.writes = Writes(*idle)
        self._touched: dict[GangKey, tuple[float, float]] = {}
        """When a gang was first and last touched since its last report (monotonic)."""
        self._touch_news = asyncio.Event()
        self._reported_at_s: dict[GangKey, float] = {}
        self._last: dict[GangKey, tuple[GangState, Reason]] = {}
        self._said: dict[str, tuple[str, str]] = {}
        """The reason and sentence that each pod (by uid) carries."""
        self._warned: dict[GangKey, set[str]] = {}
        self._held = HeldNotes()

    def touch(self, keys: Iterable[GangKey]) -> None:
        """Report these gangs when they have come to rest."""
        now_s = self._clock.monotonic_s()
        gangs = self._scheduler.cluster.gangs
        for key in keys:
            if key.is_single and key in gangs and not gangs[key].has_undecided:
                self._settle(key)  # a pod with a node has nothing to tell, and there are many
                continue
            first_s, _ = self._touched.get(key, (now_s, now_s))
            self._touched[key] = first_s, now_s
        self._touch_news.set()

    def bound(self, pod: Pod, node: str) -> None:
        """Tell that a pod has its node."""
        self._said.pop(pod.uid, None)
        self.writes.forget(("condition", pod.uid))
        self.writes.forget(("FailedScheduling", pod.uid))
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        self.event(pod, kind="Normal", reason="Scheduled", action="Binding", note=note)
        if pod.warning:
            self._warn(key_of(pod), pod, pod.warning)

    def preempted(self, preemption: Preemption, victim: Victim) -> None:
        """Tell that a pod is being deleted so that another one gets its room."""
        self._metrics.preempted.inc()
        note = f"Preempted by pod {preemption.uid} on node {preemption.node}"
        if victim.gang_hit:
            note = f"{note}; {victim.gang_hit}"
        by = preemption.scheduler
        pod = Pod(victim.uid, victim.namespace, victim.name, scheduler=by, shape=PodShape())
        make = self._event(pod, kind="Normal", reason="Preempted", action="Preempting", note=note)
        send = partial(self._send_event, pod, lambda: bodies.caused_by(make(), preemption))
        self.writes.put(("Preempted", victim.uid), send, urgent=False)

    def gone(self, uid: str) -> None:
        """Forget a deleted pod."""
        self._said.pop(uid, None)
        self.writes.forget(("condition", uid))

    def event(self, pod: Pod, *, kind: str, reason: str, action: str, note: str) -> None:
        """Queue an Event about a pod; it is made when it is sent, which is after the binds."""
        make = self._event(pod, kind=kind, reason=reason, action=action, note=note)
        self.writes.put((reason, pod.uid), partial(self._send_event, pod, make), urgent=False)

    def _event(self, pod: Pod, **words: str) -> Callable[[], dict[str, object]]:
        """Return what makes an Event of now, later."""
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

    async def _run(self) -> None:
        while True:
            if not self._touched:
                self._touch_news.clear()
                await self._touch_news.wait()
            await asyncio.sleep(_TICK_S)
            due = self._due(self._clock.monotonic_s())
            if due:
                self._report(due)

    def _due(self, now_s: float) -> list[GangKey]:
        """Return the gangs that have come to rest, or been restless for too long.

        A large gang that keeps changing is reported less often, so that its pods' conditions are
        not rewritten for each new member.
        """
        due = []
        for key, (first_s, last_s) in self._touched.items():
            gang = self._scheduler.cluster.gangs.get(key)
            pods = len(gang.members) if gang else 0
            patience_s = max(_PATIENCE_S, pods / _PODS_PER_S)
            since_report_s = now_s - self._reported_at_s.get(key, -1e9)
            if now_s - first_s >= patience_s or (
                now_s - last_s >= _QUIET_S and since_report_s >= pods / _PODS_PER_S
            ):
                due.append(key)
                if len(due) == _GANGS_PER_TICK:
                    break
        return due

    def _report(self, due: list[GangKey]) -> None:
        """Report as many of these gangs as there is time for; the others have the next turn."""
        now_s, began_s = self._clock.now_s(), self._clock.monotonic_s()
        explainer = self._scheduler.explainer(now_s)
        for key in due:
            try:
                self._report_gang(explainer, key)
            except Exception as error:  # it costs this gang its report, until some time has passed
                self._touched.pop(key, None)
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
        del self._touched[key]
        lost_its_pods = not gang.members and key in self._last
        if not (gang.ours or lost_its_pods or self._claims_empty(gang)):
            self._forget(key)
            return
        explanation = explainer.explain(key)
        if explanation is not None:
            self._reported_at_s[key] = self._clock.monotonic_s()
            self._last[key] = explanation.state, explanation.reason
            self._tell_pods(gang, explainer, explanation)
            self._tell_held(gang, explanation)
            self._write_status(gang, explainer, explanation)
        if not gang.members:
            self._forget(key)  # nobody waits: it counts in no metric

    def _waits_for_owner(self, explainer: Explainer, key: GangKey) -> bool:
        """Ask who makes the missing members; the sentence waits for the answer.

        Of a gang that has lost members an answer is needed that was given since.
        """
        waits = any([self._lookup.ask(key.namespace, owner) for owner in explainer.owners(key)])
        return waits or bool(self._scheduler.cluster.holds.owners_to_ask(key))

    def _claims_empty(self, gang: GangEntry) -> bool:
        """Whether an object without pods is ours: Volcano's clients wait for its first phase."""
        takes_volcano = "volcano" in self._scheduler.policy.scheduler_names
        return gang.key.dialect == "volcano" and takes_volcano and not gang.members

    def _settle(self, key: GangKey) -> None:
        """Stop to follow a gang that has nothing to tell now."""
        self._last.pop(key, None)
        self._reported_at_s.pop(key, None)
        self._touched.pop(key, None)

    def _forget(self, key: GangKey) -> None:
        self._settle(key)
        self._warned.pop(key, None)
        self._held.forget(key)

    def _tell_held(self, gang: GangEntry, explanation: Explanation) -> None:
        """Write an Event when what is held for a gang differs from what was said last."""
        note = self._held.news(gang, explanation.held, self._scheduler.cluster.holds)
        if note is None:
            return
        words = {"kind": "Normal", "reason": note.reason, "action": "Holding", "note": note.note}
        make = self._event(note.pod, **words)
        send = partial(
            self._send_event,
            note.pod,
            lambda: bodies.about(make(), note.regarding, note.annotations),
        )
        self.writes.put((note.reason, gang.key), send, urgent=False)

    def _tell_pods(self, gang: GangEntry, explainer: Explainer, explanation: Explanation) -> None:
        """Write the condition and the Event of each waiting member whose sentence is new."""
        now_s = self._clock.wall_s()
        starting = explanation.reason in (Reason.NONE, Reason.STARTING)
        of_gang = {gang.spec.warning if gang.spec else "", priority_words(gang), ""}
        for entry in gang.members.values():
            pod = entry.pod
            for warning in (of_gang | {pod.warning}) - {""}:
                self._warn(gang.key, pod, warning)
            if entry.where not in (Where.WAITING, Where.INVALID) or not entry.ours:
                self._said.pop(pod.uid, None)
                continue
            if starting and entry.where is Where.WAITING:
                continue
            reason, sentence = explainer.pod_sentence(entry, explanation)
            if self._said.get(pod.uid) == (reason, sentence):
                continue
            self._said[pod.uid] = reason, sentence
            patch = bodies.not_scheduled(reason, sentence, now_s)
            path = pod_path(pod.namespace, pod.name, "status")
            send = partial(self._client.patch, path, patch, "strategic")
            lost = partial(self._unsaid, gang.key, pod.uid)
            self.writes.put(("condition", pod.uid), send, urgent=True, lost=lost)
            self.event(
                pod, kind="Warning", reason="FailedScheduling", action="Scheduling", note=sentence
            )

    def _unsaid(self, key: GangKey, uid: str) -> None:
        """A pod's condition was lost: say it again."""
        self._said.pop(uid, None)
        self.touch((key,))

    def _warn(self, key: GangKey, pod: Pod, warning: str) -> None:
        """Say once for each gang what is odd about a pod but holds nothing back."""
        warned = self._warned.setdefault(key, set())
        if warning not in warned and len(warned) < _WARNINGS_MAX:
            warned.add(warning)
            self.event(pod, kind="Warning", reason="GangLabels", action="Scheduling", note=warning)

    def _write_status(
        self, gang: GangEntry, explainer: Explainer, explanation: Explanation
    ) -> None:
        dialect, raw = by_name(gang.key.dialect), self._objects.get(gang.key)
        view = explainer.view(gang.key, explanation)
        if dialect is None or dialect.RESOURCE is None or raw is None or view is None:
            return
        patch = dialect.status(view, raw, self._clock.wall_s())
        if patch is None:
            return
        resource = dialect.RESOURCE
        path = resource_path(
            resource.group, resource.version, resource.plural, gang.key.namespace, gang.key.name
        )
        send = partial(self._patch_status, path, patch)
        lost = partial(self.touch, (gang.key,))
        self.writes.put(("status", gang.key), send, urgent=True, lost=lost)

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
        states = Counter(state for state, _ in self._last.values())
        self._metrics.show_gangs(states, Counter(reason for _, reason in self._last.values()))
        self._metrics.reports_queued.set(len(self.writes))
        self._metrics.reports_dropped.set(self.writes.dropped)
