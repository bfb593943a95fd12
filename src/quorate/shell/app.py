"""The loop of a running scheduler: drain, observe, decide, commit, report; at its own pace.

In: a configuration and credentials. Out: binds, conditions, Events, status, metrics. Called by
``cli``. All parts meet here: the watch feeds changes in, the core decides, the binder carries out,
and outcomes come back as changes like any other news. No policy lives here.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import socket
import uuid
from collections.abc import Callable

import structlog

from quorate.core.changes import AnyChange
from quorate.core.model import GangKey
from quorate.core.plan.plan import Plan
from quorate.core.scheduler import Scheduler
from quorate.shell.apis import api_words
from quorate.shell.bounded_http import ServeError
from quorate.shell.clock import Clock, SteadyClock, SystemClock
from quorate.shell.commit.binder import Binder
from quorate.shell.commit.claims import Claims
from quorate.shell.commit.evictor import Evictor
from quorate.shell.commit.preemptor import Preemptor
from quorate.shell.commit.preparer import Preparer
from quorate.shell.config import Config
from quorate.shell.guard import GuardServer
from quorate.shell.handover import Handover
from quorate.shell.health import HealthServer
from quorate.shell.health_thread import HealthThread
from quorate.shell.heartbeat import Heartbeat
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.credentials import Credentials
from quorate.shell.leadership import Leadership, LeaseLostError
from quorate.shell.loop_lag import LoopLag
from quorate.shell.memory import freeze_memory
from quorate.shell.report.incidents import Incidents
from quorate.shell.report.metrics import Metrics
from quorate.shell.report.outcomes import tell
from quorate.shell.report.owners import OwnerLookup
from quorate.shell.report.record_file import written_when_asked
from quorate.shell.report.recorder import Recorder
from quorate.shell.report.reporter import Reporter
from quorate.shell.report.self_check import SelfCheck
from quorate.shell.report.volcano_queues import ensure_queues
from quorate.shell.watch.devices import written_claims
from quorate.shell.watch.feed import Feed

log = structlog.get_logger(__name__)

_FLUSH_S = 2.0
_METRICS_EVERY_S = 1.0
_LOOK_AGAIN_S = 0.25
_CYCLE_S_MIN = 0.005


Connect = Callable[[int], KubeClient]
"""Makes a client of the API server with so many connections for writes."""


class App:
    """One replica: it always watches, and decides only while it leads.

    ``identity`` names it in the Lease; what follows its last ``_`` begins its attempts' ids. Both
    must be unique to this process.
    """

    lease_in_thread = True
    """Simulated time knows one thread only."""

    def __init__(self, config: Config, connect: Connect, clock: Clock, identity: str) -> None:
        self._config = config
        self._clock = clock
        self._steady = steady = SteadyClock(clock)
        self._identity = identity
        chance = random.Random(identity).random
        self._binds = connect(config.bind_concurrency)
        self._reads = connect(8)
        self._heartbeat = Heartbeat(clock)
        self._inbox: list[AnyChange] = []
        self._news = asyncio.Event()
        self._waiting_before = 0
        self._paced_until_s = 0.0
        self.metrics = Metrics()
        attempts_by = identity.rpartition("_")[2]
        self.scheduler = Scheduler(config.policy, api_words(), identity=attempts_by)
        recorded_bytes = config.recorder.bytes_max if config.recorder.enabled else 0
        self.recorder = Recorder(self.scheduler, api_words(), attempts_by, recorded_bytes)
        self.incidents = Incidents(self.metrics, clock)
        self._handover = Handover(self.scheduler.journal, attempts_by)
        self._self_check = SelfCheck(self.scheduler, self.metrics, steady)
        self._feed = Feed(
            self._reads,
            frozenset(config.policy.scheduler_names),
            on_change=self._on_change,
            on_object=self._on_object,
            clock=clock,
            chance=chance,
        )
        self._leadership = self._make_leadership(connect)
        self._binder = Binder(
            self._binds,
            concurrency=config.bind_concurrency,
            on_change=self._on_change,
            may_bind=self._may_write,
            may_seal=self.scheduler.may_seal,
            clock=steady,
        )
        self._claims = Claims(
            self._binds,
            self._binder.submit,
            self._on_change,
            on_written=self._on_claim_written,
            may_write=self._may_write,
            clock=steady,
        )
        self._preparer = Preparer(
            self._reads, on_change=self._on_change, may_write=self._may_write, clock=steady
        )
        self._evictor = Evictor(self._reads, may_evict=self._may_write)
        self._lookup = OwnerLookup(self._reads, on_change=self._on_change, clock=clock)
        self._guard = GuardServer(config.guard, self.scheduler.cluster, clock, self.metrics)
        self._reporter = Reporter(
            self._reads,
            self.scheduler,
            self._feed.objects,
            lookup=self._lookup,
            idle=(self._binder.idle, self._evictor.idle),
            metrics=self.metrics,
            instance=self._identity,
            clock=steady,
        )
        told, may_write = self._reporter.preempted, self._may_write
        self._preemptor = Preemptor(self._reads, told, self._on_change, may_write, clock=steady)

    def _make_leadership(self, connect: Connect) -> Leadership:
        return Leadership(
            self._config.leader_election,
            lambda: connect(1),
            identity=self._identity,
            clock=self._clock,
            handover=self._handover,
            heartbeat=self._heartbeat,
            metrics=self.metrics,
            in_thread=self.lease_in_thread,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve health and metrics, and schedule until ``stop`` is set.

        Raises ServeError: an address cannot be used. Raises LeaseLostError.
        """
        pages = HealthServer(
            self._config.health_host,
            self._config.health_port,
            registry=self.metrics.registry,
            unready_reason=self._unready_reason,
            note=self._leadership.note,
            stuck_s=self._heartbeat.stuck_s,
        )
        health = HealthThread(pages)
        await health.start()
        lag = asyncio.create_task(LoopLag(self._clock, self.metrics).run())
        log.info("started", identity=self._identity, health_port=pages.port)
        try:
            await self._guard.start(
                lambda: self._feed.is_fresh and self._may_write(), self._on_change
            )
            await self.schedule(stop)
        finally:
            lag.cancel()
            await self._guard.close()
            await health.close()
        log.info("stopped")

    async def schedule(self, stop: asyncio.Event) -> None:
        """Schedule until ``stop`` is set, or until the lease is lost.

        Raises LeaseLostError.
        """
        stopping = asyncio.create_task(stop.wait())
        tasks = [
            asyncio.create_task(self._feed.run()),
            asyncio.create_task(self._leadership.run(self._as_leader)),
            asyncio.create_task(self._loop()),
            asyncio.create_task(self._watch_numbers()),
        ]
        try:
            done, _ = await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await self._shut_down([stopping, *tasks])

    async def _shut_down(self, tasks: list[asyncio.Task[object]]) -> None:
        """Let binds that were sent have their answer, give the lease back, close everything."""
        await self._claims.close()
        await self._binder.close()
        if self._leadership.leads:
            await self._reporter.writes.flush(_FLUSH_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._preparer.close()
        await self._evictor.close()
        await self._preemptor.close()
        await self._lookup.close()
        for client in (self._binds, self._reads):
            await client.close()

    # Leading

    async def _as_leader(self) -> None:
        self._inbox += self._handover.found()
        self._news.set()
        await self._reporter.run()

    def _may_write(self) -> bool:
        return self._leadership.may_write()

    def _unready_reason(self) -> str | None:
        reasons = (self._feed.unready_reason(), self._leadership.unready_reason())
        return "; ".join(filter(None, reasons)) or None

    # The loop

    def _on_change(self, change: AnyChange) -> None:
        self._heartbeat.beat()  # a long list is work that gets on, though the loop does not turn
        self._inbox.append(change)
        self._news.set()

    def _on_claim_written(self, raw: bytes) -> None:
        self._inbox += written_claims(raw)
        self._news.set()

    def _on_object(self, key: GangKey) -> None:
        if self._leadership.leads:
            self._reporter.touch((key,))
        if key.dialect == "volcano":
            self._news.set()

    async def _loop(self) -> None:
        wake_at_s: float | None = None
        queues: asyncio.Task[None] | None = None
        frozen = False
        while True:
            await self._wait_for_news(wake_at_s)
            await self._keep_pace()
            self._news.clear()
            changes, self._inbox = self._inbox, []
            tell(changes, self.scheduler.cluster.pods, self.metrics, self._reporter)
            self._guard.observe(changes)
            self._self_check.news(changes)
            self.recorder.observed(changes)
            self._heartbeat.beat()
            self.scheduler.observe(changes)
            self._heartbeat.beat()
            if not self._feed.is_synced or not self._may_write():
                # Nobody tells when both are so: an empty list is no news. Look again in a moment.
                wake_at_s = self._steady.now_s() + _LOOK_AGAIN_S if self._leadership.leads else None
                continue
            if not frozen:
                frozen = True
                cluster = self.scheduler.cluster
                nodes, pods = len(cluster.nodes.rows), len(cluster.pods)
                log.info("synced", nodes=nodes, pods=pods, gangs=len(cluster.gangs))
                freeze_memory()
            if "volcano" not in self._feed.served:
                queues = self._without_queues(queues)
            elif queues is None:
                queues = asyncio.create_task(ensure_queues(self._reads))
            self._expect_binds()
            wake_at_s = self._cycle()
            if not self._handover.has_decided:
                self._handover.has_decided = True
                self._handover.hand_over()

    async def _wait_for_news(self, until_s: float | None) -> None:
        """Wait for news, or until ``until_s`` of the steady clock; who only waits is not stuck."""
        while True:
            self._heartbeat.beat()
            left_s = math.inf if until_s is None else max(0.0, until_s - self._steady.now_s())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, self._heartbeat.every_s)):
                    await self._news.wait()
                return
            if left_s <= self._heartbeat.every_s:
                return

    async def _keep_pace(self) -> None:
        """Let news gather for a moment while they keep coming: a cycle costs more than a change."""
        now_s = self._clock.monotonic_s()
        early_s = max(0.0, self._paced_until_s - now_s)
        await asyncio.sleep(early_s)  # also for 0 s: others have their turn between two of ours
        now_s += early_s
        self._paced_until_s = now_s + _CYCLE_S_MIN

    def _expect_binds(self) -> None:
        """Open connections while a gang's members still arrive: its binds will come at once."""
        cluster = self.scheduler.cluster
        if cluster.waiting > self._waiting_before:
            gangs = (cluster.gangs[key] for key in cluster.touched if key in cluster.gangs)
            self._binds.warm(max((gang.waits for gang in gangs), default=0))
        self._waiting_before = cluster.waiting

    @staticmethod
    def _without_queues(queues: asyncio.Task[None] | None) -> None:
        """Forget that Volcano's queues were made: its API is gone, and so are they."""
        if queues is not None:
            queues.cancel()

    def _cycle(self) -> float | None:
        """Decide and carry out; return when time alone will call for the next decision."""
        with self.metrics.decide_s.time():
            now_s = self._steady.now_s()
            self.recorder.deciding(now_s)
            plan = self.scheduler.decide(now_s)
            self.recorder.planned(plan)
            self._heartbeat.beat()
            plan, problems = self.scheduler.verified(plan)
            self.recorder.verified(plan, problems)
        self.metrics.cycles.inc()
        self.incidents.tell(self.scheduler.incidents())
        for problem in problems:
            self.metrics.unverified.inc()
            log.error("a plan failed verification and was not sent", problem=problem)
        self._commit(plan)
        self._reporter.touch(plan.touched)
        return self._steady.now_s() if problems else plan.wake_at_s

    def _commit(self, plan: Plan) -> None:
        self._preparer.carry_out(plan)
        for gang in plan.gangs:
            self.metrics.gangs_planned.inc()
            self._claims.submit(gang)
            log.info("binding", gang=str(gang.key), pods=len(gang.binds), attempt=gang.attempt)
        self._claims.take_back(plan.take_backs)
        self._preemptor.submit(plan.preemptions)
        self._evictor.submit(plan.evictions)
        for eviction in plan.evictions:
            self.metrics.evictions.inc()
            log.warning("rolling back", pod=eviction.name, gang=str(eviction.key))
            entry = self.scheduler.cluster.pods.get(eviction.uid)
            if entry is not None:
                self._reporter.event(
                    entry.pod,
                    kind="Warning",
                    reason="GangRolledBack",
                    action="Evicting",
                    note=eviction.message,
                )

    async def _watch_numbers(self) -> None:
        """Copy counters that others keep into metrics, and say when a watch is in trouble."""
        troubles: dict[str, str] = {}
        while True:
            await asyncio.sleep(_METRICS_EVERY_S)
            for path, reflector in self._feed.reflectors.items():
                self.metrics.relists.labels(path).set(reflector.relists)
                self.metrics.reconnects.labels(path).set(reflector.reconnects)
                self.metrics.unreadable_events.labels(path).set(reflector.garbled)
                is_lost = path in self._feed.lost and not reflector.is_absent
                self.metrics.lost_kinds.labels(path).set(is_lost)
                trouble = "" if reflector.is_absent else str(reflector.last_error or "")
                if trouble and troubles.get(path) != trouble:
                    log.warning("watch in trouble", path=path, problem=trouble)
                troubles[path] = trouble
            kinds = [kind for kind, _ in self._feed.quarantined]
            for kind in {"Pod", "Node", "PodGroup", *kinds}:
                self.metrics.quarantined.labels(kind).set(kinds.count(kind))
            self.metrics.recorder_bytes.set(self.recorder.size_bytes)
            since_s: list[float] = []
            if self._may_write():
                self._self_check.look()
                since_s = [hold.since_s for hold in self.scheduler.cluster.holds if hold.since_s]
            self.metrics.show_holds(since_s, self._steady.now_s())


async def run(config: Config, credentials: Credentials, stop: asyncio.Event) -> None:
    """Run a scheduler until ``stop`` is set. See ``App.run``."""

    def connect(write_connections_max: int) -> KubeClient:
        return KubeClient(credentials, write_connections_max=write_connections_max)

    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:10]}"
    app = App(config, connect, SystemClock(), identity)
    expected = LeaseLostError, ServeError
    async with written_when_asked(app.recorder, config.recorder.path, expected) as record:
        app.incidents.record = record
        await app.run(stop)
