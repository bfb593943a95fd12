"""A running scheduler: its parts, made and joined, started and stopped.

In: a configuration and credentials. Out: binds, conditions, Events, status, metrics. Called by
``cli``. All parts meet here: the watch feeds changes in, the core decides, the binder carries out,
and outcomes come back as changes like any other news. No policy lives here.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import uuid
from collections.abc import Callable, Iterable

import structlog

from quorate.core.model import GangKey
from quorate.core.model.plan import GangBinds, Plan
from quorate.core.scheduler import Scheduler
from quorate.dialects import WITH_QUEUES, awaited_under
from quorate.shell.apis import api_words
from quorate.shell.commit.binder import Binder
from quorate.shell.commit.device_claims import DeviceClaims
from quorate.shell.commit.evictor import Evictor
from quorate.shell.commit.preemptor import Preemptor
from quorate.shell.commit.volume_claims import VolumeClaims
from quorate.shell.committer import Committer
from quorate.shell.configuration.config import Config
from quorate.shell.gauges import Gauges
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.identity.credentials import Credentials
from quorate.shell.kube.writer import WRITES_AT_ONCE, Writer
from quorate.shell.lease.handover import Handover
from quorate.shell.lease.leadership import Leadership, LeaseLostError
from quorate.shell.loop import Loop
from quorate.shell.process.clock import Clock, SteadyClock, SystemClock
from quorate.shell.process.heartbeat import Heartbeat
from quorate.shell.process.loop_lag import LoopLag
from quorate.shell.process.memory import YoungCollector, freeze_memory, prepare_memory
from quorate.shell.recording.record_file import written_when_asked
from quorate.shell.recording.recorder import Recorder
from quorate.shell.report.bind_outcomes import BindOutcomes
from quorate.shell.report.bind_times import BindTimes
from quorate.shell.report.incidents import Incidents
from quorate.shell.report.metrics import Metrics
from quorate.shell.report.owners import OwnerLookup
from quorate.shell.report.reporter import Reporter
from quorate.shell.report.self_check import SelfCheck
from quorate.shell.report.volcano_queues import VolcanoQueues
from quorate.shell.serve.bounded_http import ServeError
from quorate.shell.serve.health import HealthServer
from quorate.shell.serve.health_thread import HealthThread
from quorate.shell.watch.devices import written_claims
from quorate.shell.watch.feed import Feed
from quorate.shell.watch.objects import watched_kinds

log = structlog.get_logger(__name__)

_FLUSH_S = 2.0

Connect = Callable[[int], KubeClient]
"""Makes a client of the API server with so many connections for writes."""


class App:
    """One replica: it always watches, and decides only while it leads.

    ``identity`` names it in the Lease; what follows its last ``_`` begins its attempts' ids. Both
    must be unique to this process.
    """

    lease_in_thread = True
    """Simulated time knows one thread only."""

    owns_memory = True
    """Simulated replicas share a process, which looks after its memory itself."""

    on_listening: Callable[[int], None] | None = None
    """Told the port of health and metrics, once they are served."""

    connect_lease: Connect | None = None
    """Makes the lease's client, in the lease's thread, with credentials that renew themselves."""

    def __init__(self, config: Config, connect: Connect, clock: Clock, identity: str) -> None:
        self._config = config
        self._clock = clock
        self._steady = steady = SteadyClock(clock)
        self._identity = identity
        chance = random.Random(identity).random
        self._binds = connect(config.bind_concurrency)
        self._reads = connect(WRITES_AT_ONCE)
        self._heartbeat = Heartbeat(clock)
        self._waiting_before = 0
        self._has_synced = False
        self.metrics = Metrics()
        self._times = BindTimes(self.metrics, steady)
        for client in (self._binds, self._reads):
            client.on_error = self._count_error
        attempts_by = identity.rpartition("_")[2]
        apis = api_words(config.policy.scheduler_names)
        self.scheduler = Scheduler(config.policy, apis, identity=attempts_by)
        recorded_bytes = config.recorder.bytes_max if config.recorder.enabled else 0
        self.recorder = Recorder(self.scheduler, apis, attempts_by, recorded_bytes)
        self.incidents = Incidents(self.metrics, clock)
        self._handover = Handover(self.scheduler.journal, attempts_by)
        self._self_check = SelfCheck(self.scheduler, self.metrics, steady)
        self._loop = self._make_loop()
        self._feed = self._make_feed(chance)
        self._leadership = self._make_leadership(connect)
        note = self.scheduler.note_defect
        self._writer = Writer(
            self._reads, may_write=self._may_write, clock=steady, note=note, chance=chance
        )
        self._binder = Binder(
            self._binds,
            concurrency=config.bind_concurrency,
            on_change=self._loop.put,
            may_bind=self._may_write,
            may_complete=self._may_complete,
            clock=steady,
            note=note,
        )
        self._device_claims = DeviceClaims(
            self._writer,
            self._binder.submit,
            self._loop.put,
            on_written=self._on_claim_written,
            clock=steady,
        )
        self._volume_claims = VolumeClaims(self._writer, on_change=self._loop.put, clock=steady)
        self._evictor = Evictor(self._writer)
        self._lookup = OwnerLookup(self._reads, on_change=self._loop.put, clock=clock, note=note)
        self._reporter = Reporter(
            self._writer,
            self.scheduler,
            self._feed.objects,
            lookup=self._lookup,
            idle=(self._binder.idle, self._evictor.idle),
            metrics=self.metrics,
            instance=self._identity,
            clock=steady,
        )
        on_preempted = self._reporter.preempted
        self._preemptor = Preemptor(self._writer, on_preempted, self._loop.put, clock=steady)
        self._queues = VolcanoQueues(self._writer, self._reporter.writes, self.scheduler)
        self._outcomes = BindOutcomes(
            self.scheduler, self.metrics, self._reporter, self._times, steady
        )
        self._committer = self._make_committer()
        self._gauges = self._make_gauges()

    def _make_feed(self, chance: Callable[[], float]) -> Feed:
        return Feed(
            self._reads,
            watched_kinds(frozenset(self._config.policy.scheduler_names)),
            on_change=self._loop.put,
            on_object=self._on_object,
            clock=self._clock,
            chance=chance,
            note=self.scheduler.note_defect,
        )

    def _make_loop(self) -> Loop:
        self.recorder.on_failure = self.metrics.recordings_failed.inc
        return Loop(
            self.scheduler,
            self._clock,
            self._steady,
            heartbeat=self._heartbeat,
            metrics=self.metrics,
            recorder=self.recorder,
            incidents=self.incidents,
            memory=YoungCollector() if self.owns_memory else None,
        )

    def _make_committer(self) -> Committer:
        return Committer(
            self.scheduler,
            self.metrics,
            self._reporter,
            device_claims=self._device_claims,
            volume_claims=self._volume_claims,
            preemptor=self._preemptor,
            evictor=self._evictor,
            on_change=self._loop.put,
        )

    def _make_gauges(self) -> Gauges:
        return Gauges(
            self.metrics,
            self._feed,
            self.scheduler,
            self.recorder,
            self.incidents,
            self._self_check,
            self._steady,
            may_write=self._may_write,
        )

    def _make_leadership(self, connect: Connect) -> Leadership:
        return Leadership(
            self._config,
            lambda: (self.connect_lease or connect)(1),
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
        prepare_memory()
        pages = HealthServer(
            self._config.health_host,
            self._config.health_port,
            registry=self.metrics.registry,
            unready_reason=self._unready_reason,
            note=self._leadership.note,
            stuck_s=self._heartbeat.stuck_s,
        )
        health = HealthThread(pages)
        try:
            await health.start()
        except ServeError:
            await self._close_clients()
            raise
        lag = asyncio.create_task(LoopLag(self._clock, self.metrics).run())
        log.info("started", identity=self._identity, health_port=pages.port)
        try:
            if self.on_listening is not None:
                self.on_listening(pages.port)
            await self.schedule(stop)
        finally:
            lag.cancel()
            await health.close()
            await self._close_clients()
        log.info("stopped")

    async def schedule(self, stop: asyncio.Event) -> None:
        """Schedule until ``stop`` is set, or until the lease is lost.

        Raises LeaseLostError.
        """
        stopping = asyncio.create_task(stop.wait())
        tasks = [
            asyncio.create_task(self._feed.run()),
            asyncio.create_task(self._leadership.run(self._as_leader)),
            asyncio.create_task(self._run_loop()),
            asyncio.create_task(self._gauges.run()),
        ]
        try:
            done, _ = await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await self._shut_down([stopping, *tasks])

    async def _shut_down(self, tasks: list[asyncio.Task[object]]) -> None:
        """Wait for the answers to binds that were sent, release the lease, close everything."""
        await self._device_claims.close()
        await self._binder.close()
        if self._leadership.leads:
            await self._reporter.writes.flush(_FLUSH_S)
        self._queues.keep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._volume_claims.close()
        await self._evictor.close()
        await self._preemptor.close()
        await self._lookup.close()
        await self._close_clients()

    async def _close_clients(self) -> None:
        for client in (self._binds, self._reads):
            await client.close()

    # Leading

    async def _as_leader(self) -> None:
        self._loop.put_all(self._handover.found())
        await self._reporter.run()

    def _count_error(self, status: str) -> None:
        self.metrics.api_errors.labels(status).inc()

    def _may_write(self) -> bool:
        return self._leadership.may_write()

    async def _may_complete(self, gang: GangBinds, uid: str) -> bool:
        """Ask the core, once it knows of each bind that failed before this one is sent."""
        await self._loop.failures_observed()
        return self.scheduler.may_complete(gang, uid)

    def _unready_reason(self) -> str | None:
        reasons = (self._feed.unready_reason(), self._leadership.unready_reason())
        return "; ".join(filter(None, reasons)) or None

    # What the loop calls

    async def _run_loop(self) -> None:
        await self._loop.run(
            observers=(
                self._outcomes.observe,
                self._self_check.observe,
                self.recorder.observed,
            ),
            leads=lambda: self._leadership.leads,
            may_decide=self._may_decide,
            ready=self._ready,
            commit=self._commit,
            touch=self._on_touched,
        )

    def _on_claim_written(self, raw: bytes) -> None:
        self._loop.put_all(written_claims(raw))

    def _on_object(self, key: GangKey) -> None:
        if self._leadership.leads:
            self._reporter.touch((key,))
        if awaited_under(key):
            self._loop.wake()

    def _may_decide(self) -> bool:
        return self._feed.is_synced and self._may_write()

    def _ready(self) -> None:
        """Prepare for a decision; log and tune memory before the first one."""
        cluster = self.scheduler.cluster
        if not self._has_synced:
            self._has_synced = True
            nodes, pods = len(cluster.nodes.rows), len(cluster.pods)
            log.info("synced", nodes=nodes, pods=pods, gangs=len(cluster.gangs))
            if self.owns_memory:
                freeze_memory()
        self._queues.keep(max(self._feed.served.get(one, 0) for one in WITH_QUEUES))
        if cluster.waiting > self._waiting_before:  # a gang arrives: its binds will come at once
            gangs = (cluster.gangs[key] for key in cluster.touched if key in cluster.gangs)
            self._binds.warm(max((gang.waits for gang in gangs), default=0))
        self._waiting_before = cluster.waiting

    def _commit(self, plan: Plan) -> None:
        self._times.planned(plan, self.scheduler.cluster.pods)
        self._committer.carry_out(plan)

    def _on_touched(self, touched: Iterable[GangKey]) -> None:
        self._reporter.touch(touched)
        self._queues.touch(touched)
        if not (self._handover.has_decided or self.scheduler.advance.is_behind):
            self._handover.has_decided = True
            self._handover.hand_over()


async def run(
    config: Config,
    credentials: Credentials,
    stop: asyncio.Event,
    on_listening: Callable[[int], None] | None = None,
) -> None:
    """Run a scheduler until ``stop`` is set. See ``App.run``."""

    def connect(write_connections_max: int) -> KubeClient:
        return KubeClient(credentials, write_connections_max=write_connections_max)

    def connect_lease(write_connections_max: int) -> KubeClient:
        return KubeClient(credentials.copy(), write_connections_max=write_connections_max)

    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:10]}"
    app = App(config, connect, SystemClock(), identity)
    app.connect_lease = connect_lease
    app.on_listening = on_listening
    expected = LeaseLostError, ServeError
    async with written_when_asked(app.recorder, config.recorder.path, expected) as record:
        app.incidents.record = record
        await app.run(stop)
